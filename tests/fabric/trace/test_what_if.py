from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from fabric import ConfigurationError, Program, Trace, open_trace, simulate
from fabric.analysis.trace.reading.record_in import record_in
from fabric.analysis.trace.selection import TraceOptions
from fabric.graph.wiring.elaborate import elaborate
from fabric.shell.cli import main
from tests.deadlock.parts import Script
from tests.fabric.retiming.real import recorded
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import PROGRAMS, program, record
from tests.profiles import spread

_STUCK: Final = (
    "simplified_moe", "pack_rows", "loop_of_2", "unequal_branches", "two_depths",
    "three_rings", "two_at_once", "long_tail",
)  # fmt: skip


@pytest.fixture(autouse=True)
def fixed_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def _bursty() -> Program:
    return chain(("s0",) * 6 + ("c40",), ("r0", "c2", "s0"), ("r0", "c6"), elements=4)


def _crossed() -> Program:
    with Program("crossed", channel_depth=2) as wired:
        left, right = Script(("s0", "s0", "s1"), rounds=4, counts=(8, 4), name="deal")()
        Script(("r1", "r0", "r0", "c3"), counts=(), name="join")(left, right)
    return wired


@pytest.fixture(scope="module")
def bursty(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return record(_bursty(), tmp_path_factory.mktemp("bursty"))[1]


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return record(_crossed(), tmp_path_factory.mktemp("crossed"))[1]


def _channels(trace: Trace) -> list[dict[str, Any]]:
    table = trace.tables["channels"]
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows()]


def _sent(trace: Trace) -> int:
    return len(trace.tables["transfers"])


@pytest.mark.parametrize("name", spread(PROGRAMS, 1))
def test_record_of_a_trace_is_that_of_the_run(tmp_path: Path, name: str) -> None:
    wired = program(name)
    depths = {edge.key: 64 for edge in elaborate(wired).edges}
    found = record_in(record(wired, tmp_path, depths=depths)[1])
    expected, _ = recorded(program(name), depths)
    assert expected is not None
    assert np.array_equal(expected.events, found.events)
    assert np.array_equal(expected.first, found.first)
    for each in (
        "program",
        "channels",
        "units",
        "cycles",
        "clients",
        "shutdown_cycles",
        "arbitrated",
    ):
        assert getattr(expected, each) == getattr(found, each), each
    assert expected.arbitrated == found.arbitrated


@pytest.mark.parametrize("depth", [1, 2, 6])
def test_what_if_with_depths_gives_the_cycles_of_a_run(bursty: Trace, depth: int) -> None:
    found = bursty.what_if({"unit_1.0": depth})
    again = simulate(_bursty(), depths={"unit_1.0": depth})
    assert (again.cycles, True, ()) == (found.cycles, found.exact, found.loop)
    before = simulate(_bursty())
    assert again.cycles is not None
    assert before.cycles is not None
    assert before.cycles == found.cycles_before
    waits = {
        each.name: (each.empty_cycles, each.full_cycles + each.credit_cycles)
        for each in again.channels_counters
    }
    assert (depth == 2) == (not found.channels)
    for each in found.channels:
        assert waits[each.name] == (each.empty_after_cycles, each.full_after_cycles)
    ends = {
        unit.name: again.cycles - unit.idle_cycles
        for unit, was in zip(again.units, before.units, strict=True)
        if again.cycles - unit.idle_cycles != before.cycles - was.idle_cycles
    }
    assert ends == {unit.name: unit.after_cycle for unit in found.units}


def test_what_if_that_deadlocks_does_so_in_a_run(crossed: Trace) -> None:
    found = crossed.what_if({"join.0": 1})
    again = simulate(_crossed(), depths={"join.0": 1})
    assert ("deadlock", None, True) == (again.status, found.cycles, found.exact)
    assert again.deadlock is not None
    (loop,) = again.deadlock["loops"]
    assert [unit["unit"] for unit in loop["units"]] == sorted(unit.name for unit in found.loop)
    assert {(True, "deal.0 -> join.0"), (False, "deal.1 -> join.1")} == {
        (unit.full, unit.channel) for unit in found.loop
    }


@pytest.mark.parametrize("name", spread(_STUCK, 1))
@pytest.mark.parametrize("more", [0, 1])
def test_what_if_of_a_deadlock_releases_units_as_a_run(
    tmp_path: Path, name: str, more: int
) -> None:
    given = {"reassemble_1.2": 2} if name == "simplified_moe" else {}
    report, trace = record(program(name), tmp_path, depths=given)
    assert report.deadlock is not None
    full = [
        channel["name"].partition(" -> ")[2]
        for loop in report.deadlock["loops"]
        for channel in loop["channels"]
        if channel["held"] >= channel["depth"]
    ]
    held = {channel["reader"]: channel["depth"] for channel in _channels(trace)}
    depths = {option: held[option] + more for option in full}
    found = trace.what_if(depths)
    again = record(program(name), tmp_path, depths=given | depths)[1]

    assert found.stopped
    assert (found.cycles, trace.cycles) == (None, found.cycles_before)
    assert bool(found.released) == (_sent(again) > _sent(trace))
    if more == 0:
        stuck = {unit["unit"] for loop in report.deadlock["loops"] for unit in loop["units"]}
        assert {unit.name for unit in found.loop} <= stuck
        assert found.loop


def test_what_if_with_a_later_option_overrides_a_pattern(bursty: Trace) -> None:
    found = bursty.what_if({"unit_*.0": 7, "unit_2.0": 1})
    assert {"unit_1.0": 7, "unit_2.0": 1} == found.depths
    assert simulate(_bursty(), depths=found.depths).cycles == found.cycles


@pytest.mark.parametrize(
    ("options", "part"),
    [(TraceOptions(window=(0, 20)), "window"), (TraceOptions(nodes="unit_1"), "nodes")],
)
def test_what_if_of_a_part_of_a_run_is_refused(
    tmp_path: Path, options: TraceOptions, part: str
) -> None:
    trace = record(_bursty(), tmp_path, options)[1]
    with pytest.raises(ConfigurationError, match=rf"without --trace-{part}$"):
        trace.what_if({"unit_1.0": 3})


@pytest.mark.parametrize("damaged", [True, False])
def test_what_if_with_missing_rows_is_refused(tmp_path: Path, *, damaged: bool) -> None:
    folder = record(program("attention"), tmp_path)[1].folder
    segments = list(folder.glob("operations-*.parquet"))
    assert segments
    for each in segments:
        if damaged:
            each.write_bytes(each.read_bytes()[:-9])
        else:
            each.unlink()
    with pytest.raises(ConfigurationError, match="rows of its tables are missing"):
        open_trace(folder).what_if()


def test_what_if_with_a_wrong_name_or_number_is_refused(bursty: Trace) -> None:
    for given, expected in (
        (({"unit_3.0": 2}, {}), r"depth of unit_3\.0: no channel .* \(did you mean unit_"),
        (({"unit_1.0": 0}, {}), "depth of unit_1.0 is 0: expected at least 1"),
        (
            ({}, {"unt_1": 2.0}),
            r"work of unt_1: no unit or family .* \(did you mean unit_1\?\)",
        ),
        (({}, {"unit_1": -1.0}), "work of unit_1 is -1.0: expected a factor of 0 or more"),
        (({}, {"unit_1": float("nan")}), "work of unit_1 is nan: expected"),
    ):
        with pytest.raises(ConfigurationError, match=expected):
            bursty.what_if(*given)


@pytest.mark.parametrize("given", ["unit_1", "unit_1=2", "=2x", "unit_1=-2x", "unit_1=nanx"])
def test_work_option_without_a_factor_is_refused(
    capsys: pytest.CaptureFixture[str], bursty: Trace, given: str
) -> None:
    assert 2 == main(["trace", "what-if", str(bursty.folder), "--work", given])
    said = f"{given!r}: expected UNIT=FACTORx with a FACTOR below 1,000,000, as in 0.5x or 2x"
    assert said in capsys.readouterr().err

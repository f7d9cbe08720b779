from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fabric import Program
from fabric.analysis.trace.analysis.timeline import bandwidth, slices, timelines
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.pages import page
from fabric.analysis.trace.pages.figures import states
from fabric.analysis.trace.pages.page import write_page
from fabric.analysis.trace.reading.queries import QUERIES
from fabric.messages.causes import SHOWN, Cause
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.fabric.trace.page_data import Data, page_data, transfers_of, waits_of
from tests.fabric.trace.recording import program, record


@pytest.fixture(scope="module", params=["simplified_moe", "moe regions", "pack_rows"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return record(program(request.param), tmp_path_factory.mktemp("run"))[1]


def test_stretch_has_its_most_frequent_state(trace: Trace) -> None:
    lines = timelines(trace)
    at = np.unique(np.linspace(lines.first, lines.last, 38).astype(np.int64))
    mostly, shares = states(trace, lines, at)
    cycles = np.zeros((len(SHOWN), len(lines.names), len(at) - 1))
    for unit in range(len(lines.names)):
        idle = np.diff(at).astype(float)
        for piece in slices(lines, unit):
            part = np.clip(
                np.minimum(piece.end, at[1:]) - np.maximum(piece.start, at[:-1]), 0, None
            )
            cycles[SHOWN.index(piece.state), unit] += part
            idle -= part
        cycles[SHOWN.index(Cause.IDLE), unit] += idle

    assert (cycles.argmax(0) == mostly).all()
    assert shares == pytest.approx(100 * cycles.sum(1) / cycles.sum((0, 1)))


@pytest.mark.parametrize("width", [1, 7, 100, 100_000])
def test_bandwidth_is_below_the_peak_and_sums_to_the_bytes(trace: Trace, width: int) -> None:
    levels = bandwidth(trace, width)
    peak = trace.meta["off_chip"]["peak_bytes_per_cycle"]
    ((moved,),) = trace.rows("SELECT coalesce(sum(bytes), 0)::BIGINT FROM bursts")

    assert moved == sum(level.value for level in levels)
    for level in levels:
        assert 0 <= level.value <= peak * min(width, trace.cycles - level.cycle)


def test_bandwidth_query_is_below_the_peak(trace: Trace) -> None:
    _check_query(trace)


def test_bandwidth_query_of_many_readers_is_below_the_peak(tmp_path: Path) -> None:
    with Program("readers", mode="timing") as readers:
        for number in range(48):
            size = (8 * number + 8, 64)
            tile = LinearOffChipLoad(Tensor(size), size)()
            LinearOffChipStore(f"y{number}")(tile)
    _check_query(record(readers, tmp_path)[1])


def _check_query(trace: Trace) -> None:
    rows = trace.rows(QUERIES["bandwidth"].sql)
    peak = trace.meta["off_chip"]["peak_bytes_per_cycle"]
    ((moved,),) = trace.rows("SELECT coalesce(sum(bytes), 0)::BIGINT FROM bursts")

    assert sum(row[2] for row in rows) == pytest.approx(moved, abs=len(rows))
    assert all(0 <= rate <= round(peak, 1) for *_, rate in rows)
    assert [row[2] for row in rows] == pytest.approx(_windows(trace, peak), abs=1)


def _windows(trace: Trace, peak: float) -> list[float]:
    edges = np.arange(21) * trace.cycles / 20
    moved = np.zeros(20)
    for start, end, count in trace.rows("SELECT submitted_cycle, end_cycle, bytes FROM bursts"):
        inside = np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1])
        moved += count * np.clip(inside, 0, None) / (end - start)
    room = peak * trace.cycles / 20
    if moved.sum() <= 20 * room:
        for order in (range(19, 0, -1), range(19)):
            for at in order:
                over = max(0, moved[at] - room)
                moved[at] -= over
                moved[at + order.step] += over
    return moved.tolist()


@pytest.mark.deep
def test_page_with_less_room_has_fewer_units_and_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trace = record(program("moe static"), tmp_path)
    whole = _data(trace, tmp_path)
    size = (tmp_path / "run.html").stat().st_size
    kept = [sum(whole["detail"]["waits"]) + sum(whole["detail"]["transfers"])]
    for letters in (size - 2_500, size - 4_500, 0):
        monkeypatch.setattr(page, "_CHARACTERS", letters)
        data = _data(trace, tmp_path)
        counts = [data["detail"][each] for each in ("waits", "transfers")]
        sums = [sum(count or 0 for count in each) for each in counts]
        kept.append(sum(sums))
        expected = [
            f"This page has {total:,} of {sum(whole['detail'][what]):,} single {what}, from "
            for what, total, count in zip(("waits", "transfers"), sums, counts, strict=True)
            if None in count
        ]
        assert expected
        for sentence, beginning in zip(data["left_out"], expected, strict=True):
            assert sentence.startswith(beginning)
        _assert_same(whole, data)

    assert not whole["left_out"]
    assert kept == sorted({*kept}, reverse=True)
    assert not kept[-1]


def _data(trace: Trace, folder: Path) -> Data:
    write_page(trace, folder / "run.html")
    return page_data((folder / "run.html").read_text(encoding="utf-8"))


def _assert_same(whole: Data, part: Data) -> None:
    for read, counts in ((waits_of, "waits"), (transfers_of, "transfers")):
        kept: Sequence[int | None] = part["detail"][counts]
        for owner, count in enumerate(kept):
            if count is not None:
                assert read(part, owner) == read(whole, owner)
    for name in ("units", "channels", "charged", "path", "phases", "shares", "memory"):
        assert whole[name] == part[name]

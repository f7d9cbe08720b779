"""The levels of a page against what they were made of, and how much of the finest one fits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fabric import Program
from fabric.analysis.trace.analysis.stalls import Accounts
from fabric.analysis.trace.analysis.timeline import Level, bandwidth, occupancy, slices, timelines
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.pages import figures, page
from fabric.analysis.trace.pages.figures import edges, memory, most_held, states
from fabric.analysis.trace.pages.page import write_page
from fabric.analysis.trace.pages.parts import compressed, packed
from fabric.analysis.trace.reading.queries import QUERIES
from fabric.analysis.trace.selection import TraceOptions
from fabric.messages.telling.causes import SHOWN, Cause
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.fabric.trace.page_data import Data, page_data, transfers_of, waits_of
from tests.fabric.trace.recording import PROGRAMS, program, record


@pytest.fixture(scope="module", params=[*PROGRAMS, "pack_rows", "ring_of_7"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return the trace of each program."""
    return record(program(request.param), tmp_path_factory.mktemp("run"))[1]


def test_states(trace: Trace) -> None:
    """A stretch has the state that takes most of it, and the units' shares are those of all."""
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


def test_states_of_one_unit(tmp_path: Path) -> None:
    """In each cycle it does one thing, which is all of what the traced units do."""
    _, trace = record(program("pack_rows"), tmp_path, TraceOptions(nodes="a_join"))
    lines = timelines(trace)
    mostly, shares = states(trace, lines, np.arange(lines.first, lines.last + 1))
    (unit,) = np.flatnonzero(lines.traced)

    assert (shares == 100 * (np.arange(len(SHOWN))[:, None] == mostly[unit])).all()


@pytest.mark.parametrize("width", [1, 7, 100, 100_000])
def test_bandwidth(trace: Trace, width: int) -> None:
    """No stretch is above the peak, and all together are what was moved."""
    levels = bandwidth(trace, width)
    peak = trace.meta["off_chip"]["peak_bytes_per_cycle"]
    ((moved,),) = trace.rows("SELECT coalesce(sum(bytes), 0)::BIGINT FROM bursts")

    assert moved == sum(level.value for level in levels)
    for level in levels:
        assert 0 <= level.value <= peak * min(width, trace.cycles - level.cycle)


def test_most_waited_channels(trace: Trace, tmp_path: Path) -> None:
    """Twelve at most, those first at which units waited longest for slots, then for elements."""
    write_page(trace, tmp_path / "run.html")
    data = page_data((tmp_path / "run.html").read_text("utf-8"))
    waits = (
        "SELECT channel, (sum(cycles) FILTER (cause = 'full'))::BIGINT AS for_slots, "
        "(sum(cycles) FILTER (cause = 'empty'))::BIGINT AS for_elements FROM waits "
        "WHERE cause IN ('full', 'empty') GROUP BY ALL ORDER BY channel"
    )
    longest = {channel: (full or 0, empty or 0) for channel, full, empty in trace.rows(waits)}
    longest = {channel: its for channel, its in longest.items() if any(its)}
    expected = sorted(longest, key=lambda channel: longest[channel], reverse=True)
    shown = [each["channel"] for each in data["held"]]

    assert [longest[each] for each in shown] == [longest[each] for each in expected[:12]]
    assert len({*shown}) == len(shown)


def test_bandwidth_query(trace: Trace) -> None:
    """No twentieth that the ready query shows is above the peak; together they are what moved."""
    _check_query(trace)


def test_bandwidth_query_has_room_to_make(tmp_path: Path) -> None:
    """Many readers ask at once: spread evenly, their bursts would be above the peak."""
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
    """Return the bytes of each twentieth: what is too much goes to those before, then after."""
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


def test_bandwidth_has_room_to_make(tmp_path: Path) -> None:
    """Of a program whose bursts overlap, even spreading alone would come above the peak."""
    _, trace = record(program("moe static"), tmp_path)
    bursts = trace.rows("SELECT submitted_cycle, end_cycle, bytes FROM bursts")
    spread = np.zeros(trace.cycles)
    for start, end, count in bursts:
        spread[start:end] += count / (end - start)
    peak = trace.meta["off_chip"]["peak_bytes_per_cycle"]

    assert spread.max() > peak
    assert peak == max(level.value for level in bandwidth(trace, 1))


def test_most_held(trace: Trace) -> None:
    """A stretch has the highest level that a channel had in it."""
    levels = dict(occupancy(trace))
    at = edges(*trace.window, 20_000)
    assert [] == most_held(trace, [], at)
    for entry in most_held(trace, [0, 1], at):
        held = np.zeros(trace.cycles + 1, np.int64)
        for level in levels.get(entry["channel"], []):
            held[level.cycle :] = level.value
        assert entry["most"] == [
            int(held[start : max(end, start + 1)].max()) for start, end in pairwise(at)
        ]


@pytest.mark.parametrize(
    ("first", "last", "rows", "stretches"),
    [
        (0, 9_999, 1, 4_096), (3, 9_999, 0, 4_096), (0, 9_999, 700, 1_000), (0, 9_999, 701, 998),
        (7, 9_999, 20_000, 64), (100, 163, 1, 63), (5, 6, 1, 1),
    ],
)  # fmt: skip
def test_edges(first: int, last: int, rows: int, stretches: int) -> None:
    """700,000 cells make 64 to 4,096 stretches of each row, none shorter than a cycle."""
    at = edges(first, last, rows).tolist()
    cycles = last - first
    assert at == [first + cycles * part // stretches for part in range(stretches + 1)]


@pytest.mark.parametrize(
    ("cycles", "peak", "note"),
    [
        (2_000, 4, "In single cycles; each burst is spread evenly over its time, but never above "
         "the peak."),
        (2_001, 3.99, "In stretches of 2 cycles; each burst is spread evenly over its time; the "
         "memory moved more than its description calls its peak."),
    ],
)  # fmt: skip
def test_memory(cycles: int, peak: float, note: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates are bytes by the cycles of a stretch; of 2,000 cycles each is one."""
    run: Any = SimpleNamespace(
        rows=lambda _: [(1,)], window=(0, 7), meta={"off_chip": {"peak_bytes_per_cycle": peak}}
    )
    widths = []

    def levels(_: object, width: int) -> list[Level]:
        widths.append(width)
        return [Level(0, 10), Level(3, 12), Level(6, 4)]

    monkeypatch.setattr(figures, "bandwidth", levels)
    found = memory(run, cycles)
    assert found == {
        "state": 3,
        "edges": [0, 3, 6, 7],
        "rates": [3.33, 4.0, 4.0],
        "moved": [10, 12, 4],
        "peak": peak,
        "mean": 26 / cycles,
        "note": note,
    }
    assert widths == [1 if cycles == 2_000 else 2]
    assert memory(run, 0) is None


def test_roots_of_units(tmp_path: Path) -> None:
    """Of each unit the page has the five roots that it was stalled for longest, and their ranks."""
    trace = record(program("simplified_moe"), tmp_path)[1]
    accounts = Accounts(trace)
    told = figures.figures(trace, accounts)
    names = [root["name"] for root in told["roots"]]
    for unit, charged in accounts.by_unit.items():
        expected = sorted(charged.items(), key=lambda each: (-each[1], each[0]))[:5]
        assert [(names[root], cycles) for root, cycles in told["charged_by_unit"][str(unit)]] == [
            (accounts.names.root(root), cycles) for root, cycles in expected
        ]
    assert 5 == max(map(len, told["charged_by_unit"].values()))
    assert max(map(len, accounts.by_unit.values())) > 5
    for number, root in enumerate(sorted({*accounts.charged, *accounts.on_path()})):
        assert root.unit == told["roots"][number]["unit"]
        stalled = sum(root in each for each in accounts.by_unit.values())
        assert stalled == told["roots"][number]["units"]


def test_what_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less room leaves fewer units and channels, each with all or nothing of it; it is said."""
    _, trace = record(program("moe static"), tmp_path)
    whole = _data(trace, tmp_path)
    size = (tmp_path / "run.html").stat().st_size
    kept = [sum(whole["detail"]["waits"]) + sum(whole["detail"]["transfers"])]
    for letters in (size - 2_500, size - 4_500, 0):
        monkeypatch.setattr(page, "_LETTERS", letters)
        data = _data(trace, tmp_path)
        counts = [data["detail"][each] for each in ("waits", "transfers")]
        sums = [sum(count or 0 for count in each) for each in counts]
        less = [each for each, of in zip(sums, counts, strict=True) if None in of]
        kept.append(sum(sums))
        stretch = data["edges"][1] - data["edges"][0]
        held = f"in stretches of {stretch:,} cycle{'s' * (stretch > 1)}"
        notes = []
        for number, (what, owners, which, others) in enumerate(
            (
                ("waits", "units", "the critical path's and the most stalled",
                 f"what they mostly did {held}"),
                ("transfers", "channels", "where units wait longest",
                 f"sums, and of some how many elements they held {held}"),
            )
        ):  # fmt: skip
            if None in counts[number]:
                kept_owners = sum(each is not None for each in counts[number])
                every = sum(whole["detail"][what])
                notes.append(
                    f"This page has {sums[number]:,} of {every:,} single {what}, those of "
                    f"{kept_owners:,} of {len(counts[number]):,} {owners}: {which}. Of the others "
                    f"it has {others}; `trace query` has all."
                )
        assert less
        assert notes == data["left_out"]
        _assert_same(whole, data)

    assert not whole["left_out"]
    assert kept == sorted({*kept}, reverse=True)
    assert not kept[-1]


def test_steps_of_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are there, neighbours through one root as one; or none where they are too many."""
    trace = record(program("swiglu"), tmp_path)[1]
    accounts = Accounts(trace)
    merged: list[list[int]] = []
    known = sorted({*accounts.charged, *accounts.on_path()})
    for step in accounts.path:
        if merged and merged[-1][1] == known.index(step.root):
            merged[-1][0] += step.end - step.start
        else:
            merged.append([step.end - step.start, known.index(step.root)])
    monkeypatch.setattr(figures, "_STEPS", len(merged))
    data = _data(trace, tmp_path)
    columns = [data["columns"][f"step.{name}"].tolist() for name in ("cycles", "root")]
    assert merged == [list(each) for each in zip(*columns, strict=True)]
    assert [] == data["left_out"]
    monkeypatch.setattr(figures, "_STEPS", len(merged) - 1)
    data = _data(trace, tmp_path)
    assert 0 == len(data["columns"]["step.cycles"])
    said = "The single steps of the critical path are too many for this page."
    assert [said] == data["left_out"]


def _data(trace: Trace, folder: Path) -> Data:
    write_page(trace, folder / "run.html")
    return page_data((folder / "run.html").read_text(encoding="utf-8"))


def _assert_same(whole: Data, part: Data) -> None:
    """What is left is what was there, and no figure is another."""
    for read, counts in ((waits_of, "waits"), (transfers_of, "transfers")):
        kept: Sequence[int | None] = part["detail"][counts]
        for owner, count in enumerate(kept):
            if count is not None:
                assert read(part, owner) == read(whole, owner)
    for told in ("units", "channels", "charged", "path", "phases", "shares", "memory"):
        assert whole[told] == part[told]


def test_letters() -> None:
    """Columns take as many letters of a page as are said beforehand, but for what names them."""
    numbers = np.random.default_rng(7).integers(0, 1 << 40, 5_000)
    columns = {"a": numbers, "b": numbers[::-1].copy()}
    assert len(packed({}, columns)) - 400 < compressed(columns) <= len(packed({}, columns))

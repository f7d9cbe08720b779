"""What is recorded: the stamps obey the channel's rules, under every schedule, at no change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric import ConfigurationError, Hop, simulate
from fabric.analysis.trace.export import export_trace
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.extend import Unit
from fabric.graph.values.value import Empty
from fabric.messages.telling.causes import Operation
from fabric.messages.telling.place import Place
from fabric.messages.telling.vocabulary import EVENTS, FIELDS, TABLES
from fabric.timing.engine.observed_channel import ObservedChannel
from fabric.timing.log.log_rows import KeptRows, as_long
from fabric.timing.log.tally import Tally, UnitEnd, wait_state, waits_of
from fabric.timing.log.watcher import Watcher
from fabric.timing.state.run_state import ChannelState, UnitState, WaitState
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import PROGRAMS, program, record
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule


class TestStamps:
    @pytest.mark.parametrize("name", PROGRAMS)
    def test_channel_rules(self, name: str, tmp_path: Path) -> None:
        """Credits, hops and dequeues are those of the design's section 2."""
        _, trace = record(program(name), tmp_path)
        rows = trace.rows(
            "SELECT channel, element, depth, reserved_cycle, sent_cycle, visible_cycle, "
            "seen_cycle, taken_cycle, send_wait_cycles, receive_wait_cycles "
            "FROM transfers JOIN channels USING (channel) ORDER BY channel, element"
        )
        taken = {(channel, element): row[5] for channel, element, *row in rows}

        for channel, element, depth, *stamps, send_wait, receive_wait in rows:
            reserved, sent, visible, seen, dequeued = stamps
            credit = taken.get((channel, element - depth), -1) + 1
            before = reserved - send_wait
            assert max(before, credit) == reserved <= sent < visible <= seen <= dequeued
            assert max(seen - receive_wait, visible) == seen

    @pytest.mark.parametrize("name", spread(PROGRAMS, 3))
    def test_tracing_changes_nothing(self, name: str, tmp_path: Path) -> None:
        """A traced run gives the report of one that is not, and every element has its row."""
        plain = simulate(program(name))
        traced, trace = record(program(name), tmp_path)

        assert plain == replace(traced, log_dir=None, wall_seconds=plain.wall_seconds)
        ((values,),) = trace.rows("SELECT count(*) FROM transfers WHERE NOT bare")
        assert plain.elements == values
        ((moved,),) = trace.rows("SELECT sum(bytes)::BIGINT FROM bursts")
        assert plain.hbm_bytes_moved == moved

    @pytest.mark.parametrize("order", SCHEDULES)
    def test_schedules(self, order: str | int, tmp_path: Path) -> None:
        """All that can be read from a trace is the same, byte for byte, under every schedule."""
        _, usual = record(program("simplified_moe"), tmp_path)
        with schedule(order):
            _, trace = record(program("simplified_moe"), tmp_path)

        for table in TABLES:
            assert usual.rows(f"FROM {table}") == trace.rows(f"FROM {table}")
        for form in ("perfetto", "vcd", "jsonl", "csv"):
            export_trace(usual, form, tmp_path / "a")
            export_trace(trace, form, tmp_path / "b")
            assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes(), form

    def test_segments(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It does not matter in how many segments the rows were written."""
        _, whole = record(program("simplified_moe"), tmp_path)
        monkeypatch.setattr("fabric.timing.log.log_rows._ROWS", 7)
        _, parts = record(program("simplified_moe"), tmp_path)

        assert len(list(parts.folder.glob("short-*.table"))) > 5
        for table in TABLES:
            assert whole.rows(f"FROM {table}") == parts.rows(f"FROM {table}")

    def test_one_segment(self, tmp_path: Path) -> None:
        """Rows are written when there is no more room for them, or the run has ended: here once."""
        _, trace = record(program("simplified_moe"), tmp_path)

        for kind in ("short", "long", "operations"):
            assert 1 == len(list(trace.folder.glob(f"{kind}-*.table"))), kind

    def test_held(self, tmp_path: Path) -> None:
        """What was sent and not dequeued when the program stopped has a row without an end."""
        _, trace = record(program("pack_rows"), tmp_path)

        held = trace.rows(
            "SELECT count(*), count(seen_cycle) FROM transfers WHERE taken_cycle IS NULL"
        )
        assert [(4, 0)] == held

    def test_left_over(self, tmp_path: Path) -> None:
        """Elements after the reader's end have rows, and are no steps of the reader."""
        wired = chain(("s0",), ("r0", "s0"), ("r0",), elements=5)
        _, trace = record(wired, tmp_path)

        assert [(0,)] == trace.rows("SELECT count(*) FROM operations WHERE wait_cycles < 0")


class TestParts:
    def test_window(self, tmp_path: Path) -> None:
        """A window keeps what is under way in it; its accounts are those of the window."""
        _, whole = record(program("swiglu"), tmp_path)
        _, part = record(program("swiglu"), tmp_path, TraceOptions(window=(300, 599)))

        kept = (
            "FROM transfers WHERE taken_cycle >= 300 AND "
            "least(reserved_cycle - send_wait_cycles, seen_cycle - receive_wait_cycles) <= 599"
        )
        assert (300, 600) == part.window
        assert whole.rows(kept) == part.rows("FROM transfers")
        waits = "SELECT unit, cause, sum(least(end_cycle, 600) - greatest(start_cycle, 300)) "
        waits += "FROM waits WHERE start_cycle < 600 AND end_cycle > 300 GROUP BY ALL ORDER BY ALL"
        assert whole.rows(waits) == part.rows(waits)

    def test_nodes(self, tmp_path: Path) -> None:
        """A pattern keeps the channels with an end at such a unit."""
        _, part = record(program("swiglu"), tmp_path, TraceOptions(nodes="matmul_sum_*"))

        ends = part.rows(
            "SELECT DISTINCT p.name, c.name FROM transfers JOIN channels USING (channel) "
            "JOIN units p ON p.unit = producer JOIN units c ON c.unit = consumer"
        )
        assert ends
        assert all("matmul_sum_" in producer + consumer for producer, consumer in ends)

    def test_no_such_node(self, tmp_path: Path) -> None:
        """A pattern that fits no unit is refused before anything is written."""
        with pytest.raises(ConfigurationError) as refused:
            record(program("swiglu"), tmp_path, TraceOptions(nodes="x*"))

        assert refused.value.message == (
            "--trace-nodes x*: no unit has such a name: expected a pattern of units such as "
            "linear_off_chip_load_1, linear_off_chip_load_2, matmul_sum_1, linear_off_chip_load_3, "
            "matmul_sum_2, silu_1, mul_1, reshape_1"
        )
        assert [] == list(tmp_path.iterdir())

    @pytest.mark.parametrize("window", ["5", "7:3", "a:b", ":4", "-1:3", "3:b", "3:"])
    def test_no_window(self, window: str) -> None:
        """A window is two cycles."""
        with pytest.raises(ConfigurationError) as refused:
            TraceOptions.parse(window, None)

        assert refused.value.message == (
            f"--trace-window {window}: expected C0:C1, two cycles, the first not after the last"
        )

    def test_windows(self) -> None:
        """A window may be one cycle; without any there is none."""
        assert TraceOptions((3, 3), "x*") == TraceOptions.parse("3:3", "x*")
        assert TraceOptions((0, 12), None) == TraceOptions.parse("0:12", None)
        assert TraceOptions(None, "x*") == TraceOptions.parse(None, "x*")


class TestVocabulary:
    def test_tables(self, tmp_path: Path) -> None:
        """Each table has the columns of the vocabulary, in that order."""
        _, trace = record(program("simplified_moe"), tmp_path)

        for table, columns in TABLES.items():
            assert columns == tuple(trace.numpy(f"FROM {table} LIMIT 0"))

    def test_every_field_is_explained(self) -> None:
        """Fields have one meaning each; none is explained and not used."""
        used = {field for fields in (*TABLES.values(), *EVENTS.values()) for field in fields}

        assert used == set(FIELDS)

    def test_written_with_the_trace(self, tmp_path: Path) -> None:
        """The trace carries its own documentation."""
        _, trace = record(program("simplified_moe"), tmp_path)

        expected = [
            (table, column, FIELDS[column].unit, FIELDS[column].meaning)
            for table, columns in TABLES.items()
            for column in columns
        ]
        assert expected == trace.rows("FROM columns")
        assert isinstance(trace, Trace)


def _watched() -> tuple[KeptRows, Watcher]:
    """Return what a watcher has written of a channel 1 from unit 0 to unit 1.

    An element is taken as it is seen, a bare stop later, one into a reserved slot, and two are left
    over; one goes on elsewhere. Stamps are numbers of operations, cycles and cycles waited.
    """
    kept = KeptRows()
    watcher = Watcher(kept.rows)
    producer, consumer = (
        Unit(name, at, Place("p.py", 1), bytes_per_cycle=1) for at, name in enumerate("ab")
    )
    producer.now, consumer.now = 6, 8
    clock: Any = None
    channel = ObservedChannel("a -> b", 2, producer, consumer, clock, Hop(2, 3), 1, lambda: 0)
    watcher.begin((producer, consumer), lambda: 0)
    told = watcher.watch(channel)
    assert told is not None
    told((True, 3), (0, 0, 0), (2, 2, 1), None)
    told((Empty(1), 5), (1, 1, 0), (3, 4, 2), (4, 6))
    told((True, 0), (5, 9, 5, -1, 4, 7), (11, 20, 0), None)
    watcher.left_over(channel, (True, 6), (7, 9, 0, 30, 7, 9), (12, 30, 10), 31)
    watcher.left_over(channel, (Empty(1), 7), (8, 40, 0), None, 42)
    watcher.fetched(channel, (True, 0), (9, 41, 0))
    watcher.allocated(producer, 16, (1, 2, 0))
    watcher.allocated(producer, 16, (1, 2, 3))
    watcher.burst(consumer, 4, (5, 16, 7))
    watcher.idled(channel, (10, 20, 6), 9)
    watcher.ended(channel, (13, 45, 15))
    watcher.requested(channel, 7, None, 30)
    watcher.requested(channel, 8, (3, 12, 0), 4)
    for size_bytes in 10, 10, 4, 4:
        watcher.sent_over_links(channel, size_bytes)
    watcher.waited_for_links(channel, 3)
    watcher.arrived(channel, (1, 1, 0), 5)
    watcher.was_busy(producer, (1, 1, 0), 5)
    watcher.chose(producer, (2, 2, 0))
    watcher.finished(consumer, (3, 3, 0))
    channel.reserved.append((14, 46, 2))
    watcher.finish()
    channel.queue.append((50, (Empty(0), 1)))
    channel._sent.append((15, 47, 1))
    return kept, watcher


class TestByHand:
    def test_rows(self) -> None:
        """What is told stands in the columns, and is handed out once."""
        kept, watcher = _watched()
        (short, long), operations = kept.take()
        assert short.tolist() == [[1, 0, 3, 2, 2, 1, 0, 0, 0]]
        assert as_long(short).tolist() == [[1, 0, 3, 2, 2, 1, 0, 0, 0, -1, 0, 0, 2, 2]]
        assert as_long(long) is long
        assert long.tolist() == [
            [1, 1, ~5, 4, 6, 2, 1, 1, 0, -1, 1, 1, 3, 4],
            [1, 2, 0, 11, 20, 0, 5, 9, 5, -1, 4, 7, 11, 20],
            [1, 3, 6, -2, 31, 10, 7, 9, 0, 30, 7, 9, 12, 30],
            [1, 4, ~7, -2, 42, 0, 8, 40, 0, -1, 8, 40, -2, 42],
            [1, 5, 0, -3, 0, 0, 9, 41, 0, -1, 9, 41, -3, 0],
        ]
        # Operation, unit, order, cycle, cycles waited, channel, amount.
        assert operations.tolist() == [
            [1, 0, 1, 2, 3, -1, 16], [0, 1, 5, 16, 7, -1, 4], [4, 1, 10, 20, 6, 1, 9],
            [2, 1, 13, 45, 15, 1, 0], [5, 0, 7, 0, -2, 1, 30], [5, 0, 8, 12, 3, 1, 4],
            [10, 0, 0, 6, 0, 1, 10], [10, 0, 2, 6, 0, 1, 4], [11, 1, 0, 8, 0, 1, 3],
            [6, 1, 1, 1, 0, 1, 5], [7, 0, 1, 1, 0, -1, 5], [9, 0, 2, 2, 0, -1, 0],
            [8, 1, 3, 3, 0, -1, 0], [3, 0, 14, 46, 2, 1, 0],
        ]  # fmt: skip
        assert watcher.pending == [(1, 6, ~1, -1, -1, 0, 15, 47, 1, -1, 15, 47, -1, -1)]
        (short, long), operations = kept.take()
        assert (len(short), len(long), len(operations)) == (0, 0, 0)

    def test_state(self) -> None:
        """What had happened by a cycle, and what waited in it: before and after an end."""
        kept, _ = _watched()
        (short, long), operations = kept.take()
        rows = np.concatenate([as_long(short), long[:4]])
        ways = np.array([[0, 1, 1, 1, 0], [0, 1, 2, 3, 0]])
        tally = Tally(2, ways)
        waits = waits_of(rows, operations, ways)
        # Unit, cause (an element, a slot, the memory, room), channel, end, cycles, one of several.
        assert sorted(waits.tolist()) == [
            [0, 1, 1, 7, 5, 0], [0, 1, 1, 46, 2, 0], [0, 3, -1, 2, 3, 0], [1, 0, 1, 2, 1, 0],
            [1, 0, 1, 4, 2, 0], [1, 0, 1, 20, 6, 1], [1, 0, 1, 30, 10, 0], [1, 0, 1, 45, 15, 0],
            [1, 2, -1, 16, 7, 0],
        ]  # fmt: skip
        end = tally.copy()
        under_way = tally.count(rows, waits, 25)
        found = {unit: wait_state(row) for unit, row in under_way.items()}
        wait = WaitState(Operation.RECEIVE, (1,), 20, any_of=False, stops=None)
        assert found == {1: wait}
        first: Any = (0, "a", "Map", "compute", Place("p.py", 1), 4)
        second: Any = (1, "b", "Map", "compute", Place("p.py", 2), 4)
        stems: Any = [(each, f"c{each}", f"c{each}", 0, 1, "tile", 2, 1, 1) for each in range(2)]
        assert tally.units([first, second], found, {}, 25) == (
            UnitState._make((*first, 25, False, None, 25 - 5 - 3, 0, 3, None)),
            UnitState._make((*second, 20, False, wait, 20 - 9 - 7, 7, 0, None)),
        )
        # Held, sent, taken, bare stops, end, newest and last cycle, most slots; cycles waited.
        nothing = (0, 0, 0, 0, None, None, None, 0, 0, 0, 0, 0)
        assert tally.channels(stems, {}, {}) == (
            ChannelState._make((*stems[0], *nothing)),
            ChannelState._make((*stems[1], 1, 3, 2, 1, None, 28, 20, 2, 1 + 2 + 6, 2, 3, 0)),
        )
        under_way = end.count(rows, waits, 50)
        assert under_way == {}
        ends = {0: UnitEnd(48, finished=True, busy_cycles=None, flops=9)}
        ends[1] = UnitEnd(50, finished=True, busy_cycles=3, flops=None)
        assert end.units([first, second], {}, ends, 60) == (
            UnitState._make((*first, 48, True, None, 48 - 7 - 3, 0, 3, 9)),
            UnitState._make((*second, 50, True, None, 3, 7, 0, None)),
        )
        full, credit = 2 + 0, 3 + 2
        for taken, known in ({}, 3), ({1: 7}, 7):
            assert end.channels(stems, {1: 33}, taken) == (
                ChannelState._make((*stems[0], *nothing)),
                ChannelState._make(
                    (*stems[1], 0, known, known, 2, 33, None, 20, 2, 9 + 25, full, credit, 1)
                ),
            )

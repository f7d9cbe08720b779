"""What is recorded: the stamps obey the channel's rules, under every schedule, at no change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabric import ConfigurationError, simulate
from fabric.analysis.trace.export import export_trace
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.messages.telling.vocabulary import EVENTS, FIELDS, TABLES
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

    @pytest.mark.parametrize("window", ["5", "7:3", "a:b", ":4", "-1:3"])
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
            found = trace.cursor().execute(f"FROM {table} LIMIT 0").description
            assert columns == tuple(column[0] for column in found or ())

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

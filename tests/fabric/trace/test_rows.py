from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabric import ConfigurationError, simulate
from fabric.analysis.trace.export import export_trace
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.messages.vocabulary import EVENTS, FIELDS, TABLES
from tests.fabric.trace.recording import PROGRAMS, program, record
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule


@pytest.mark.parametrize("name", spread(PROGRAMS, 3))
def test_traced_run_has_the_report_of_an_untraced_one(name: str, tmp_path: Path) -> None:
    plain = simulate(program(name))
    traced, trace = record(program(name), tmp_path)

    assert plain == replace(traced, log_dir=None, wall_seconds=plain.wall_seconds)
    ((values,),) = trace.rows("SELECT count(*) FROM transfers WHERE NOT bare")
    assert plain.elements == values
    ((moved,),) = trace.rows("SELECT sum(bytes)::BIGINT FROM bursts")
    assert plain.hbm_bytes_moved == moved


@pytest.mark.parametrize("order", spread(SCHEDULES, 1))
def test_trace_is_equal_under_every_schedule(order: str | int, tmp_path: Path) -> None:
    _, usual = record(program("simplified_moe"), tmp_path)
    with schedule(order):
        _, trace = record(program("simplified_moe"), tmp_path)

    for table in TABLES:
        assert usual.rows(f"FROM {table}") == trace.rows(f"FROM {table}")
    for form in ("perfetto", "vcd", "jsonl", "csv"):
        export_trace(usual, form, tmp_path / "a")
        export_trace(trace, form, tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes(), form


@pytest.mark.deep
def test_trace_is_equal_for_any_number_of_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole = record(program("simplified_moe"), tmp_path)
    monkeypatch.setattr("fabric.timing.log.log_rows._ROWS", 7)
    _, parts = record(program("simplified_moe"), tmp_path)

    assert len(list(parts.folder.glob("short-*.parquet"))) > 5
    for table in TABLES:
        assert whole.rows(f"FROM {table}") == parts.rows(f"FROM {table}")


def test_window_keeps_the_rows_under_way_in_it(tmp_path: Path) -> None:
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


def test_nodes_pattern_keeps_channels_with_a_matching_end(tmp_path: Path) -> None:
    _, part = record(program("swiglu"), tmp_path, TraceOptions(nodes="matmul_sum_*"))

    ends = part.rows(
        "SELECT DISTINCT p.name, c.name FROM transfers JOIN channels USING (channel) "
        "JOIN units p ON p.unit = producer JOIN units c ON c.unit = consumer"
    )
    assert ends
    assert all("matmul_sum_" in producer + consumer for producer, consumer in ends)


def test_nodes_pattern_without_a_match_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        record(program("swiglu"), tmp_path, TraceOptions(nodes="x*"))

    assert refused.value.message == (
        "--trace-nodes x*: no unit has such a name: expected a pattern of units such as "
        "linear_off_chip_load_1, linear_off_chip_load_2, matmul_sum_1, linear_off_chip_load_3, "
        "matmul_sum_2, silu_1, mul_1, reshape_1"
    )
    assert [] == list(tmp_path.iterdir())


def test_vocabulary_explains_every_field_of_a_trace() -> None:
    used = {field for fields in (*TABLES.values(), *EVENTS.values()) for field in fields}

    assert used <= set(FIELDS)


def test_trace_has_the_documentation_of_its_columns(tmp_path: Path) -> None:
    _, trace = record(program("simplified_moe"), tmp_path)

    expected = [
        (table, column, FIELDS[column].unit, FIELDS[column].meaning)
        for table, columns in TABLES.items()
        for column in columns
    ]
    assert expected == trace.rows("FROM columns")
    assert isinstance(trace, Trace)

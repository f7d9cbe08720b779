from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabric import simulate
from fabric.analysis.trace.export import export_trace
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.messages.vocabulary import FIELDS, TABLES
from tests.fabric.trace.recording import PROGRAMS, program, record
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule


@pytest.mark.parametrize("name", spread(PROGRAMS, 2))
def test_traced_run_has_the_report_of_an_untraced_one(name: str, tmp_path: Path) -> None:
    plain = simulate(program(name))
    traced, trace = record(program(name), tmp_path)

    assert plain == replace(traced, log_dir=None, wall_seconds=plain.wall_seconds)
    ((values,),) = trace.rows("SELECT count(*) FROM transfers WHERE NOT bare")
    assert plain.elements == values
    ((moved,),) = trace.rows("SELECT sum(bytes)::BIGINT FROM bursts")
    assert plain.hbm_bytes_moved == moved


@pytest.mark.parametrize("order", spread(SCHEDULES, 1))
def test_trace_is_equal_under_every_schedule_and_in_many_segments(
    order: str | int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, usual = record(program("simplified_moe"), tmp_path)
    monkeypatch.setattr("fabric.timing.engine.log.ROWS", 1)
    with schedule(order):
        _, trace = record(program("simplified_moe"), tmp_path)

    assert len(list(trace.folder.glob("operations-*.parquet"))) > 5
    for table in TABLES:
        assert usual.rows(f"FROM {table}") == trace.rows(f"FROM {table}")
    for form in ("perfetto", "vcd", "jsonl", "csv"):
        export_trace(usual, form, tmp_path / "a")
        export_trace(trace, form, tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes(), form


_UNDER_WAY = (
    "least(reserved_cycle - send_wait_cycles, seen_cycle - receive_wait_cycles) <= {last} "
    "AND coalesce(taken_cycle >= {first}, true) ORDER BY channel, element"
)


@pytest.mark.parametrize("engine", ["tasks", "compiled"])
@pytest.mark.parametrize("name", spread(["swiglu", "attention", "moe regions", "pack_rows"], 1))
def test_window_keeps_the_rows_under_way_in_it(
    name: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode = "timing" if engine == "compiled" else None
    _, whole = record(program(name), tmp_path, mode=mode, engine=engine)
    first, last = whole.cycles // 3, whole.cycles // 2
    monkeypatch.setattr("fabric.timing.engine.log.ROWS", 300)
    window = TraceOptions(window=(first, last))
    report, part = record(program(name), tmp_path, window, mode=mode, engine=engine)

    assert () == report.unwritten
    assert (first, last + 1) == part.window
    for query in (
        f"FROM transfers WHERE {_UNDER_WAY.format(first=first, last=last)}",
        f"FROM bursts WHERE submitted_cycle <= {last} AND end_cycle >= {first}",
        f"FROM waits WHERE start_cycle <= {last} AND end_cycle > {first}",
        "SELECT unit, operation, cycle, wait_cycles, channel, element FROM operations "
        f'WHERE cycle BETWEEN {first} AND {last} ORDER BY unit, "order"',
        "FROM states",
    ):
        assert whole.rows(query) == part.rows(query), query


def test_nodes_pattern_keeps_channels_with_a_matching_end(tmp_path: Path) -> None:
    _, part = record(program("swiglu"), tmp_path, TraceOptions(nodes="matmul_sum_*"))

    ends = part.rows(
        "SELECT DISTINCT p.name, c.name FROM transfers JOIN channels USING (channel) "
        "JOIN units p ON p.unit = producer JOIN units c ON c.unit = consumer"
    )
    assert ends
    assert all("matmul_sum_" in producer + consumer for producer, consumer in ends)


def test_trace_has_the_documentation_of_its_columns(tmp_path: Path) -> None:
    _, trace = record(program("simplified_moe"), tmp_path)

    expected = [
        (table, column, FIELDS[column].unit, FIELDS[column].meaning)
        for table, columns in TABLES.items()
        for column in columns
    ]
    assert expected == trace.rows("FROM columns")
    assert isinstance(trace, Trace)

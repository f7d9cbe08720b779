from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Outcome, Study, grid
from fabric.explore.study.outcome import METRICS
from fabric.explore.study.result import StudyResult
from fabric.explore.study.written.folder import columns_of, write_points
from tests.fabric.study.written.made import design, over_inputs
from tests.profiles import examples


def written(result: StudyResult, folder: Path) -> list[dict[str, Any]]:
    write_points(result, folder)
    found = duckdb.connect().execute(
        "SELECT * FROM read_parquet($1)", [str(folder / "points.parquet")]
    )
    names = [each[0] for each in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_points_file_has_a_row_for_each_point(tmp_path: Path) -> None:
    result = design()
    rows = written(result, tmp_path)

    assert [row["index"] for row in rows] == list(range(24))
    for row, outcome in zip(rows, result.outcomes, strict=True):
        fields = outcome.as_json()
        for name in (*outcome.setting, "status", "reason", "wall_seconds"):
            assert row[name] == fields.get(name, outcome.setting.get(name))
        assert row["pruned_by"] == (None if outcome.pruned_by is None else str(outcome.pruned_by))
        for name in (*METRICS, "extra.rows"):
            assert row[name] == outcome.numbers.get(name)
        for name in ("cycles", "on_chip_requirement_bytes"):
            assert row[f"bound.{name}"] == outcome.bounds.get(name)


def test_runs_file_has_a_row_for_each_run(tmp_path: Path) -> None:
    result = over_inputs()
    write_points(result, tmp_path)

    rows = pl.read_parquet(tmp_path / "runs.parquet").to_dicts()
    assert len(rows) == len(result.runs)
    designs = list(result.study.space)
    for row, run in zip(rows, result.runs, strict=True):
        assert row["index"] == run.index
        assert row["tile_n"] == designs[row["design"]]["tile_n"]
        assert row["routing"] == run.setting["routing"]
        assert row["held_out"] is result.study.is_held_out(run.index)
        assert row["cycles"] == run.numbers.get("cycles")
        assert row["status"] == run.status
    with (tmp_path / "runs.csv").open(encoding="utf-8") as file:
        assert [int(row["design"]) for row in csv.DictReader(file)] == [
            row["design"] for row in rows
        ]


VALUES = st.one_of(
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(st.characters(codec="utf-8", exclude_characters="\0")),
)


@examples(quick=5, deep=20)
@given(values=st.lists(VALUES, min_size=1, max_size=6))
def test_points_file_keeps_any_value(
    values: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    study = Study(program=Path("x.py"), space=grid(a=range(len(values))))
    outcomes = tuple(
        Outcome(index=n, setting={"a": n}, status="completed", numbers={"extra.x": value})
        for n, value in enumerate(values)
    )
    result = StudyResult(study, outcomes)
    kind = next(kind for name, kind, _ in columns_of(result) if name == "extra.x")
    rows = written(result, tmp_path_factory.mktemp("points"))
    for row, value in zip(rows, values, strict=True):
        found = row["extra.x"]
        if value is None or kind != "VARCHAR":
            assert found == value or (math.isnan(found) and math.isnan(value))
        elif isinstance(value, str):
            assert found == value
        else:
            assert found in {str(value), str(value).lower(), f'"{value}"'}

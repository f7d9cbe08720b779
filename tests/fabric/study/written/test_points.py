"""Points as files: read back by what people read them with, they are what the study found."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Outcome, Study, grid
from fabric.explore.study.outcome import METRICS
from fabric.explore.study.result import StudyResult
from fabric.explore.study.written.folder import columns_of, write_points
from tests.fabric.study.written.made import RESULTS, design, hostile, over_inputs
from tests.profiles import examples


def written(result: StudyResult, folder: Path) -> list[dict[str, Any]]:
    """Write the points, and return them as DuckDB reads the Parquet file."""
    write_points(result, folder)
    found = duckdb.connect().execute(
        "SELECT * FROM read_parquet($1)", [str(folder / "points.parquet")]
    )
    names = [each[0] for each in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_rows(tmp_path: Path) -> None:
    """One row a point: what varies, how it ended, every number, and what was known before."""
    result = design()
    rows = written(result, tmp_path)

    assert [row["index"] for row in rows] == list(range(24))
    for row, outcome in zip(rows, result.outcomes, strict=True):
        told = outcome.as_json()
        for name in (*outcome.setting, "status", "reason", "wall_seconds"):
            assert row[name] == told.get(name, outcome.setting.get(name))
        assert row["pruned_by"] == (None if outcome.pruned_by is None else str(outcome.pruned_by))
        for name in (*METRICS, "extra.rows"):
            assert row[name] == outcome.numbers.get(name)
        for name in ("cycles", "on_chip_requirement_bytes"):
            assert row[f"bound.{name}"] == outcome.bounds.get(name)


def test_types(tmp_path: Path) -> None:
    """Columns have the types of what is in them, also where a study has none of it."""
    for result in (design(), RESULTS["nothing"]()):
        write_points(result, tmp_path)
        kinds = dict(pl.read_parquet_schema(tmp_path / "points.parquet"))
        assert kinds["index"] == kinds["cycles"] == pl.Int64
        assert kinds["compute_utilization"] == kinds["wall_seconds"] == pl.Float64
        assert kinds["status"] == kinds["pruned_by"] == kinds["reason"] == pl.String


@pytest.mark.parametrize("name", RESULTS)
def test_readers(name: str, tmp_path: Path) -> None:
    """Pandas and polars read the same from both files as DuckDB."""
    result = RESULTS[name]()
    rows = written(result, tmp_path)
    assert len(rows) == len(result.outcomes)

    assert pl.read_parquet(tmp_path / "points.parquet").to_dicts() == rows
    frame = pd.read_parquet(tmp_path / "points.parquet")
    assert list(frame.columns) == list(rows[0])
    assert frame["status"].tolist() == [row["status"] for row in rows]
    of_csv = pd.read_csv(tmp_path / "points.csv", keep_default_na=False, dtype=str)
    assert of_csv["reason"].tolist() == [row["reason"] or "" for row in rows]
    name = "worst:cycles" if result.study.has_inputs else "cycles"
    assert of_csv[name].tolist() == [_as_text(row[name]) for row in rows]


def test_runs_over_inputs(tmp_path: Path) -> None:
    """A row for each run, with its design, its input, and all metrics of its report."""
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


def test_names(tmp_path: Path) -> None:
    """Axes that are called as another column keep their values; whole numbers keep all digits."""
    result = hostile()
    rows = written(result, tmp_path)

    for row, outcome in zip(rows, result.outcomes, strict=True):
        assert row["axis.Cycles"] == outcome.setting["Cycles"]
        assert row["axis.index"] == outcome.setting["index"]
        assert row["index"] == outcome.index


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False, None], "BOOLEAN"),
        ([True, 1], "VARCHAR"),
        ([2**63 - 1, 1 - 2**63], "BIGINT"),
        ([1, 2**63], "DECIMAL(38, 0)"),
        ([-(10**38) + 1], "DECIMAL(38, 0)"),
        ([1, -(10**38)], "VARCHAR"),
        ([1, 1.5, None], "DOUBLE"),
        ([2**53, 2**126, 1.5], "DOUBLE"),
        ([2**53 + 1, 1.5], "VARCHAR"),
        ([2**127, 1.5], "VARCHAR"),
        ([1, "1"], "VARCHAR"),
        ([None], "VARCHAR"),
    ],
)
def test_narrowest(values: list[Any], kind: str) -> None:
    """A column has the narrowest type that holds all of its values exactly."""
    study = Study(
        program=Path("x.py"), space=grid({"index": range(len(values)), "axis.index": (1,)})
    )
    outcomes = tuple(
        Outcome(index=n, setting=study.space[n], status="completed", numbers={"extra.x": value})
        for n, value in enumerate(values)
    )
    found = {
        name: (kind, column) for name, kind, column in columns_of(StudyResult(study, outcomes))
    }
    texts = [None if each is None else str(each).lower() for each in values]
    assert found["extra.x"] == (kind, texts if kind == "VARCHAR" else values)
    assert found["axis.index"] == found["index"] == ("BIGINT", list(range(len(values))))
    assert found["axis.axis.index"] == ("BIGINT", [1] * len(values))


VALUES = st.one_of(
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(st.characters(codec="utf-8", exclude_characters="\0")),
)


@examples(quick=10, deep=20)
@given(values=st.lists(VALUES, min_size=1, max_size=6))
def test_any_numbers(values: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever a program adds to its report comes back as it was, or as JSON has it in a text."""
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


def test_again(tmp_path: Path) -> None:
    """The same points are the same bytes, and take the place of what was there."""
    files = ("points.parquet", "points.csv")
    write_points(replace(design(), outcomes=design().outcomes[:3]), tmp_path)
    write_points(design(), tmp_path)
    first = [(tmp_path / name).read_bytes() for name in files]
    write_points(design(), tmp_path)

    assert [(tmp_path / name).read_bytes() for name in files] == first
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(files)
    with (tmp_path / "points.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 24


def test_folders_that_are_patterns(tmp_path: Path) -> None:
    """A folder may have a name that the database would read something into."""
    folder = tmp_path / "a=*[b]'?"
    folder.mkdir()
    write_points(design(), folder)
    assert len(pl.read_parquet((folder / "points.parquet").read_bytes())) == 24


def _as_text(value: int | None) -> str:
    return "" if value is None else str(value)

"""All points of a study as a table: ``points.parquet`` and ``points.csv``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.runs.report import Report
from fabric.study.conditions import METRICS
from fabric.telling.plain import plain as as_json
from fabric.telling.whole_file import beside
from fabric.trace.reading.paths import literal, plain, system_errors

if TYPE_CHECKING:
    import duckdb

    from fabric.study.outcome import Outcome
    from fabric.study.result import StudyResult

__all__ = ["Column", "columns_of", "columns_of_runs", "write_points"]

_FORMS: Final = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "csv": "FORMAT csv, HEADER",
}
_KNOWN: Final = {
    **{each.name: "DOUBLE" if "float" in each.type else "BIGINT" for each in fields(Report)},
    "pruned_by": "VARCHAR",
    "reason": "VARCHAR",
}
"""Types of columns that every study has, whatever is in them."""

_LARGEST: Final = 2**63
_DECIMALS: Final = 10**38

Column = tuple[str, str, list[object]]
"""Its name, its type in SQL, and a value for each point."""


def write_points(result: StudyResult, folder: Path) -> None:
    """Write the points into ``folder``, which exists: one row each, in the order of the space.

    Columns: ``index``, every axis, ``status``, ``pruned_by``, ``reason``, ``wall_seconds``, every
    number of the report, ``extra.NAME``, and ``bound.NAME`` for what was known before the run. An
    axis that is called as another column is ``axis.NAME``: names are told apart by more than case.
    Of designs over inputs there are their statistics, and ``runs.parquet`` and ``runs.csv`` have a
    row for each run, with its ``design`` and whether its input was ``held_out``.

    Raises:
        OSError: a file cannot be written; what was there before stays.
    """
    tables = {"points": columns_of(result)}
    if result.study.has_inputs:
        tables["runs"] = columns_of_runs(result)
    for name, columns in tables.items():
        _write(columns, folder / name)


def _write(columns: Sequence[Column], path: Path) -> None:
    import duckdb

    lists = ", ".join(
        f"unnest(${number}::{kind}[]) AS {_quoted(name)}"
        for number, (name, kind, _) in enumerate(columns, 1)
    )
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(f"CREATE TABLE points AS SELECT {lists}", [each[2] for each in columns])
        for suffix, form in _FORMS.items():
            _copy(database, path.with_name(f"{path.name}.{suffix}"), form)


def columns_of(result: StudyResult) -> list[Column]:
    """Return the columns, each with a value for each point that was dealt with."""
    metrics = () if result.study.has_inputs else METRICS
    return _columns(result.outcomes, list(result.study.space.values), metrics, {})


def columns_of_runs(result: StudyResult) -> list[Column]:
    """Return the columns of the runs of designs over inputs, each with a value for each run."""
    study, runs = result.study, result.runs
    own: dict[str, list[object]] = {
        "design": [study.design_of(each.index) for each in runs],
        "held_out": [study.is_held_out(each.index) for each in runs],
    }
    return _columns(runs, list(study.runs.values), METRICS, own)


def _columns(
    outcomes: Sequence[Outcome],
    axes: Sequence[str],
    metrics: Sequence[str],
    own: Mapping[str, list[object]],
) -> list[Column]:
    """Return the columns of outcomes; ``own`` are those that stand before all others."""
    extra = dict.fromkeys(name for each in outcomes for name in each.numbers if name not in metrics)
    bounds = dict.fromkeys(name for each in outcomes for name in each.bounds)
    rest: list[Column] = [("status", "VARCHAR", [each.status for each in outcomes])]
    rest += [
        _column(name, [getattr(each, name) for each in outcomes])
        for name in ("pruned_by", "reason", "wall_seconds")
    ]
    rest += [
        _column(name, [each.numbers.get(name) for each in outcomes]) for name in (*metrics, *extra)
    ]
    rest += [
        _column(f"bound.{name}", [each.bounds.get(name) for each in outcomes]) for name in bounds
    ]
    taken = {"index", *own, *(name.casefold() for name, _, _ in rest)}
    found: list[Column] = [("index", "BIGINT", [each.index for each in outcomes])]
    found += [_column(name, values) for name, values in own.items()]
    for axis in axes:
        name = axis
        while name.casefold() in taken:
            name = f"axis.{name}"
        taken.add(name.casefold())
        found.append(_column(name, [each.setting.get(axis) for each in outcomes]))
    return [*found, *rest]


def _column(name: str, values: list[object]) -> Column:
    """Return a column with the narrowest type that holds all of its values exactly."""
    there = [each for each in values if each is not None]
    kind = _KNOWN.get(name) if not there or name in ("pruned_by", "reason") else _type_of(there)
    if kind is None:
        kind = "VARCHAR"
    return name, kind, [_text(each) for each in values] if kind == "VARCHAR" else values


def _type_of(values: Sequence[object]) -> str:
    kinds = set(map(type, values))
    if kinds == {bool}:
        return "BOOLEAN"
    whole = [each for each in values if isinstance(each, int)]
    largest = max(map(abs, whole), default=0)
    if kinds == {int}:
        if largest < _LARGEST:
            return "BIGINT"
        return "DECIMAL(38, 0)" if largest < _DECIMALS else "VARCHAR"
    exact = all(float(each) == each for each in whole) if largest < _DECIMALS else False
    return "DOUBLE" if kinds <= {int, float} and exact else "VARCHAR"


def _text(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        value = json.dumps(as_json(value))
    # Half of a character, as in a path that is not UTF-8, is no text for the database.
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _copy(database: duckdb.DuckDBPyConnection, path: Path, form: str) -> None:
    with beside(path) as other, plain(path.parent) as folder, system_errors():
        file = literal(folder / other.name)
        database.execute(f"COPY points TO {file} ({form}, USE_TMP_FILE false)")


def _quoted(name: str) -> str:
    """Return a name of a column as SQL has it."""
    text = name.encode("utf-8", "backslashreplace").decode("utf-8").replace('"', '""')
    return f'"{text}"'

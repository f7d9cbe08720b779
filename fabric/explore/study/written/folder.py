"""Write a study's folder: points, pictures and page. Each file is replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.analysis.trace.database import Connection, literal, plain, system_errors
from fabric.analysis.trace.pages.parts import filled, head
from fabric.display.html import fragment, section, text
from fabric.display.parts import Fold, Markup, Rows
from fabric.explore.study.outcome import METRICS
from fabric.explore.study.written.answer import verdict_counts, verdicts_text
from fabric.explore.study.written.markup import image, own_part, style
from fabric.explore.study.written.page import page_html
from fabric.explore.study.written.pictures import drawn, first_pictures
from fabric.explore.study.written.sheet import beside_sheet, claims_sheet, head_sheet
from fabric.messages.files import atomic, write_whole
from fabric.messages.text import counted, file_name
from fabric.messages.text import plain as as_json
from fabric.runs.report import Report

if TYPE_CHECKING:
    from fabric.explore.study.outcome import Outcome
    from fabric.explore.study.result import Judged, StudyResult
    from fabric.explore.study.written.pictures import Drawn


def study_folder(result: StudyResult, folder: Path) -> Path:
    """Return the folder of one study in the common ``folder`` of several."""
    return folder / file_name(result.study.name)


def write_folder(result: StudyResult, folder: Path) -> list[str]:
    """Write ``points.parquet``, ``points.csv``, pictures and ``index.html``.

    Returns a sentence for each failure; a file that cannot be replaced stays.
    """
    pictures, troubles = drawn(result)
    page = page_html(result, pictures)
    troubles += write_files(
        folder,
        {
            "points": lambda: write_points(result, folder),
            "pictures": lambda: write_pictures(folder / "pictures", pictures),
            "index.html": lambda: write_whole(folder / "index.html", page),
        },
    )
    return troubles


def write_overview(results: Sequence[StudyResult], folder: Path) -> list[str]:
    """Write ``index.html`` of several studies; ``folder`` has the folder of each.

    Returns a sentence for each failure.
    """
    file = folder / "index.html"
    return write_files(folder, {file.name: lambda: write_whole(file, _overview(results, folder))})


def _overview(results: Sequence[StudyResult], folder: Path) -> str:
    claims = [each.judged_claims for each in results]
    every = [row for rows in claims for row in rows]
    verdicts = list(verdict_counts(every))
    points = sum(len(each.study.space) for each in results)
    several = "study" if len(results) == 1 else "studies"
    sentence = f"{len(results):,} {several}, {counted(points, 'point')}"
    if every:
        sentence += f". Of {counted(len(every), 'claim')}: {verdicts_text(every)}"
    studies = [
        _study(each, number, study_folder(each, folder)) for number, each in enumerate(results, 1)
    ]
    return filled(
        own_part("overview.html"),
        {
            "head": head("Studies", style(), "style-src 'unsafe-inline'; img-src data:"),
            "title": "Studies",
            "answer": text(f"{sentence}."),
            "summary": section("All studies", _summary(results, claims, verdicts), "summary"),
            "studies": "\n".join(studies),
        },
    )


def _summary(
    results: Sequence[StudyResult], claims: Sequence[Sequence[Judged]], verdicts: Sequence[str]
) -> str:
    columns = ("study", "question", "points", "ran", "pruned", "failed", *verdicts)
    rows: list[Sequence[object]] = []
    for number, (result, judgements) in enumerate(zip(results, claims, strict=True), 1):
        of = verdict_counts(judgements)
        here = result.counts
        completed = sum(each.status == "completed" for each in result.outcomes)
        rows.append(
            (
                Markup(f'<a href="#study-{number}">{text(result.study.name)}</a>'),
                result.study.question,
                here["total"],
                completed,
                here["pruned"],
                here["failed"],
                *(of.get(name) for name in verdicts),
            )
        )
    sums = [sum(int(row[n] or 0) for row in rows) for n in range(2, len(columns))]  # type: ignore[call-overload]
    rows.append(("all", "", *sums))
    return fragment([Rows(columns, rows)])


def _study(result: StudyResult, number: int, folder: Path) -> str:
    study = result.study
    link = f'<p><a href="{text(folder.name)}/index.html">all points, front and pictures</a></p>'
    question = f"<p><b>{text(study.question)}</b></p>" if study.question else ""
    images = "\n".join(
        f"<h3>{text(each.title)}</h3>{image(each)}" for each in first_pictures(result, folder)
    )
    published = [*beside_sheet(result)][1:]
    folds = [Fold("Published values beside ours", published)] if published else []
    parts = (
        question,
        fragment(head_sheet(result)),
        link,
        images,
        fragment([*folds, *claims_sheet(result)]),
    )
    return section(study.name, "\n".join(filter(None, parts)), f"study-{number}")


_FORMS: Final = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "csv": "FORMAT csv, HEADER",
}

_SQL_TYPES: Final = {
    **{each.name: "DOUBLE" if "float" in each.type else "BIGINT" for each in fields(Report)},
    "pruned_by": "VARCHAR",
    "reason": "VARCHAR",
}

_BIGINT_END: Final = 2**63
_DECIMAL_END: Final = 10**38

Column = tuple[str, str, list[object]]
"""Name, SQL type, and a value for each point."""


def write_points(result: StudyResult, folder: Path) -> None:
    """Write the points into an existing folder, a row each, in the order of the space.

    Columns: ``index``, every axis, ``status``, ``pruned_by``, ``reason``, ``wall_seconds``, every
    number of the report, ``extra.NAME``, and ``bound.NAME`` for bounds before the run. An axis
    with the name of another column, in any case, is ``axis.NAME``. If designs run with inputs,
    numbers are statistics, and ``runs.parquet`` and ``runs.csv`` have a row for each run, with its
    ``design`` and whether its input was ``held_out``. ``again.parquet`` and ``again.csv`` have the
    points that ran with the changes of ``Study.again``.
    """
    tables = {"points": columns_of(result)}
    if result.again is not None:
        rows = [row for _, outcomes in result.changed() for row in outcomes.items()]
        again = replace(result.again, outcomes=tuple(each for _, each in rows))
        tables["again"] = columns_of(again, {"design": [design for design, _ in rows]})
    if result.study.has_inputs:
        tables["runs"] = columns_of_runs(result)
    for name, columns in tables.items():
        _write(columns, folder / name)


def _write(columns: Sequence[Column], path: Path) -> None:
    lists = ", ".join(
        f"unnest(${number}::{kind}[]) AS {_quoted(name)}"
        for number, (name, kind, _) in enumerate(columns, 1)
    )
    database = Connection()
    database.execute("SET threads = 1")
    database.execute(f"CREATE TABLE points AS SELECT {lists}", [each[2] for each in columns])
    for suffix, form in _FORMS.items():
        name = f"{path.name}.{suffix}"
        with atomic(path.with_name(name)) as other, plain(path.parent) as folder, system_errors():
            file = literal(folder / other.name)
            database.execute(f"COPY points TO {file} ({form}, USE_TMP_FILE false)")
    database.close()


def columns_of(result: StudyResult, own: Mapping[str, list[object]] | None = None) -> list[Column]:
    """Return the columns of the outcomes; ``own`` are further columns."""
    metrics = () if result.study.has_inputs else METRICS
    return _columns(result.outcomes, list(result.study.space.values), metrics, own or {})


def columns_of_runs(result: StudyResult) -> list[Column]:
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
    first: list[Column] = [("index", "BIGINT", [each.index for each in outcomes])]
    first += [_column(name, values) for name, values in own.items()]
    for axis in axes:
        name = axis
        while name.casefold() in taken:
            name = f"axis.{name}"
        taken.add(name.casefold())
        first.append(_column(name, [each.setting.get(axis) for each in outcomes]))
    return [*first, *rest]


def _column(name: str, values: list[object]) -> Column:
    present = [each for each in values if each is not None]
    if not present or name in ("pruned_by", "reason"):
        kind = _SQL_TYPES.get(name, "VARCHAR")
    else:
        kind = _type_of(present)
    return name, kind, [_text(each) for each in values] if kind == "VARCHAR" else values


def _type_of(values: Sequence[object]) -> str:
    kinds = set(map(type, values))
    if kinds == {bool}:
        return "BOOLEAN"
    whole = [each for each in values if isinstance(each, int)]
    largest = max(map(abs, whole), default=0)
    if kinds == {int}:
        if largest < _BIGINT_END:
            return "BIGINT"
        return "DECIMAL(38, 0)" if largest < _DECIMAL_END else "VARCHAR"
    exact = all(float(each) == each for each in whole) if largest < _DECIMAL_END else False
    return "DOUBLE" if kinds <= {int, float} and exact else "VARCHAR"


def _text(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        value = json.dumps(as_json(value))
    # A lone surrogate, as in a path that is not UTF-8, cannot be encoded.
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _quoted(name: str) -> str:
    text = name.encode("utf-8", "backslashreplace").decode("utf-8").replace('"', '""')
    return f'"{text}"'


def write_pictures(folder: Path, pictures: Sequence[Drawn]) -> None:
    folder.mkdir(exist_ok=True)
    for picture in pictures:
        write_whole(folder / f"{picture.name}.svg", picture.svg)
        with atomic(folder / f"{picture.name}.png") as other:
            other.write_bytes(picture.png)


def write_files(folder: Path, writers: Mapping[str, Callable[[], object]]) -> list[str]:
    """Write files, by name, into ``folder``; return a sentence for each failure."""
    troubles = []
    for name, write in writers.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write()
        except OSError as error:
            troubles.append(f"{error.filename or folder / name}: {error.strerror or error}")
    return list(dict.fromkeys(troubles))

"""What a question of serving came to, in tables and in sentences, on a terminal."""

from __future__ import annotations

from typing import Final, NamedTuple

from fabric.explore.serving.result import Run, ServingResult
from fabric.messages.telling.sheet import Rows, Sheet, Title, line
from fabric.messages.telling.wording import counted, visible

__all__ = ["LEGEND", "answer", "load_text", "notes", "serving_sheet", "table_of_runs"]

LEGEND: Final = (
    "Means and 99th percentiles in seconds: to the first token, a token, all of a request. kept/s: "
    "requests that keep the service level."
)


class RunRows(NamedTuple):
    """A table.

    Attributes:
        columns: their titles.
        rows: a cell for each column; None is empty.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def answer(result: ServingResult) -> str:
    """Return a sentence for each design: from which load on it is slow."""
    told = []
    for design in result.serving.designs:
        runs = result.of(design)
        if not runs:
            continue
        last, knee = runs[-1].measures, result.knee(design)
        name = f"{design}: " if design else ""
        rate = last.output_tokens_per_second
        speed = "" if rate is None else f"{rate:,.0f} tokens/s"
        at = "" if runs[-1].rate is None else f" at {runs[-1].rate:,g} requests/s"
        bend = "" if knee is None else f"; the knee is at {knee:,g} requests/s"
        told.append(f"{name}{speed}{at}{bend}")
    return ". ".join(told) + "." if told else "No run is whole."


def notes(result: ServingResult) -> list[str]:
    """Return what is to be known of all runs, and of what their steps cost."""
    told = []
    if result.interrupted:
        whole = sum(len(result.of(each)) for each in result.serving.designs)
        wanted = len(result.serving.designs) * len(result.serving.loads)
        told.append(
            f"Interrupted: {whole} of {counted(wanted, 'run')} {'is' if whole == 1 else 'are'} "
            "whole; the same command goes on from there."
        )
    for design in result.serving.designs:
        of = f"{design}: " if design else ""
        told += [f"{of}{each}." for each in result.notes.get(design, ())]
        told += [f"{of}{each}." for each in result.quality_notes(design)]
    return told


def table_of_runs(result: ServingResult) -> RunRows:
    """Return a row for each run: times in seconds, means and 99th percentiles."""
    designs = [each for each in result.serving.designs if each]
    runs = result.runs
    partial = any(each.measures.completed < each.measures.requests for each in runs)
    promised = any(each.measures.kept is not None for each in runs)
    priced = any(each.measures.joules_per_token is not None for each in runs)
    columns = [
        *(["design"] if designs else []),
        "load/s",
        *(["done"] if partial else []),
        *("first", "p99", "a token", "p99", "all", "p99", "tokens/s"),
        *(["kept/s"] if promised else []),
        *(["J/token"] if priced else []),
    ]
    rows = []
    for run in runs:
        found = run.measures
        row: list[object] = [run.design] if designs else []
        row.append(load_text(run))
        row += [found.completed] if partial else []
        for spread in (found.time_to_first_token, found.time_per_token, found.latency):
            row += [_short(spread.mean), _short(spread.p99)]
        row.append(_short(found.output_tokens_per_second))
        row += [_short(found.goodput_per_second)] if promised else []
        row += [_short(found.joules_per_token)] if priced else []
        rows.append(tuple(row))
    return RunRows(tuple(columns), tuple(rows))


def load_text(run: Run) -> str:
    """Return the load of a run: what was asked for, or what its requests have."""
    rate = run.measures.offered_per_second if run.rate is None else run.rate
    return "all at once" if rate is None else f"{rate:,g}"


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def serving_sheet(result: ServingResult) -> Sheet:
    """Yield it; the same runs, one text."""
    serving = result.serving
    question = f"  {visible(serving.question)}" if serving.question else ""
    yield line((visible(serving.name), "bold"), question)
    yield line(visible(answer(result)))
    for each in notes(result):
        yield line(visible(each))
    found = table_of_runs(result)
    if found.rows:
        yield Title("Runs")
        rows = [[visible(x) if isinstance(x, str) else x for x in row] for row in found.rows]
        yield Rows(found.columns, rows)
        yield line((LEGEND, "dim"))

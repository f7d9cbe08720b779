"""The rows of a study's tables: its front, published values beside ours, claims with verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fabric.study.known import Verdict
from fabric.study.outcome import Outcome, metric
from fabric.study.space import Scalar
from fabric.study.statistics import split_metric
from fabric.study.written.words import (
    axis_values,
    label,
    rounded,
    setting_text,
    varying,
)
from fabric.telling.wording import counted, visible

if TYPE_CHECKING:
    from fabric.study.computed import Judged
    from fabric.study.result import StudyResult

__all__ = [
    "NOT_COMPUTED",
    "Beside",
    "Table",
    "beside",
    "best_table",
    "held_out_table",
    "metrics_shown",
    "ratio_text",
    "verdict_counts",
    "verdict_text",
    "verdicts_text",
]

_PLACES: Final = 4
NOT_COMPUTED: Final = "not computed"
"""Stands where a claim has no verdict."""


@dataclass(frozen=True)
class Table:
    """Cells of text and numbers.

    Attributes:
        title: above it.
        columns: their titles.
        rows: a cell for each column.
        indices: of each row's point.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Beside:
    """A published value and ours.

    Attributes:
        setting: of the point.
        metric: what it is, with its unit.
        published: the value.
        ours: None where there is none.
        why: there is none.
        source: of the published value.
    """

    setting: str
    metric: str
    published: float
    ours: float | None
    why: str
    source: str

    @property
    def ratio(self) -> float | None:
        """Ours as a multiple of what was published."""
        if self.ours is None or not self.published:
            return None
        return self.ours / self.published


def metrics_shown(result: StudyResult) -> list[str]:
    """Return the metrics that the study is about: what is minimised, and what has conditions."""
    return list(result.study.shown)


def best_table(result: StudyResult) -> Table:
    """Return the front with its settings and metrics; all points where nothing is minimised.

    The front is in the order of its first metric, all points in that of the space. Of designs over
    inputs there are the least, the median and the worst of what is minimised, too.
    """
    metrics = metrics_shown(result)
    names = varying(result.study.space.values)
    shown = list(result.outcomes)
    if result.study.minimize:
        front = set(result.front)
        shown = [each for each in shown if each.index in front]
        shown.sort(key=lambda each: [metric(each, name) or 0 for name in metrics])
    failed = any(each.status != "completed" for each in shown)
    metrics += [each for each in _spread(result, shown) if each not in metrics]
    short = _short(result, names)
    rows = tuple(
        (
            each.index,
            *(short[name].get(_key(each.setting.get(name)), "") for name in names),
            *(_shown(each, name) for name in metrics),
            *((each.status,) if failed else ()),
        )
        for each in shown
    )
    return Table(
        "The front" if result.study.minimize else "The points",
        ("point", *map(visible, names), *(str(label(name)) for name in metrics))
        + (("status",) if failed else ()),
        rows,
        tuple(each.index for each in shown),
    )


def _shown(outcome: Outcome, name: str) -> float | None:
    value = metric(outcome, name)
    return rounded(value) if split_metric(name)[0] else value


def _spread(result: StudyResult, shown: Sequence[Outcome]) -> list[str]:
    """Return the statistics that tell how far inputs are apart, of metrics in which they are."""
    if not result.study.has_inputs:
        return []
    of = dict.fromkeys(split_metric(each)[1] for each in result.study.objectives)
    return [
        f"{statistic}:{name}"
        for name in of
        if any(metric(each, f"least:{name}") != metric(each, f"worst:{name}") for each in shown)
        for statistic in ("least", "median", "worst")
    ]


def held_out_table(result: StudyResult) -> Table:
    """Return what the front's designs come to on the inputs held out, and on those they are of."""
    names = varying(result.study.space.values)
    short = _short(result, names)
    chosen = {each.index: each for each in result.outcomes}
    rows: list[tuple[object, ...]] = []
    order = {index: place for place, index in enumerate(best_table(result).indices)}
    held_out = sorted(result.held_out, key=lambda each: order[each.index])
    for apart in held_out:
        design = (
            apart.index,
            *(short[name].get(_key(apart.setting.get(name)), "") for name in names),
        )
        for name in metrics_shown(result):
            before, after = metric(chosen[apart.index], name), metric(apart, name)
            ratio = "" if not before or after is None else f"{after / before:,.{_PLACES}f}"
            found = apart.ended if after is None else rounded(after)
            broken = [
                str(each)
                for each in result.study.conditions
                if each.metric == name and after is not None and not each.holds(apart)
            ]
            told = f"breaks {' and '.join(broken)}" if broken else ""
            rows.append((*design, str(label(name)), rounded(before), found, ratio, told))
    columns = (*map(visible, names), "metric", "chosen on", "held out", "held out/chosen on")
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    else:
        columns = (*columns, "condition")
    indices = tuple(each.index for each in held_out for _ in metrics_shown(result))
    inputs = counted(len(result.study.held_out), "input")
    return Table(f"On {inputs} held out", ("point", *columns), tuple(rows), indices)


def beside(result: StudyResult) -> list[Beside]:
    """Return the published values, each with ours or why there is none.

    Points are called by what tells them apart.
    """
    settings = [known.setting for known in result.study.known]
    columns: dict[str, list[Scalar]] = {}
    for name in dict.fromkeys(name for each in settings for name in each):
        values = {(type(each.get(name)), each.get(name)): None for each in settings}
        columns[name] = [value for _, value in values]
    names = varying(columns) or list(columns)
    short = {
        name: dict(zip(map(_key, columns[name]), axis_values(columns[name]), strict=True))
        for name in names
    }
    found = []
    for known, outcome in result.beside():
        of_point = {
            name: short[name][_key(known.setting[name])] for name in names if name in known.setting
        }
        ours = None if outcome is None else metric(outcome, known.metric)
        found.append(
            Beside(
                setting_text(of_point, names),
                str(label(known.metric)),
                known.value,
                ours,
                "" if ours is not None else _why(result, outcome),
                visible(known.source),
            )
        )
    return found


def _why(result: StudyResult, outcome: Outcome | None) -> str:
    if outcome is not None:
        no_metric = outcome.status == "completed"
        return "the program has no such metric" if no_metric else outcome.ended
    missing = len(result.study.space) - len(result.outcomes)
    return "has not run" if missing else "the study has no such point"


def _short(result: StudyResult, names: Sequence[str]) -> dict[str, dict[object, str]]:
    """Return what each value of some axes is called."""
    values = result.study.space.values
    return {
        name: dict(zip(map(_key, values[name]), axis_values(values[name]), strict=True))
        for name in names
    }


def _key(value: object) -> object:
    """Return what tells 1, 1.0 and True apart."""
    return type(value), value


def verdict_counts(rows: Iterable[Judged]) -> dict[str, int]:
    """Return how many claims have which verdict, in the order of verdicts."""
    found = Counter(map(verdict_text, rows))
    order = [*map(str, Verdict), NOT_COMPUTED]
    return {name: found[name] for name in order if found[name]}


def verdicts_text(rows: Iterable[Judged]) -> str:
    """Return how many claims have which verdict: ``3 reproduced, 1 contradicted``."""
    return ", ".join(f"{count:,} {name}" for name, count in verdict_counts(rows).items())


def ratio_text(row: Beside) -> str:
    """Return the ratio with four decimals."""
    return "" if row.ratio is None else f"{row.ratio:,.{_PLACES}f}"


def verdict_text(row: Judged) -> str:
    """Return the verdict; what could not be computed has none."""
    return NOT_COMPUTED if row.judgement is None else str(row.judgement.verdict)

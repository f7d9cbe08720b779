"""Tables and sentences of a study's result: its answer, counts, caveats and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fabric.display.parts import Markup, Rows, Sheet, cell_text, line
from fabric.explore.study.outcome import ENDED, PROVED, Outcome, metric, split_metric
from fabric.explore.study.space import Scalar, Setting, keyed
from fabric.explore.study.study import Verdict
from fabric.explore.study.written.words import (
    label,
    listed_points,
    number_text,
    rounded,
    setting_text,
    texts_by_key,
    varying,
)
from fabric.messages.text import counted, visible, without_numbers

if TYPE_CHECKING:
    from fabric.explore.study.result import Judged, StudyResult

_PLACES: Final = 4

NOT_COMPUTED: Final = "not computed"
"""Text of a missing verdict."""

_UNKNOWN: Final = ("timeout", "lost")


@dataclass(frozen=True)
class Table:
    """A table; ``indices`` has the point of each row, if each row has one."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    indices: tuple[int, ...] = ()


def rows_sheet(
    columns: Sequence[str], rows: Sequence[Sequence[object]], shown: int | None = None
) -> Sheet:
    """Yield a table. A value that all rows share is in a line above it."""
    shared = [
        n
        for n in range(len(columns) if len(rows) > 1 else 0)
        if all(row[n] == rows[0][n] and not isinstance(row[n], Markup) for row in rows)
    ]
    kept = [n for n in range(len(columns)) if n not in shared]
    if shared and kept:
        values = (f"{columns[n]} {cell_text(rows[0][n]) or 'empty'}" for n in shared)
        yield line(f"In all rows: {'; '.join(values)}.")
    kept = kept or shared
    yield Rows([columns[n] for n in kept], [[row[n] for n in kept] for row in rows], shown)


def best_table(result: StudyResult) -> Table:
    """Return the front with its settings and metrics; all points if no metric is minimised.

    The front is in the order of its first metric. Designs over inputs also have the least, the
    median and the worst value of the minimised metrics.
    """
    metrics = list(result.study.shown)
    names = varying(result.study.space.values)
    setting_cells = cells_of(result)
    shown = list(result.outcomes)
    if result.study.minimize:
        shown = [result.by_design[design] for design in result.front]
        shown.sort(key=lambda each: [metric(each, name) or 0 for name in metrics])
    failed = any(each.status != "completed" for each in shown)
    metrics += [each for each in _spread(result, shown) if each not in metrics]
    rows = tuple(
        (
            each.index,
            *setting_cells(each.setting),
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
    """Compare the front's designs on the held-out inputs and on the inputs that chose them."""
    names = varying(result.study.space.values)
    setting_cells = cells_of(result)
    rows: list[tuple[object, ...]] = []
    order = {index: place for place, index in enumerate(best_table(result).indices)}
    held_out = sorted(result.held_out, key=lambda each: order[each.index])
    for outcome in held_out:
        design = (outcome.index, *setting_cells(outcome.setting))
        for name in result.study.shown:
            before, after = metric(result.by_design[outcome.index], name), metric(outcome, name)
            ratio = _ratio_text(after, before)
            value = outcome.ended if after is None else rounded(after)
            broken = [
                str(each)
                for each in result.study.conditions
                if each.metric == name and after is not None and not each.holds(outcome)
            ]
            note = f"breaks {' and '.join(broken)}" if broken else ""
            rows.append((*design, str(label(name)), rounded(before), value, ratio, note))
    columns = (*map(visible, names), "metric", "chosen on", "held out", "held out/chosen on")
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    else:
        columns = (*columns, "condition")
    inputs = counted(len(result.study.held_out), "input")
    return Table(f"On {inputs} held out", ("point", *columns), tuple(rows))


def beside_rows(result: StudyResult) -> list[tuple[object, ...]]:
    """Return a row for each published value: point, metric, published, ours, ratio, source."""
    settings = [known.setting for known in result.study.known]
    columns: dict[str, list[Scalar]] = {}
    for name in dict.fromkeys(name for each in settings for name in each):
        columns[name] = list({keyed(x): x for x in (each.get(name) for each in settings)}.values())
    names = varying(columns) or list(columns)
    texts = {name: texts_by_key(columns[name]) for name in names}
    rows: list[tuple[object, ...]] = []
    for known, outcome in result.beside():
        setting = known.setting
        of_point = {name: texts[name][keyed(setting[name])] for name in names if name in setting}
        ours = None if outcome is None else metric(outcome, known.metric)
        rows.append(
            (
                setting_text(of_point, names),
                str(label(known.metric)),
                number_text(known.value),
                _why(result, outcome) if ours is None else number_text(ours),
                _ratio_text(ours, known.value),
                visible(known.source),
            )
        )
    return rows


def _why(result: StudyResult, outcome: Outcome | None) -> str:
    if outcome is not None:
        no_metric = outcome.status == "completed"
        return "the program has no such metric" if no_metric else outcome.ended
    return "has not run" if _missing(result) else "the study has no such point"


def _ratio_text(value: float | None, base: float | None) -> str | None:
    return None if value is None or not base else f"{value / base:,.{_PLACES}f}"


def cells_of(result: StudyResult) -> Callable[[Setting], list[str | None]]:
    """Return a function from a setting to its cells; the cell of a missing value is None."""
    values = result.study.space.values
    texts = {name: texts_by_key(values[name]) for name in varying(values)}
    return lambda setting: [
        own[keyed(setting[name])] if name in setting else None for name, own in texts.items()
    ]


def verdict_counts(rows: Iterable[Judged]) -> dict[str, int]:
    """Return the number of claims by verdict, in the order of verdicts."""
    counts = Counter(map(verdict_text, rows))
    order = [*map(str, Verdict), NOT_COMPUTED]
    return {name: counts[name] for name in order if counts[name]}


def verdicts_text(rows: Iterable[Judged]) -> str:
    """Return the number of claims by verdict as text: ``3 reproduced, 1 contradicted``."""
    return ", ".join(f"{count:,} {name}" for name, count in verdict_counts(rows).items())


def verdict_text(row: Judged) -> str:
    return NOT_COMPUTED if row.judgement is None else str(row.judgement.verdict)


def answer(result: StudyResult) -> str:
    sentence = _answer(result)
    return f"So far, {sentence[0].lower()}{sentence[1:]}" if result.interrupted else sentence


def _answer(result: StudyResult) -> str:
    names = result.study.minimize
    front = result.front
    completed = sum(each.status == "completed" for each in result.outcomes)
    if not names:
        rows = result.judged_claims
        if rows:
            return f"Of {counted(len(rows), 'claim')}: {verdicts_text(rows)}."
        return f"{completed:,} of {_points(result)} ran to the end."
    if not front:
        why = " and keeps the conditions" if completed else ""
        if not completed and any(each.status == "unjudged" for each in result.outcomes):
            why = " and can be judged"
        return f"No point ran to the end{why}."
    best = [(label(name).name, _best(result, name), name) for name in names]
    if len(front) == 1 or len(names) == 1:
        values = ", ".join(f"{called}: {value_text(each, name)}" for called, each, name in best)
        have = "has" if len(front) == 1 else "have"
        which = listed_points(front)
        return f"{which[0].upper()}{which[1:]} {have} the least {values}{_setting(result, front)}."
    each = "; ".join(
        f"least {called}: {value_text(each, name)}{_setting(result, [each.index])}"
        for called, each, name in best
    )
    return f"{len(front):,} of {_points(result)} are on the front; {each}."


def counts(result: StudyResult) -> str:
    if result.study.has_inputs:
        return f"{_of_all(result)}. {_runs(result)}"
    resumed = f", {result.resumed:,} from earlier sessions" if result.resumed else ""
    return f"{_of_all(result)}{resumed}"


def counts_table(result: StudyResult) -> Table:
    """Return the number of points by outcome and reason; for failures, also the points."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for each in result.outcomes:
        # Reasons of one kind of deadlock differ in their units and elements.
        kind = each.code or without_numbers(_reason(each))
        groups.setdefault((each.status, kind), []).append(each)
    order = list(ENDED)
    names = varying(result.study.space.values)
    rows: list[tuple[object, ...]] = []
    for group in sorted(
        groups.values(), key=lambda alike: (order.index(alike[0].status), -len(alike))
    ):
        first = group[0]
        failed = first.status not in ("completed", *PROVED)
        which = listed_points([each.index for each in group]).split(maxsplit=1)[1]
        setting = setting_text(first.setting, names) or None
        which_and_setting = (which, setting) if failed else (None, None)
        rows.append((len(group), first.ended, *which_and_setting, visible(_reason(first)) or None))
    if missing := _missing(result):
        why = "the study was interrupted" if result.interrupted else None
        rows.append((missing, f"was not {_evaluated(result)}", None, None, why))
    used = [n for n in range(5) if n < 2 or any(row[n] is not None for row in rows)]
    reason = "its reason" if 2 in used else "reason"
    titles = ("points", "outcome", "which", "the first has", reason)
    shown = tuple(tuple(row[n] for n in used) for row in rows)
    if len(shown) == 1 and len(used) == 2:
        return Table(f"{counts(result)}, each {shown[0][1]}", (), ())
    return Table(counts(result), tuple(titles[n] for n in used), shown)


def _reason(outcome: Outcome) -> str:
    if outcome.status == "infeasible":
        return f"{outcome.pruned_by} cannot be met"
    return outcome.reason or ""


def _runs(result: StudyResult) -> str:
    number = result.run_counts
    made = number["run"] + number["resumed"]
    parts = [f"{made - number['held_out']:,} made", f"{number['spared']:,} spared"]
    if missing := number["total"] + number["held_out"] - made - number["spared"]:
        parts.append(f"{missing:,} not made")
    held_out = f"; {number['held_out']:,} more on inputs held out" if number["held_out"] else ""
    resumed = f"; {number['resumed']:,} from earlier sessions" if number["resumed"] else ""
    return f"Of {counted(number['total'], 'run')}: {', '.join(parts)}{held_out}{resumed}"


def caveats(result: StudyResult) -> Iterator[str]:
    """Yield restrictions of the answer, a sentence each."""
    unknown = [each.index for each in result.outcomes if each.status in _UNKNOWN]
    if unknown and result.study.minimize:
        which = listed_points(unknown)
        yield (
            f"Whether {which} would be on the front is unknown: "
            f"{'it' if len(unknown) == 1 else 'they'} took too long or lost the worker."
        )
    if result.study.conditions:
        completed = sum(each.status == "completed" for each in result.outcomes)
        conditions = " and ".join(map(str, result.study.conditions))
        keep = "keeps" if len(result.kept()) == 1 else "keep"
        ran = counted(completed, "point") + " that ran to the end"
        ran = ran if result.study.has_inputs else counted(completed, "run")
        yield f"Of {ran}, {len(result.kept()):,} {keep} {conditions}."
    rest = len(result.front) - len(result.held_out)
    if result.study.held_out and rest:
        inputs = counted(len(result.study.held_out), "input")
        yield f"On the {inputs} held out {counted(rest, 'point')} of the front did not run."


def _best(result: StudyResult, name: str) -> Outcome:
    front = (result.by_design[design] for design in result.front)
    return min(front, key=lambda each: metric(each, name) or 0)


def value_text(outcome: Outcome, name: str) -> str:
    value = metric(outcome, name)
    assert value is not None
    if split_metric(name)[0]:
        value = rounded(value) or 0
    unit = label(name).unit
    return number_text(value) + (f" {unit}" if unit else "")


def _setting(result: StudyResult, indices: Sequence[int]) -> str:
    first, *rest = (result.study.space[index] for index in indices)
    names = [
        name
        for name in varying(result.study.space.values)
        if all(keyed(each.get(name)) == keyed(first.get(name)) for each in rest)
    ]
    setting = setting_text(first, names)
    return f"{', all' if rest else ''} with {setting}" if setting else ""


def _points(result: StudyResult) -> str:
    points = counted(len(result.outcomes), "point")
    return f"{points} that were {_evaluated(result)}" if _missing(result) else points


def _of_all(result: StudyResult) -> str:
    points = counted(len(result.study.space), "point")
    if not result.study.has_inputs:
        return points
    return f"{points} over {counted(len(result.study.runs_of(0)), 'input')}"


def _evaluated(result: StudyResult) -> str:
    return "finished" if result.study.has_inputs else "evaluated"


def _missing(result: StudyResult) -> int:
    return len(result.study.space) - len(result.outcomes)

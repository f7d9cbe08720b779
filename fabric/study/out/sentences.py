"""What a study found, in sentences: the answer, the counts, what failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from fabric.study.out.rows import verdicts_text
from fabric.study.out.words import (
    counted,
    label,
    listed_points,
    number_text,
    setting_text,
    varying,
)
from fabric.study.outcome import ENDED, PROVED, Outcome, metric
from fabric.telling.wording import one_of, visible, without_numbers

if TYPE_CHECKING:
    from fabric.study.result import StudyResult

__all__ = ["answer", "caveats", "counts", "failures"]

_UNKNOWN: Final = ("timeout", "lost")


def answer(result: StudyResult) -> str:
    """Return what the study answers, of the points that were dealt with."""
    told = _answer(result)
    return f"So far, {told[0].lower()}{told[1:]}" if result.interrupted else told


def _answer(result: StudyResult) -> str:
    names = result.study.minimize
    front = result.front
    completed = sum(each.status == "completed" for each in result.outcomes)
    if not names:
        rows = result.judged_claims
        if rows:
            return f"Of {counted(len(rows), 'claim')}: {verdicts_text(rows)}."
        return f"{completed:,} of {_dealt_with(result)} ran to the end."
    if not front:
        for name, without in result.without_metric().items():
            if without == completed and completed:
                return f"No run has {visible(name)}: expected {_numbers_of(result, name)}."
        why = " and keeps the conditions" if completed else ""
        return f"No point ran to the end{why}."
    best = [(label(name).name, _best(result, name), name) for name in names]
    if len(front) == 1 or len(names) == 1:
        values = ", ".join(f"{called}: {_value(each, name)}" for called, each, name in best)
        have = "has" if len(front) == 1 else "have"
        which = listed_points(front)
        return f"{which[0].upper()}{which[1:]} {have} the least {values}{_setting(result, front)}."
    each = "; ".join(
        f"least {called}: {_value(each, name)}{_setting(result, [each.index])}"
        for called, each, name in best
    )
    return f"{len(front):,} of {_dealt_with(result)} are on the front; {each}."


def _numbers_of(result: StudyResult, name: str) -> str:
    """Return what the runs have, for who asked for something else."""
    found = (each for each in result.outcomes if each.status == "completed")
    return visible(one_of(list(next(found).numbers), name))


def counts(result: StudyResult) -> str:
    """Return what became of how many points."""
    statuses = [each.status for each in result.outcomes]
    completed = statuses.count("completed")
    told = [f"{completed:,} ran"]
    if result.study.minimize:
        told.append(f"{statuses.count('pruned'):,} proved dominated without a run")
    if infeasible := statuses.count("infeasible"):
        told.append(f"{infeasible:,} proved to break a condition without a run")
    told.append(f"{len(statuses) - completed - sum(each in PROVED for each in statuses):,} failed")
    if missing := _missing(result):
        told.append(f"{missing:,} not looked at")
    known = f"; {result.resumed:,} of them known from before" if result.resumed else ""
    return f"{_of_all(result)}: {', '.join(told)}{known}."


def caveats(result: StudyResult) -> Iterator[str]:
    """Yield what has to be known before the answer is believed."""
    completed = sum(each.status == "completed" for each in result.outcomes)
    for name, without in result.without_metric().items():
        if 0 < without < completed:
            runs = "1 run has" if without == 1 else f"{without:,} runs have"
            yield f"{runs} no {visible(name)} and cannot be on the front."
    what = "the front is that" if result.study.minimize else "what is said here is"
    if missing := _missing(result):
        why = "The study was interrupted: " if result.interrupted else ""
        verb = "was" if missing == 1 else "were"
        yield f"{why}{counted(missing, 'point')} {verb} not looked at, and {what} of the others."
    unknown = [each.index for each in result.outcomes if each.status in _UNKNOWN]
    if unknown and result.study.minimize:
        which = listed_points(unknown)
        yield (
            f"Whether {which} would be on the front is not known: "
            f"{'it' if len(unknown) == 1 else 'they'} took too long or lost the worker."
        )
    if result.study.conditions:
        completed = sum(each.status == "completed" for each in result.outcomes)
        told = " and ".join(map(str, result.study.conditions))
        keep = "keeps" if len(result.kept()) == 1 else "keep"
        yield f"Of {counted(completed, 'run')}, {len(result.kept()):,} {keep} {told}."


def failures(result: StudyResult) -> list[str]:
    """Return why points failed: a sentence for all that failed alike, the most frequent first."""
    alike: dict[tuple[str, str], list[Outcome]] = {}
    for each in result.outcomes:
        if each.status not in ("completed", *PROVED):
            key = (each.status, without_numbers(each.reason or ""))
            alike.setdefault(key, []).append(each)
    names = varying(result.study.space.values)
    told = []
    for (_, _), found in sorted(alike.items(), key=lambda pair: -len(pair[1])):
        first = found[0]
        which = listed_points([each.index for each in found])
        reason = f": {visible(first.reason)}" if first.reason else ""
        setting = setting_text(first.setting, names)
        if len(found) == 1:
            of_one = f" ({setting})" if setting else ""
            told.append(f"{which[0].upper()}{which[1:]}{of_one} {ENDED[first.status]}{reason}")
        else:
            such = f" (with {setting})" if setting else ""
            told.append(f"Each of {which} {ENDED[first.status]}{reason}{such}")
    return told


def _best(result: StudyResult, name: str) -> Outcome:
    """Return the first point of the front with the least of a metric."""
    front = set(result.front)
    on_front = [each for each in result.outcomes if each.index in front]
    return min(on_front, key=lambda each: metric(each, name) or 0)


def _value(outcome: Outcome, name: str) -> str:
    value = metric(outcome, name)
    assert value is not None  # it is on the front
    unit = label(name).unit
    return number_text(value) + (f" {unit}" if unit else "")


def _setting(result: StudyResult, indices: Sequence[int]) -> str:
    """Return what a point has; nothing of several."""
    names = varying(result.study.space.values)
    told = setting_text(result.study.space[indices[0]], names) if len(indices) == 1 else ""
    return f" with {told}" if told else ""


def _dealt_with(result: StudyResult) -> str:
    """Return how many points the answer is of."""
    told = counted(len(result.outcomes), "point")
    return f"{told} that were looked at" if _missing(result) else told


def _of_all(result: StudyResult) -> str:
    return counted(len(result.study.space), "point")


def _missing(result: StudyResult) -> int:
    return len(result.study.space) - len(result.outcomes)

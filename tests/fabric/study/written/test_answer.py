"""Sentences and tables on what a study found: singular and plural, and what only some have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fabric import Outcome, Study, grid, zipped
from fabric.explore.study.outcome import Status
from fabric.explore.study.result import StudyResult, design_outcome
from fabric.explore.study.written.answer import (
    Beside,
    answer,
    best_table,
    caveats,
    counts,
    failures,
    held_out_table,
    ratio_text,
)
from fabric.explore.study.written.words import (
    axis_values,
    label,
    listed_points,
    number_text,
    rounded,
    setting_names,
)

OVER = grid(a=(0, 1))


def over_two(
    chosen: Sequence[float], apart: Sequence[float], where: tuple[str, ...] = ()
) -> StudyResult:
    """Return a study of two designs on one input and one held out: cycles there, a waste of each.

    The second design has the least waste, so that both are on the front.
    """
    study = Study(
        name="two",
        program=Path("x.py"),
        space=grid(size=(10, 20)),
        over=OVER,
        hold_out=1,
        minimize=("mean:cycles", "mean:extra.waste"),
        where=where,
    )
    values = []
    for design in (0, 1):
        of_run = {False: chosen[design], True: apart[design]}
        values += [of_run[study.is_held_out(run)] for run in (2 * design, 2 * design + 1)]
    runs = tuple(
        Outcome(
            index=n,
            setting=study.runs[n],
            status="completed",
            numbers={"cycles": each, "extra.waste": 5 - n // 2},
        )
        for n, each in enumerate(values)
    )
    ended = [design_outcome(study, n, [runs[r] for r in study.runs_of(n)]) for n in (0, 1)]
    return StudyResult(study, tuple(ended), runs=runs)


FEW = "On the 1 input held out, "


@pytest.mark.parametrize(
    ("chosen", "apart", "told"),
    [
        ((100, 200), (150, 200), "point 0 has mean cycles 150 instead of 100, 50 % more"),
        ((100, 200), (75, 200), "point 0 has mean cycles 75 instead of 100, 25 % less"),
        ((100, 200), (100, 100), "point 0 has mean cycles 100, as on the others"),
        ((0, 200), (3, 200), "point 0 has mean cycles 3 instead of 0"),
        (
            (100, 200),
            (300, 299),
            "point 0 has mean cycles 300 instead of 100, 200 % more; of the front, point 1 has the "
            "least there: 299",
        ),
    ],
)
def test_held_out(chosen: tuple[int, int], apart: tuple[int, int], told: str) -> None:
    """What a design loses on inputs held out, and whether another one has less there."""
    sentences = list(caveats(over_two(chosen, apart)))
    assert sentences == [
        f"{FEW}{told}.",
        f"{FEW}point 1 has mean waste 4, as on the others.",
    ]


def test_conditions_on_inputs_held_out() -> None:
    """One design that breaks a condition there is told in the singular, beside its number."""
    result = over_two((100, 200), (300, 200), ("mean:cycles <= 250", "worst:cycles < 300"))
    assert list(caveats(result))[-1] == "Point 0 breaks a condition on the inputs held out."
    assert next(iter(caveats(result))) == (
        "Of 2 points that ran to the end, 2 keep mean:cycles <= 250 and worst:cycles < 300."
    )
    rows = {(row[0], row[2]): row[3:] for row in held_out_table(result).rows}
    assert rows[0, "mean cycles"] == (100, 300, "3.0000", "breaks mean:cycles <= 250")
    assert rows[0, "worst cycles"] == (100, 300, "3.0000", "breaks worst:cycles < 300")
    assert rows[1, "mean cycles"] == (200, 200, "1.0000", "")
    assert held_out_table(over_two((0, 1), (5, 1))).rows[0] == (0, "10", "mean cycles", 0, 5, "")


def ended(
    *statuses: Status, minimize: tuple[str, ...] = ("cycles",), points: int = 0
) -> StudyResult:
    """Return a study whose points ended so, with as many points as are asked for."""
    study = Study(
        name="ends",
        program=Path("x.py"),
        space=grid(a=range(points or len(statuses))),
        minimize=minimize,
    )
    return StudyResult(
        study,
        tuple(
            Outcome(
                index=n,
                setting={"a": n},
                status=each,
                numbers={"cycles": 100 + n} if each == "completed" else {},
            )
            for n, each in enumerate(statuses)
        ),
    )


def test_answers() -> None:
    """Where one is best, where none ran to its end, and where nothing is minimised."""
    assert answer(ended("completed", "completed")) == "Point 0 has the least cycles: 100 with a=0."
    both = ended("completed", minimize=("cycles", "extra.a_b_bytes"))
    one = replace(both.outcomes[0], numbers={"cycles": 5, "extra.a_b_bytes": 7000})
    assert answer(replace(both, outcomes=(one,))) == (
        "Point 0 has the least cycles: 5, a b: 7,000 bytes."
    )
    assert answer(ended("lost")) == "No point ran to the end."
    assert answer(ended("unjudged", "lost")) == "No point ran to the end and can be judged."
    none_kept = ended("completed", "unjudged")
    study = replace(none_kept.study, where=("cycles < 100",))
    assert answer(replace(none_kept, study=study)) == (
        "No point ran to the end and keeps the conditions."
    )
    plain = ended("completed", "lost", minimize=())
    assert answer(plain) == "1 of 2 points ran to the end."
    assert answer(replace(plain, interrupted=True)) == "So far, 1 of 2 points ran to the end."
    assert answer(ended("completed", minimize=(), points=3)) == (
        "1 of 1 point that were looked at ran to the end."
    )


def test_unknown_and_stuck() -> None:
    """What took too long, lost its worker or is stuck might be on the front, where there is one."""
    assert list(caveats(ended("timeout", "lost", "deadlock"))) == [
        "Whether points 0 and 1 would be on the front is not known: they took too long or lost the "
        "worker.",
        "Point 2 deadlocked: with deeper channels it might be on the front.",
    ]
    assert list(caveats(ended("timeout", "deadlock", minimize=()))) == []
    assert list(caveats(ended("completed", points=3))) == [
        "2 points were not looked at, and the front is that of the others."
    ]


def test_counts() -> None:
    """Every point is counted once, by what became of it."""
    result = ended("completed", "pruned", "infeasible", "infeasible", "error", "lost", points=1007)
    assert counts(result) == (
        "1,007 points: 1 ran, 1 proved dominated without a run, 2 proved to break a condition "
        "without a run, 2 failed, 1,001 not looked at."
    )
    assert result.ended == {
        "ran to its end": 1,
        "failed while it ran": 1,
        "lost its worker": 1,
        "was proved to be dominated, and did not run": 1,
        "was proved to break a condition, and did not run": 2,
    }


def test_runs_not_made() -> None:
    """Of designs over inputs runs are counted beside points: made, spared and not made."""
    result = over_two((100, 200), (100, 200))
    assert counts(result) == (
        "2 points over 1 input: 2 ran, 0 proved dominated before the last run, 0 failed. "
        "Of 2 runs: 2 made, 0 spared; 2 more on inputs held out."
    )
    cut = replace(result, outcomes=result.outcomes[:1], runs=result.runs[:1], resumed_runs=1)
    assert counts(cut) == (
        "2 points over 1 input: 1 ran, 0 proved dominated before the last run, 0 failed, "
        "1 not finished. Of 2 runs: 1 made, 0 spared, 1 not made; 1 of these known from before."
    )


def test_failures_in_order() -> None:
    """What failed alike but for numbers is one sentence; the most frequent reason comes first."""
    result = ended("error", "error", "error", "lost", "completed")
    reasons = ("no room", "size 1 of 2", "size 3 of 4", None, None)
    outcomes = [
        replace(each, reason=reason) for each, reason in zip(result.outcomes, reasons, strict=True)
    ]
    assert failures(replace(result, outcomes=tuple(outcomes))) == [
        "Each of points 1 and 2 failed while it ran: size 1 of 2 (with a=1)",
        "Point 0 (a=0) failed while it ran: no room",
        "Point 3 (a=3) lost its worker",
    ]


def test_best() -> None:
    """The front is sorted by its first metric, and has a column for what became of points."""
    result = ended("completed", "completed", "lost", minimize=())
    table = best_table(result)
    assert table.title == "The points"
    assert table.columns == ("point", "a", "cycles", "status")
    assert table.rows == (
        (0, "0", 100, "completed"), (1, "1", 101, "completed"), (2, "2", None, "lost"),
    )  # fmt: skip
    assert table.indices == (0, 1, 2)


def test_ratios() -> None:
    """Ours as a multiple of what was published, where both are there."""
    row = Beside("a=1", "cycles", 4.0, 5000.0, "", "here")
    assert ratio_text(row) == "1,250.0000"
    assert ratio_text(replace(row, published=0)) == ""
    assert ratio_text(replace(row, ours=None)) == ""


def test_texts() -> None:
    """How metrics, numbers, settings and lists of points are written."""
    assert [listed_points(range(n)) for n in (1, 2, 3, 2006)] == [
        "point 0",
        "points 0 and 1",
        "points 0 to 2",
        "points 0 to 2005",
    ]
    assert listed_points([1, 3, 4, 7, 8, 9]) == "points 1, 3, 4 and 7 to 9"
    assert listed_points(range(0, 28, 2)) == "14 points (0, 2, 4 and others)"
    assert [number_text(each) for each in (1234567, 2e3, 1e15, -1e15, 1234567.5, 0.123456789)] == [
        "1,234,567", "2,000", "1e+15", "-1e+15", "1.23457e+06", "0.123457",
    ]  # fmt: skip
    assert number_text(999_999_999_999_999.0) == "999,999,999,999,999"
    assert [rounded(each) for each in (99_999.5, 100_000.5, -200_000.25, 7, None)] == [
        99_999.5, 100_000, -200_000, 7, None,
    ]  # fmt: skip
    assert str(label("p95:extra.my_own_bytes")) == "p95 my own (bytes)"
    assert str(label("area_mm2")) == "area, between low and high (mm\N{SUPERSCRIPT TWO})"
    assert str(label("extra.bytes")) == "bytes"
    assert axis_values(["a/x.npz", "b/y.npz", "c"]) == ["x.npz", "y.npz", "c"]
    assert axis_values(["a/x.npz", "b/x.npz"]) == ["a/x.npz", "b/x.npz"]
    assert axis_values(["a/1.5", "b/x.2"]) == ["a/1.5", "b/x.2"]
    assert axis_values([True, None, 1.5]) == ["true", "none", "1.5"]
    assert setting_names(zipped(a=("x/1.npz", "x/2.npz"), b=(1, True))) == [
        "a=1.npz, b=1", "a=2.npz, b=true",
    ]  # fmt: skip


def test_nothing_at_all() -> None:
    """Zero is less than a half, on the front, in the answer, and on the input held out."""
    found = over_two((0, 0.5), (0.5, 0))
    assert answer(found).startswith(
        "2 of 2 points are on the front; least mean cycles: 0 with size=10;"
    )
    assert [row[2] for row in best_table(found).rows] == [0, 0.5]
    assert next(iter(caveats(found))) == (
        "On the 1 input held out, point 0 has mean cycles 0.5 instead of 0; of the front, point 1 "
        "has the least there: 0."
    )
    assert [row[3:6] for row in held_out_table(found).rows if row[2] == "mean cycles"] == [
        (0, 0.5, ""),
        (0.5, 0, "0.0000"),
    ]

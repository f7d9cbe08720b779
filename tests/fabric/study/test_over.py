"""Designs over several inputs: their fronts are those of all runs, whatever is spared."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Outcome, Point, Study, StudySession, grid, run_point, zipped
from fabric.explore.study.conducting import conduct
from fabric.explore.study.evaluation import Before, Job, known_before
from fabric.explore.study.outcome import PROVED, STATISTICS, metric, over_inputs, split_metric
from fabric.explore.study.result import DesignOutcome, StudyResult, design_outcome
from fabric.explore.study.space import Scalar, Setting, Space
from fabric.explore.study.store import Store
from fabric.explore.study.workers import LocalWorkers
from fabric.explore.study.written.answer import caveats
from tests.profiles import examples, of_profile

PROGRAM: Final = Path(__file__).parent / "program_of_fronts.py"

METRICS: Final = (
    "cycles",
    "on_chip_requirement_bytes",
    "allocated_flops_per_cycle",
    "off_chip_traffic_bytes",
    "extra.waste",
)
AXES: Final[dict[str, tuple[Scalar, ...]]] = {
    "rows": (8, 16, 24, 32, 48, 96),
    "flops_per_cycle": (16, 64, 1024, 4096),
    "times": (1, 2, 3),
    "trouble": ("no", "no ", "stuck", "refused"),
}

# What statistics are, by their definitions, exactly; of sequences that are sorted.
DEFINED: Final[dict[str, Callable[[Sequence[Fraction]], Fraction]]] = {
    "mean": lambda values: sum(values, Fraction()) / len(values),
    "worst": lambda values: values[-1],
    "least": lambda values: values[0],
    "median": lambda values: (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2,
    "p95": lambda values: next(
        each for each in values if 20 * sum(x <= each for x in values) >= 19 * len(values)
    ),
}


@st.composite
def _studies(draw: st.DrawFn) -> Study:
    """Of the axes some are choices and some are inputs, whichever."""
    names = draw(st.permutations(["rows", "flops_per_cycle", "times"]))
    split = draw(st.integers(1, 2))
    choices, inputs = names[:split], names[split:]
    if draw(st.booleans()):
        (choices if draw(st.booleans()) else inputs).append("trouble")

    def some(named: Sequence[str]) -> dict[str, list[Scalar]]:
        return {
            name: draw(st.lists(st.sampled_from(AXES[name]), min_size=1, max_size=4, unique=True))
            for name in named
        }

    metrics = st.builds("{}:{}".format, st.sampled_from(list(STATISTICS)), st.sampled_from(METRICS))
    conditions = st.sampled_from(
        (
            "mean:cycles <= 400",
            "least:cycles >= 200",
            "worst:on_chip_requirement_bytes < 4096",
            "median:on_chip_requirement_bytes >= 2048",
            "p95:cycles < 700",
            "mean:extra.waste <= 2",
        )
    )
    over = grid(some(inputs))
    return Study(
        program=PROGRAM,
        space=grid(some(choices)),
        over=over,
        hold_out=draw(st.integers(0, min(2, len(over) - 1))),
        minimize=tuple(draw(st.lists(metrics, min_size=1, max_size=3, unique=True))),
        where=tuple(draw(st.lists(conditions, max_size=2, unique=True))),
    )


@cache
def _ran(setting: tuple[tuple[str, Scalar], ...]) -> Outcome:
    return run_point(_alone(dict(setting)), Point(0, dict(setting)))


@cache
def _known(setting: tuple[tuple[str, Scalar], ...]) -> Before:
    return known_before(Job.of(_alone(dict(setting)), Point(0, dict(setting))))


def _alone(setting: Setting) -> Study:
    return Study(program=PROGRAM, space=grid({name: [value] for name, value in setting.items()}))


def _outcome(index: int, setting: Setting) -> Outcome:
    return replace(_ran(tuple(sorted(setting.items()))), index=index, setting=setting)


def _before(point: Point) -> Before:
    known = replace(_known(tuple(sorted(point.setting.items()))), index=point.index)
    if known.refused is None:
        return known
    return replace(known, refused=replace(known.refused, index=point.index, setting=point.setting))


def _session(study: Study, store: Store | None = None) -> StudySession:
    return StudySession(study, store, look=lambda points: map(_before, points))


def _truth(study: Study, design: int) -> dict[str, Fraction] | None:
    """Return every statistic of a design by its definition; None where a run fails."""
    runs = [
        _outcome(0, {**study.space[design], **setting})
        for place, setting in enumerate(study.over)
        if place not in study.held_out
    ]
    if any(each.status != "completed" for each in runs):
        return None
    return {
        f"{name}:{of}": define(sorted(Fraction(each.numbers[of]) for each in runs))
        for name, define in DEFINED.items()
        for of in METRICS
    }


def _brute_force(study: Study) -> list[int]:
    """Return the front by its definition, of runs of every design on every input."""
    values: dict[int, list[Fraction]] = {}
    for design in range(len(study.space)):
        numbers = _truth(study, design)
        if numbers is not None and all(_keeps(numbers, text) for text in study.where):
            values[design] = [numbers[name] for name in study.minimize]
    return [
        index
        for index, mine in values.items()
        if not any(
            theirs != mine and all(a <= b for a, b in zip(theirs, mine, strict=True))
            for theirs in values.values()
        )
    ]


def _keeps(numbers: dict[str, Fraction], condition: str) -> bool:
    name, sign, bound = condition.split()
    value, limit = numbers[name], Fraction(bound)
    return {"<=": value <= limit, "<": value < limit, ">=": value >= limit}[sign]


def _work(
    session: StudySession, slots: int, seed: int, most: int | None = None
) -> list[tuple[Scalar, ...]]:
    """Run what a session hands out, so many at once, which end in any order; return which."""
    chance = random.Random(seed)
    under_way: list[Point] = []
    ran: list[tuple[Scalar, ...]] = []
    while True:
        while len(under_way) < slots and (point := session.ask()) is not None:
            under_way.append(point)
        if not under_way or len(ran) == most:
            return ran
        done = under_way.pop(chance.randrange(len(under_way)))
        session.tell(_outcome(done.index, done.setting))
        ran.append(tuple(done.setting.values()))


def test_fronts_over_inputs_are_those_of_all_runs() -> None:
    """Runs end in any order; every proof is looked at; nothing runs twice, or is not dealt with."""
    total: Counter[str] = Counter()
    statistics: Counter[str] = Counter()

    @examples(quick=60, deep=300)
    @given(_studies(), st.integers(1, 3), st.integers(0, 9))
    def check(study: Study, slots: int, seed: int) -> None:
        session = _session(study)
        ran = _work(session, slots, seed)

        assert list(session.front()) == _brute_force(study)
        assert session.outcomes.keys() == set(range(len(study.space)))
        assert len(set(ran)) == len(ran)
        spared = [each for each in session.runs.values() if each.status in PROVED]
        refused = [each for each in session.runs.values() if each.status == "refused"]
        assert len(ran) == len(session.runs) - len(spared) - len(refused)
        _check_runs(study, session)
        if slots == 1:
            _check_left(session)
        for design in range(len(study.space)):
            _check_design(study, session, design)
        total.update(studies=1, runs=len(study.space) * len(study.over), spared=len(spared))
        statistics.update(name.partition(":")[0] for name in study.minimize)

    check()
    print(total, statistics)  # noqa: T201
    assert total["studies"] >= of_profile(quick=50, deep=200)
    assert total["spared"] > total["runs"] / 10
    assert statistics.keys() == set(STATISTICS)


def _check_runs(study: Study, session: StudySession) -> None:
    """Every design has all runs but those held out, which the front alone has."""
    for design in range(len(study.space)):
        assert all(run in session.runs for run in study.runs_of(design))
        apart = [run in session.runs for run in study.runs_of(design, held_out=True)]
        assert set(apart) <= {design in session.front()}
    for index, run in session.runs.items():
        design, place = divmod(index, len(study.over))
        assert run.setting == {**study.space[design], **study.over[place]}


def _check_left(session: StudySession) -> None:
    """A design that is left is left: no run of it begins after one was spared."""
    for outcome in session.outcomes.values():
        assert isinstance(outcome, DesignOutcome)
        spared = [each.status in PROVED for each in outcome.runs if each.status != "refused"]
        assert spared == sorted(spared) or outcome.status == "refused"


def _check_design(study: Study, session: StudySession, design: int) -> None:
    """A design's numbers are as defined, its bounds are none too high, and its proof is one."""
    outcome, truth = session.outcomes[design], _truth(study, design)
    assert isinstance(outcome, DesignOutcome)
    assert outcome.setting == study.space[design]
    assert len(outcome.runs) == len(study.over) - study.hold_out
    if outcome.status == "completed":
        assert truth is not None
        for name, value in truth.items():
            assert metric(outcome, name) == pytest.approx(float(value), rel=1e-15, abs=0)
    elif outcome.status not in PROVED:
        assert truth is None
        first = next(each for each in outcome.runs if each.status not in ("completed", *PROVED))
        told = study.input_name(first.index)
        assert outcome.reason == f"with {told}: {first.reason}"
    if truth is None:
        return
    for name, bound in outcome.bounds.items():
        assert float(bound) <= float(truth[name])
    if outcome.status == "infeasible":
        assert not _keeps(truth, str(outcome.pruned_by))
    if outcome.status == "pruned":
        assert isinstance(outcome.pruned_by, int)
        rival = _truth(study, outcome.pruned_by)
        assert rival is not None
        pairs = [(rival[name], truth[name]) for name in study.minimize]
        assert all(a <= b for a, b in pairs)
        assert any(a < b for a, b in pairs)


def test_a_study_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    """No run that has ended is run again, and the front is that of all runs."""
    number = 0

    @examples(quick=4, deep=100)
    @given(_studies(), st.integers(1, 3), st.integers(0, 9), st.integers(1, 6))
    def check(study: Study, slots: int, seed: int, most: int) -> None:
        nonlocal number
        number += 1
        url = f"sqlite:///{tmp_path / str(number)}.db"
        before: list[tuple[Scalar, ...]] = []
        for _ in range(2):
            session = _session(study, Store(study, url))
            assert session.resumed_runs >= len(before)
            before += _work(session, slots, seed, most)
        last = _session(study, Store(study, url))
        before += _work(last, slots, seed)

        assert len(set(before)) == len(before)
        assert list(last.front()) == _brute_force(study)
        again = _session(study, Store(study, url))
        assert _work(again, slots, seed) == []
        assert again.front() == last.front()
        assert {each: outcome.status for each, outcome in again.outcomes.items()} == {
            each: outcome.status for each, outcome in last.outcomes.items()
        }

    check()


def test_runs_of_a_study_that_varies_the_input_are_taken(tmp_path: Path) -> None:
    """A run is what it is, whether its seed was a choice or an input."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    rows, times = grid(rows=(8, 16)), grid(times=(1, 2))
    varied = Study(program=PROGRAM, space=rows * times, name="one")
    assert len(_work(_session(varied, Store(varied, url)), 1, 0)) == 4
    over = Study(program=PROGRAM, space=rows, over=times, minimize=("mean:cycles",), name="two")
    session = _session(over, Store(over, url))
    assert _work(session, 1, 0) == []
    assert session.resumed_runs == 4
    assert list(session.front()) == _brute_force(over)


@pytest.mark.parametrize("count", [1, 2, 3, 19, 20, 21, 39, 40, 41, 60, 100])
def test_p95(count: int) -> None:
    """Of so many inputs, 95 % have no more; of fewer than 20 it is the worst."""
    values = random.Random(count).sample(range(1000), count)
    expected = DEFINED["p95"](sorted(map(Fraction, values)))
    assert over_inputs("p95", values) == expected
    assert (over_inputs("p95", values) == max(values)) is (count < 20)


@pytest.mark.parametrize(
    ("statistic", "values", "told"),
    [
        ("mean", [2, 4], "3"),
        ("mean", [1, 2], "1.5"),
        ("mean", [2**70, 2**70 + 2], f"{2**70 + 1}"),
        ("mean", [0.1, 0.1, 0.1], "0.1"),
        ("mean", [1, 3.0], "2.0"),
        ("mean", [-math.inf, 3], "-inf"),
        ("median", [9, 1, 5], "5"),
        ("median", [9, 1, 5, 7], "6"),
        ("median", [9, 1, 4, 7], "5.5"),
    ],
)
def test_whole_numbers(statistic: str, values: list[float], told: str) -> None:
    """What is whole stays so, with all of its digits; what is not is rounded once."""
    assert repr(over_inputs(statistic, values)) == told


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("mean:cycles", ("mean", "cycles")),
        ("cycles", ("", "cycles")),
        ("mean", ("", "mean")),
        ("of:cycles", ("", "of:cycles")),
    ],
)
def test_names_of_statistics(name: str, parts: tuple[str, str]) -> None:
    """Only what a statistic stands before is one."""
    assert split_metric(name) == parts


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=7), st.data())
def test_statistics_grow_with_their_values(values: list[float], data: st.DataObject) -> None:
    """Of lower bounds each is a lower bound, to the last digit; in any order it is the same."""
    less = [data.draw(st.floats(-1e300, each)) for each in values]
    for name in STATISTICS:
        assert over_inputs(name, less) <= over_inputs(name, values)
        assert over_inputs(name, values[::-1]) == over_inputs(name, values)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"over": Space(())}, "over has no inputs: expected an axis with values"),
        (
            {"over": grid(times=(1,)) + grid(times=(2,))},
            "over is a sum of grids: expected one grid, or zipped axes",
        ),
        ({"over": grid(rows=(1,))}, "rows is an input and varied: expected one of both"),
        (
            {"over": grid(times=(1,)), "fixed": {"times": 2}},
            "times is an input and fixed: expected one of both",
        ),
        (
            {"over": grid(times=(1,)), "minimize": ("cycles",)},
            "cycles is of one run, and a design has one for each input: expected mean:cycles, "
            "worst:cycles or p95:cycles",
        ),
        (
            {"over": grid(times=(1,)), "where": ("flops <= 3",)},
            "flops is of one run, and a design has one for each input: expected mean:flops",
        ),
        (
            {"minimize": ("mean:cycles",)},
            "mean:cycles is of several inputs, and there are none: expected cycles, or inputs as "
            "over",
        ),
        (
            {"over": grid(times=(1,)), "minimize": ("p99:cycles",)},
            "there is no statistic p99: expected one of mean:cycles, worst:cycles, p95:cycles",
        ),
        (
            {"over": grid(times=(1,)), "minimize": ("mean:cycle",)},
            "there is no metric cycle: expected",
        ),
        (
            {"over": grid(times=(1,)), "where": ("worst:flops >= 3",)},
            "worst is of the inputs with most: expected least:flops, so much on every input",
        ),
        ({"hold_out": 1}, "hold_out is 1 and there are no inputs: expected some as over"),
        (
            {"over": grid(times=(1, 2)), "hold_out": 1},
            "hold_out is 1 and nothing is chosen: expected a metric to minimize",
        ),
        (
            {"over": grid(times=(1, 2)), "hold_out": 2, "minimize": ("mean:cycles",)},
            "hold_out is 2: of 2 inputs at least one is to be chosen on: expected at most 1",
        ),
        (
            {"over": grid(times=(1, 2)), "hold_out": -1, "minimize": ("mean:cycles",)},
            "hold_out is -1: of 2 inputs at least one is to be chosen on: expected 0 or more",
        ),
        ({"space": Space(())}, "the study has no points: expected an axis with values"),
        (
            {"minimize": ("cycles", "flops", "cycles")},
            "cycles is minimised twice: expected each metric once",
        ),
        ({"fixed": {"rows": 8}}, "rows is varied and fixed: expected one of both"),
    ],
)
def test_refused(keys: dict[str, object], told: str) -> None:
    """What cannot be studied over inputs is said in one line."""
    with pytest.raises(ConfigurationError) as error:
        Study(**{"program": PROGRAM, "space": grid(rows=(8, 16)), **keys})  # type: ignore[arg-type]
    assert error.value.message.startswith(told) or told in error.value.message
    assert "\n" not in error.value.message


def test_zipped_inputs_have_names() -> None:
    """An input is called by all that it has."""
    study = Study(
        program=PROGRAM,
        space=grid(rows=(8,)),
        over=zipped({"times": (1, 2), "trouble": ("no", "stuck")}),
        minimize=("mean:cycles",),
    )
    session = _session(study)
    _work(session, 1, 0)
    (outcome,) = session.outcomes.values()
    assert outcome.status == "deadlock"
    assert (outcome.reason or "").startswith("with times=2, trouble=stuck: FAB-D002 at")


@pytest.mark.parametrize(("inputs", "told"), [(1, "what that input has"), (19, "the worst of")])
def test_p95_of_few_inputs_is_said(inputs: int, told: str) -> None:
    """Of twenty and more nothing has to be said."""
    study = Study(
        program=PROGRAM,
        space=grid(rows=(8,)),
        over=grid(number=range(inputs)),
        minimize=("p95:cycles",),
    )
    (said,) = (each for each in caveats(StudyResult(study, ())) if "p95" in each)
    assert said.startswith(f"p95 of {inputs} input")
    assert told in said
    enough = replace(study, over=grid(number=range(20)))
    assert not any("p95" in each for each in caveats(StudyResult(enough, ())))


def _conducted(slots: int, url: str | None = None) -> StudyResult:
    study = Study(
        program=PROGRAM,
        space=grid(rows=(8, 16, 32, 96), flops_per_cycle=(16, 1024)),
        over=grid(times=(1, 2, 3)),
        hold_out=1,
        minimize=("mean:cycles", "worst:on_chip_requirement_bytes"),
        name="over",
    )
    workers = LocalWorkers(slots, None)
    try:
        return conduct(study, workers, Store(study, url), lambda _: None)
    finally:
        workers.close()


def test_workers(tmp_path: Path) -> None:
    """One process or two: the front, its numbers and what is held out are the same."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    one, two = _conducted(1, url), _conducted(2)
    assert list(one.front) == list(two.front) == _brute_force(one.study)
    for index in one.front:
        first, second = one.outcomes[index], two.outcomes[index]
        assert first.numbers == second.numbers
        assert [each.numbers for each in one.held_out] == [each.numbers for each in two.held_out]
    assert one.run_counts["held_out"] == len(one.front)
    again = _conducted(2, url)
    assert again.run_counts == one.run_counts | {"run": 0, "resumed": one.run_counts["run"]}
    assert again.held_out == one.held_out


def test_what_a_design_has_of_its_runs() -> None:
    """Parameters and hardware that all have, all seconds, the first failure; a proof before it."""
    study = Study(
        program=PROGRAM, space=grid(rows=(8,)), over=grid(times=(1, 2, 3)), minimize=("mean:flops",)
    )
    runs = [
        Outcome(
            index=n,
            setting=setting,
            status="completed",
            parameters={"rows": 8, "times": n, **({"one": 1} if n else {})},
            hardware={"width": n} if n else None,
            numbers={"flops": 2 + n},
            wall_seconds=0.5 if n else None,
        )
        for n, setting in enumerate(study.runs)
    ]
    found = design_outcome(study, 0, runs)
    assert (found.status, found.reason, found.wall_seconds) == ("completed", None, 1.0)
    assert found.parameters == {"rows": 8}
    assert found.hardware is None
    assert found.numbers == {f"{each}:flops": 3 for each in ("mean", "median")} | {
        "worst:flops": 4, "p95:flops": 4, "least:flops": 2,
    }  # fmt: skip
    assert found.ended == "ran to its end"

    runs[1] = replace(runs[1], status="wrong", reason="too large", wall_seconds=None)
    runs[2] = replace(runs[2], status="lost", wall_seconds=None)
    found = design_outcome(study, 0, runs)
    assert (found.status, found.reason) == ("wrong", "with times=2: too large")
    assert (found.numbers, found.wall_seconds) == ({}, None)
    assert found.ended == "ran to its end with a wrong result"

    for status, told in (("pruned", "be dominated"), ("infeasible", "break a condition")):
        runs[2] = replace(runs[2], status=status, pruned_by=7)  # type: ignore[arg-type]
        found = design_outcome(study, 0, runs)
        assert (found.status, found.pruned_by, found.reason) == (status, 7, None)
        assert found.ended == f"was proved to {told} before all of its runs were made"

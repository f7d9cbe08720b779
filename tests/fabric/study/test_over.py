from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Study, StudySession, grid
from fabric.explore.study.driver import conduct
from fabric.explore.study.outcome import PROVED, STATISTICS, metric
from fabric.explore.study.result import DesignOutcome, StudyResult
from fabric.explore.study.session import BaseStore
from fabric.explore.study.space import Scalar
from fabric.explore.study.store import Store
from fabric.explore.study.workers import LocalWorkers
from tests.fabric.study.test_fronts import before_of, keeps, outcome_of, undominated, work
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

# Statistics of sorted sequences, computed exactly by their definitions.
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


def _session(study: Study, store: Store | None = None) -> StudySession:
    return StudySession(study, store, look=lambda points: map(before_of, points))


def _truth(study: Study, design: int) -> dict[str, Fraction] | None:
    runs = [
        outcome_of(0, {**study.space[design], **setting})
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
    values: dict[int, list[Fraction]] = {}
    for design in range(len(study.space)):
        numbers = _truth(study, design)
        if numbers is not None and all(keeps(numbers, text) for text in study.where):
            values[design] = [numbers[name] for name in study.minimize]
    return undominated(values)


@pytest.mark.deep
def test_front_over_inputs_is_that_of_brute_force() -> None:
    total: Counter[str] = Counter()
    statistics: Counter[str] = Counter()

    @examples(quick=50, deep=300)
    @given(_studies(), st.integers(1, 3), st.integers(0, 9))
    def check(study: Study, slots: int, seed: int) -> None:
        session = _session(study)
        ran = work(session, slots, seed)

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
    for design in range(len(study.space)):
        assert all(run in session.runs for run in study.runs_of(design))
        apart = [run in session.runs for run in study.runs_of(design, held_out=True)]
        assert set(apart) <= {design in session.front()}
    for index, run in session.runs.items():
        design, place = divmod(index, len(study.over))
        assert run.setting == {**study.space[design], **study.over[place]}


def _check_left(session: StudySession) -> None:
    for outcome in session.outcomes.values():
        assert isinstance(outcome, DesignOutcome)
        spared = [each.status in PROVED for each in outcome.runs if each.status != "refused"]
        assert spared == sorted(spared) or outcome.status == "refused"


def _check_design(study: Study, session: StudySession, design: int) -> None:
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
        first_input = study.input_name(first.index)
        assert outcome.reason == f"with {first_input}: {first.reason}"
    if truth is None:
        return
    for name, bound in outcome.bounds.items():
        assert float(bound) <= float(truth[name])
    if outcome.status == "infeasible":
        assert not keeps(truth, str(outcome.pruned_by))
    if outcome.status == "pruned":
        assert isinstance(outcome.pruned_by, int)
        rival = _truth(study, outcome.pruned_by)
        assert rival is not None
        pairs = [(rival[name], truth[name]) for name in study.minimize]
        assert all(a <= b for a, b in pairs)
        assert any(a < b for a, b in pairs)


@pytest.mark.deep
def test_stopped_study_over_inputs_resumes_without_repeating_runs(tmp_path: Path) -> None:
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
            before += work(session, slots, seed, most)
        last = _session(study, Store(study, url))
        before += work(last, slots, seed)

        assert len(set(before)) == len(before)
        assert list(last.front()) == _brute_force(study)
        again = _session(study, Store(study, url))
        assert work(again, slots, seed) == []
        assert again.front() == last.front()
        assert {each: outcome.status for each, outcome in again.outcomes.items()} == {
            each: outcome.status for each, outcome in last.outcomes.items()
        }

    check()


def test_runs_of_a_varied_input_are_reused_over_inputs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    rows, times = grid(rows=(8, 16)), grid(times=(1, 2))
    varied = Study(program=PROGRAM, space=rows * times, name="one")
    assert len(work(_session(varied, Store(varied, url)), 1, 0)) == 4
    over = Study(program=PROGRAM, space=rows, over=times, minimize=("mean:cycles",), name="two")
    session = _session(over, Store(over, url))
    assert work(session, 1, 0) == []
    assert session.resumed_runs == 4
    assert list(session.front()) == _brute_force(over)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=7), st.data())
def test_statistics_grow_with_their_values_in_any_order(
    values: list[float], data: st.DataObject
) -> None:
    less = [data.draw(st.floats(-1e300, each)) for each in values]
    for statistic in STATISTICS.values():
        assert statistic(less) <= statistic(values) == statistic(values[::-1])


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
        return conduct(study, workers, Store(study, url) if url else BaseStore(), lambda _: None)
    finally:
        workers.close()


@pytest.mark.deep
def test_front_over_inputs_is_equal_for_one_and_two_workers(tmp_path: Path) -> None:
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

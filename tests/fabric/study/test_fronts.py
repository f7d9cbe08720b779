from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Outcome, Point, Study, StudySession, grid, run_point, zipped
from fabric.explore.study.evaluation import Job, known_before
from fabric.explore.study.outcome import Before
from fabric.explore.study.space import Scalar, Setting, Space
from tests.profiles import examples, of_profile

PROGRAM: Final = Path(__file__).parent / "program_of_fronts.py"

METRICS: Final = (
    "cycles",
    "on_chip_requirement_bytes",
    "allocated_flops_per_cycle",
    "flops",
    "off_chip_traffic_bytes",
    "extra.waste",
)


def _some(values: tuple[Scalar, ...]) -> st.SearchStrategy[list[Scalar]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=4, unique=True)


@st.composite
def _spaces(draw: st.DrawFn) -> Space:
    rows = draw(_some((8, 16, 24, 32, 48, 96)))
    space = grid({"rows": rows, "flops_per_cycle": draw(_some((16, 64, 1024, 4096)))})
    if draw(st.booleans()):
        space *= grid({"times": draw(_some((1, 2)))})
    if draw(st.booleans()):
        space *= grid({"trouble": draw(_some(("no", "stuck", "refused")))})
    if draw(st.booleans()):
        space += zipped({"rows": (8, 96), "flops_per_cycle": (16, 4096)})
    return space


@st.composite
def _studies(draw: st.DrawFn) -> Study:
    metrics = draw(st.lists(st.sampled_from(METRICS), min_size=1, max_size=3, unique=True))
    conditions = draw(
        st.lists(
            st.sampled_from(
                (
                    "cycles <= 400",
                    "cycles >= 200",
                    "on_chip_requirement_bytes < 4096",
                    "on_chip_requirement_bytes >= 2048",
                    "extra.waste <= 2",
                )
            ),
            max_size=2,
            unique=True,
        )
    )
    return Study(
        program=PROGRAM, space=draw(_spaces()), minimize=tuple(metrics), where=tuple(conditions)
    )


@cache
def _ran(setting: tuple[tuple[str, Scalar], ...]) -> Outcome:
    return run_point(_alone(dict(setting)), Point(0, dict(setting)))


@cache
def _known(setting: tuple[tuple[str, Scalar], ...]) -> Before:
    return known_before(Job.of(_alone(dict(setting)), Point(0, dict(setting))))


def _alone(setting: Setting) -> Study:
    return Study(program=PROGRAM, space=grid({name: [value] for name, value in setting.items()}))


def outcome_of(index: int, setting: Setting) -> Outcome:
    return replace(_ran(tuple(sorted(setting.items()))), index=index, setting=setting)


def before_of(point: Point) -> Before:
    bound = replace(_known(tuple(sorted(point.setting.items()))), index=point.index)
    if bound.refused is None:
        return bound
    return replace(bound, refused=replace(bound.refused, index=point.index, setting=point.setting))


def _brute_force(study: Study) -> list[int]:
    values: dict[int, list[float]] = {}
    for index in range(len(study.space)):
        outcome = outcome_of(index, study.space[index])
        if outcome.status == "completed" and all(
            keeps(outcome.numbers, text) for text in study.where
        ):
            values[index] = [outcome.numbers[name] for name in study.minimize]
    return undominated(values)


def undominated(values: Mapping[int, Sequence[float | Fraction]]) -> list[int]:
    return [
        index
        for index, mine in values.items()
        if not any(
            theirs != mine and all(a <= b for a, b in zip(theirs, mine, strict=True))
            for theirs in values.values()
        )
    ]


def keeps(numbers: Mapping[str, float | Fraction], condition: str) -> bool:
    name, sign, bound = condition.split()
    value, limit = Fraction(numbers[name]), Fraction(bound)
    return {"<=": value <= limit, "<": value < limit, ">=": value >= limit}[sign]


def work(
    session: StudySession, slots: int, seed: int, most: int | None = None
) -> list[tuple[Scalar, ...]]:
    chance = random.Random(seed)
    under_way: list[Point] = []
    ran: list[tuple[Scalar, ...]] = []
    while True:
        while len(under_way) < slots and (point := session.ask()) is not None:
            under_way.append(point)
        if not under_way or len(ran) == most:
            return ran
        done = under_way.pop(chance.randrange(len(under_way)))
        session.tell(outcome_of(done.index, done.setting))
        ran.append(tuple(done.setting.values()))


@pytest.mark.deep
def test_front_of_drawn_studies_is_that_of_brute_force() -> None:
    points: list[int] = []
    saved: list[int] = []

    @examples(quick=50, deep=200)
    @given(_studies(), st.integers(1, 3), st.integers(0, 9))
    def check(study: Study, slots: int, seed: int) -> None:
        session = StudySession(study, look=lambda points: map(before_of, points))
        runs = len(work(session, slots, seed))
        assert list(session.front()) == _brute_force(study)
        assert session.outcomes.keys() == set(range(len(study.space)))
        proved = [each for each in session.outcomes.values() if each.pruned_by is not None]
        refused = [each for each in session.outcomes.values() if each.status == "refused"]
        assert runs == len(study.space) - len(proved) - len(refused)
        for each in proved:
            _check_proof(study, session, each)
        points.append(len(study.space))
        saved.append(len(proved))

    check()
    print(f"{len(points)} studies of {sum(points)} points: {sum(saved)} runs saved")  # noqa: T201
    assert len(points) >= of_profile(quick=50, deep=200)
    assert sum(saved) > sum(points) / 10


def _check_proof(study: Study, session: StudySession, proved: Outcome) -> None:
    truth = outcome_of(proved.index, proved.setting)
    if proved.status == "infeasible":
        assert truth.status != "completed" or not keeps(truth.numbers, str(proved.pruned_by))
        return
    assert isinstance(proved.pruned_by, int)
    rival = session.outcomes[proved.pruned_by].numbers
    if truth.status == "completed":
        pairs = [(rival[name], truth.numbers[name]) for name in study.minimize]
        assert all(a <= b for a, b in pairs)
        assert any(a < b for a, b in pairs)

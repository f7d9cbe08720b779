"""Fronts with fewer runs: those of the whole grid, whatever varies, is wanted, and goes wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

# Any: fields of a study.
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Outcome, Point, Study, StudySession, grid, run_point, zipped
from fabric.explore.study.evaluation import Before, Job, known_before
from fabric.explore.study.opening import Asked, open_study
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


def _outcome(index: int, setting: Setting) -> Outcome:
    return replace(_ran(tuple(sorted(setting.items()))), index=index, setting=setting)


def _before(point: Point) -> Before:
    known = replace(_known(tuple(sorted(point.setting.items()))), index=point.index)
    if known.refused is None:
        return known
    return replace(known, refused=replace(known.refused, index=point.index, setting=point.setting))


def _brute_force(study: Study) -> list[int]:
    """Return the front by its definition, of runs of every point."""
    values: dict[int, list[float]] = {}
    for index in range(len(study.space)):
        outcome = _outcome(index, study.space[index])
        if outcome.status == "completed" and all(
            _keeps(outcome.numbers, text) for text in study.where
        ):
            values[index] = [outcome.numbers[name] for name in study.minimize]
    return _undominated(values)


def _undominated(values: dict[int, list[float]]) -> list[int]:
    return [
        index
        for index, mine in values.items()
        if not any(
            theirs != mine and all(a <= b for a, b in zip(theirs, mine, strict=True))
            for theirs in values.values()
        )
    ]


def _keeps(numbers: dict[str, float], condition: str) -> bool:
    name, sign, bound = condition.split()
    value, limit = numbers[name], float(bound)
    return {"<=": value <= limit, "<": value < limit, ">=": value >= limit}[sign]


def _work(session: StudySession, slots: int, seed: int) -> int:
    """Run what a session hands out, so many at once, which end in any order; return how many."""
    chance = random.Random(seed)
    under_way: list[Point] = []
    runs = 0
    while True:
        while len(under_way) < slots and (point := session.ask()) is not None:
            under_way.append(point)
            runs += 1
        if not under_way:
            return runs
        done = under_way.pop(chance.randrange(len(under_way)))
        session.tell(_outcome(done.index, done.setting))


def test_fronts_of_drawn_studies_are_those_of_their_grids() -> None:
    """Points end in any order; every proof is looked at."""
    points: list[int] = []
    saved: list[int] = []

    @examples(quick=50, deep=200)
    @given(_studies(), st.integers(1, 3), st.integers(0, 9))
    def check(study: Study, slots: int, seed: int) -> None:
        session = StudySession(study, look=lambda points: map(_before, points))
        runs = _work(session, slots, seed)
        assert list(session.front()) == _brute_force(study)
        # Every point is dealt with, and what is said to have run is what has.
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


@pytest.mark.exhaustive
def test_the_front_of_a_qwen_layer_is_that_of_its_grid() -> None:
    """The study that the README shows."""
    study = open_study(Path("programs/questions/qwen_design.py"), Asked())
    session = StudySession(study)
    while (point := session.ask()) is not None:
        session.tell(run_point(study, point))
    every = [run_point(study, study.point(index)) for index in range(len(study.space))]
    values = {
        each.index: [each.numbers[name] for name in study.minimize]
        for each in every
        if each.status == "completed"
    }
    assert list(session.front()) == _undominated(values)
    proved = [each for each in session.outcomes.values() if each.pruned_by is not None]
    assert proved


def _check_proof(study: Study, session: StudySession, proved: Outcome) -> None:
    """Look at the run that the point was spared."""
    truth = _outcome(proved.index, proved.setting)
    if proved.status == "infeasible":
        assert truth.status != "completed" or not _keeps(truth.numbers, str(proved.pruned_by))
        return
    assert isinstance(proved.pruned_by, int)
    rival = session.outcomes[proved.pruned_by].numbers
    if truth.status == "completed":
        pairs = [(rival[name], truth.numbers[name]) for name in study.minimize]
        assert all(a <= b for a, b in pairs)
        assert any(a < b for a, b in pairs)


def _order(cycles: Sequence[int], flops: Sequence[int], **changes: Any) -> list[int]:
    """Return the order in which points are handed out of which so much is known before they run."""
    study = replace(
        Study(program=PROGRAM, space=grid(n=range(len(cycles))), minimize=("cycles", "flops")),
        **changes,
    )
    inputs = len(study.over)

    def look(points: Sequence[Point]) -> list[Before]:
        return [
            Before(
                each.index,
                {"cycles": cycles[each.index // inputs], "flops": flops[each.index // inputs]},
            )
            for each in points
        ]

    session = StudySession(study, look=look)
    return [point.index for point in iter(session.ask, None)]


def test_the_most_promising_points_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with the least product of bounds, of so many points as are looked at together."""
    cycles, flops = (5, 1, 3, 2, 0), (7, 7, 7, 7, 7)
    assert _order(cycles, flops) == [4, 1, 3, 2, 0]
    # (1 + 2) * (1 + 9) = 30, (1 + 4) * (1 + 4) = 25, (1 + 30) * 1 = 31, and 30 again.
    assert _order((2, 4, 30, 9), (9, 4, 0, 2)) == [1, 0, 3, 2]
    both = {"over": grid(m=(0, 1)), "minimize": ("mean:cycles", "mean:flops")}
    assert _order((5, 1), (7, 7), **both) == [2, 3, 0, 1]
    monkeypatch.setattr("fabric.explore.study.session.WINDOW_POINTS", 2)
    assert _order(cycles, flops) == [1, 0, 3, 2, 4]
    assert _order((5, 1), (7, 7), **both) == [0, 1, 2, 3]
    monkeypatch.setattr("fabric.explore.study.session.WINDOW_POINTS", 1)
    assert _order((5, 1), (7, 7), **both) == [0, 1, 2, 3]
    monkeypatch.setattr("fabric.explore.study.session.WINDOW_POINTS", 4)
    assert _order((5, 1, 0), (7, 7, 7), **both) == [2, 3, 0, 1, 4, 5]

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from fabric import ConfigurationError, Outcome, Point, Study, StudySession, grid, zipped
from fabric.explore.study.outcome import Before
from fabric.explore.study.search import Method, Search, SearchSession
from fabric.explore.study.space import Setting
from fabric.explore.study.storage import file_url
from fabric.explore.study.store import Store
from tests.profiles import spread

PROGRAM = Path(__file__).parent / "program_of_fronts.py"


def _study(**changes: Any) -> Study:
    study = Study(
        program=PROGRAM,
        space=grid(x=range(1000), y=range(1000)),
        minimize=("cycles", "flops"),
        name="plane",
    )
    return replace(study, **changes)


def _outcome(point: Point) -> Outcome:
    x, y = (_number(point.setting, name) for name in ("x", "y"))
    numbers = {"cycles": (x - 300) ** 2 + y, "flops": (x - 500) ** 2 + y}
    return Outcome(
        index=point.index,
        setting=point.setting,
        status="completed",
        numbers=numbers,
        executed={"": sha256(PROGRAM.read_bytes()).hexdigest()},
    )


def _number(setting: Setting, name: str) -> int:
    value = setting[name]
    assert isinstance(value, int)
    return value


def _nothing(points: Any) -> list[Before]:
    return [Before(point.index) for point in points]


def _drawn(session: StudySession, most: int | None = None) -> list[int]:
    found: list[int] = []
    while len(found) != most and (point := session.ask()) is not None:
        session.tell(_outcome(point))
        found.append(point.index)
    return found


def _searched(study: Study, search: Search, url: str | None = None) -> SearchSession:
    store = None if url is None else Store(study, url)
    return SearchSession(study, search, store, _nothing)


@pytest.mark.parametrize("method", get_args(Method))
def test_search_with_a_seed_draws_the_same_points(method: Method) -> None:
    study = _study()
    first = _drawn(_searched(study, Search(method, 16, seed=1)))
    again = _drawn(_searched(study, Search(method, 16, seed=1)))
    other = _drawn(_searched(study, Search(method, 16, seed=2)))
    assert first == again
    assert first != other
    assert len(first) == len(set(first)) == 16


@pytest.mark.parametrize("method", spread(get_args(Method), 1))
def test_stopped_search_resumes_with_the_same_points(method: Method, tmp_path: Path) -> None:
    study = _study()
    whole = _drawn(_searched(study, Search(method, 16)))
    url = file_url(tmp_path / "study.db")
    began = _searched(study, Search(method, 16), url)
    first = _drawn(began, 11)
    assert began.ask() is not None  # the study is stopped while this point runs
    ended = _searched(study, Search(method, 16), url)
    assert first + _drawn(ended) == whole
    assert ended.resumed == 11
    assert _searched(study, Search(method, 16), url).ask() is None


@pytest.mark.parametrize("method", get_args(Method))
def test_search_of_a_small_space_runs_every_point_once(method: Method) -> None:
    study = _study(space=grid(x=(200, 300, 500), y=(1, 2)) + zipped(x=(300, 7), y=(3, 4)))
    session = _searched(study, Search(method, 100))
    assert sorted(_drawn(session)) == list(range(8))
    every = StudySession(study, look=_nothing)
    _drawn(every)
    assert session.front() == every.front()


def test_zipped_axes_are_drawn_together() -> None:
    space = zipped(x=range(100), y=range(100)) + grid(x=(1, 2.5, "a", None, True), y=(7,))
    study = _study(space=space)
    session = SearchSession(study, Search("random", 80), None, _nothing)
    found = []
    while (point := session.ask()) is not None:
        assert point.setting == space[point.index]
        found.append(point)
        session.tell(Outcome(index=point.index, setting=point.setting, status="deadlock"))
    assert {point.index >= 100 for point in found} == {True, False}
    assert all(p.setting["x"] == p.setting["y"] for p in found if p.index < 100)
    assert len(found) == 80


@pytest.mark.parametrize("method", get_args(Method))
def test_pruned_points_neither_run_nor_count(method: Method) -> None:
    study = _study(where=("flops <= 1e5",))

    def look(points: Any) -> list[Before]:
        return [
            Before(each.index, {"flops": int(each.setting["x"] > 500) * 10**6}) for each in points
        ]

    session = SearchSession(study, Search(method, 12), None, look)
    ran = _drawn(session)
    assert len(ran) == 12
    assert all(_number(study.space[index], "x") <= 500 for index in ran)
    infeasible = [each for each in session.outcomes.values() if each.status == "infeasible"]
    assert infeasible
    pruned = [each for each in session.history.trials if each.state.name == "PRUNED"]
    assert len(pruned) >= len(infeasible)
    assert all(each.constraints == {"flops <= 100000": 1.0} for each in pruned)


def test_samplers_receive_the_violation_of_conditions() -> None:
    study = _study(where=("cycles <= 100", "flops > 50"))
    session = _searched(study, Search("tpe", 3))
    for index, (cycles, flops) in enumerate([(100, 51), (150, 50), (50, 40)]):
        numbers = {"cycles": cycles, "flops": flops}
        setting = study.space[index]
        session.tell(Outcome(index=index, setting=setting, status="completed", numbers=numbers))
    broken = [trial.constraints for trial in session.history.trials]
    assert [each["cycles <= 100"] for each in broken] == [0, 0.5, -0.5]
    assert [each["flops > 50"] > 0 for each in broken] == [False, True, True]
    assert broken[2]["flops > 50"] == 0.2


@pytest.mark.parametrize(
    ("search", "why"),
    [
        (
            lambda: Search(cast("Method", "annealing"), 3),
            "Search: method is 'annealing': expected one of tpe, nsga2, random",
        ),
        (lambda: Search("tpe", 0), "Search: points is 0: expected an integer of at least 1"),
        (lambda: Search("tpe", 1, -1), "Search: seed is -1: expected an integer of at least 0"),
    ],
)
def test_search_with_wrong_arguments_is_refused(search: Any, why: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        search()
    assert refused.value.message == why

"""Search: what Optuna's samplers draw, in spaces that are never looked at whole."""

from __future__ import annotations

import itertools
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

# Any: fields of a study.
from typing import Any, cast

import optuna
import pytest

from fabric import ConfigurationError, Outcome, Point, Study, StudySession, grid, zipped
from fabric.explore.study.evaluation import Before
from fabric.explore.study.search import SAMPLERS, Method, Search, SearchSession
from fabric.explore.study.session import NotKept
from fabric.explore.study.space import Setting
from fabric.explore.study.storage import file_url
from fabric.explore.study.store import Store

PROGRAM = Path(__file__).parent / "program_of_fronts.py"

METHODS: tuple[Method, ...] = tuple(SAMPLERS)


def _study(**changes: Any) -> Study:
    study = Study(
        program=PROGRAM,
        space=grid(x=range(1000), y=range(1000)),
        minimize=("cycles", "flops"),
        name="plane",
    )
    return replace(study, **changes)


def _outcome(point: Point) -> Outcome:
    """Return a run that nothing has run: two metrics that pull in different directions."""
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
    """Know nothing of points before they run."""
    return [Before(point.index) for point in points]


def _drawn(session: StudySession, most: int | None = None) -> list[int]:
    """Run a session, one point at a time, and return the points in the order of their runs."""
    found: list[int] = []
    while len(found) != most and (point := session.ask()) is not None:
        session.tell(_outcome(point))
        found.append(point.index)
    return found


def _searched(study: Study, search: Search, url: str | None = None) -> SearchSession:
    return SearchSession(study, search, Store(study, url), _nothing)


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_draws_the_same_points(method: Method) -> None:
    """Another one does not; there are as many as wanted, and each is new."""
    study = _study()
    first = _drawn(_searched(study, Search(method, 16, seed=1)))
    again = _drawn(_searched(study, Search(method, 16, seed=1)))
    other = _drawn(_searched(study, Search(method, 16, seed=2)))
    assert first == again
    assert first != other
    assert len(first) == len(set(first)) == 16


@pytest.mark.parametrize("method", METHODS)
def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(
    method: Method, tmp_path: Path
) -> None:
    """Also where it was stopped with a point under way: that one is drawn again."""
    study = _study()
    whole = _drawn(_searched(study, Search(method, 16)))
    url = file_url(tmp_path / "study.db")
    began = _searched(study, Search(method, 16), url)
    first = _drawn(began, 11)
    assert began.ask() is not None  # and nothing comes of it
    ended = _searched(study, Search(method, 16), url)
    assert first + _drawn(ended) == whole
    assert ended.resumed == 11
    assert _searched(study, Search(method, 16), url).ask() is None


@pytest.mark.parametrize("method", ["tpe", "nsga2"])
def test_samplers_do_better_than_chance(method: Method) -> None:
    """They have learnt: over a few seeds they come nearer to the best there is."""

    def best(method: Method, seed: int) -> float:
        session = _searched(_study(minimize=("cycles",)), Search(method, 40, seed))
        _drawn(session)
        return min(float(each.numbers["cycles"]) for each in session.outcomes.values())

    seeds = range(3)
    assert sum(best(method, seed) for seed in seeds) < sum(best("random", seed) for seed in seeds)


@pytest.mark.parametrize("method", METHODS)
def test_a_small_space_is_dealt_with_whole(method: Method) -> None:
    """No point is run twice, however often it is drawn."""
    study = _study(space=grid(x=(200, 300, 500), y=(1, 2)) + zipped(x=(300, 7), y=(3, 4)))
    session = _searched(study, Search(method, 100))
    assert sorted(_drawn(session)) == list(range(8))
    every = StudySession(study, look=_nothing)
    _drawn(every)
    assert session.front() == every.front()


def test_axes_that_are_zipped_are_drawn_together() -> None:
    """And every product of a sum is drawn from."""
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


@pytest.mark.parametrize("method", METHODS)
def test_what_is_proved_does_not_run_and_does_not_count(method: Method) -> None:
    """Half the plane breaks a condition for certain: no run goes there."""
    study = _study(where=("flops <= 1e5",))

    def look(points: Any) -> list[Before]:
        return [
            Before(each.index, {"flops": int(each.setting["x"] > 500) * 10**6}) for each in points
        ]

    store = Store(study)
    session = SearchSession(study, Search(method, 12), store, look)
    ran = _drawn(session)
    assert len(ran) == 12
    assert all(_number(study.space[index], "x") <= 500 for index in ran)
    infeasible = [each for each in session.outcomes.values() if each.status == "infeasible"]
    assert infeasible
    pruned = [each for each in store.history.trials if each.state.name == "PRUNED"]
    assert len(pruned) >= len(infeasible)
    assert all(each.constraints == {"flops <= 100000": 1.0} for each in pruned)


def test_samplers_are_told_how_far_a_condition_is_broken() -> None:
    """As shares of the bound: zero or less is kept."""
    study = _study(where=("cycles <= 100", "flops > 50"))
    store = Store(study)
    numbers = [(100, 51), (150, 50), (50, 40)]
    for index, (cycles, flops) in enumerate(numbers):
        store.keep(
            Outcome(
                index=index,
                setting=study.space[index],
                status="completed",
                numbers={"cycles": cycles, "flops": flops},
            )
        )
    broken = [trial.constraints for trial in store.history.trials]
    assert [each["cycles <= 100"] for each in broken] == [0, 0.5, -0.5]
    assert [each["flops > 50"] > 0 for each in broken] == [False, True, True]
    assert broken[2]["flops > 50"] == 0.2


def test_several_points_at_once_are_several() -> None:
    """Nothing that is under way is handed out again."""
    study = _study(space=grid(x=range(4), y=range(3)))
    session = _searched(study, Search("random", 12))
    points = list(itertools.takewhile(lambda point: point is not None, iter(session.ask, None)))
    assert sorted(point.index for point in points) == list(range(12))


def test_the_history_of_a_grid_is_that_of_a_search(tmp_path: Path) -> None:
    """Points of the grid are known; they do not count as drawn."""
    study = _study(space=grid(x=range(4), y=range(3)))
    url = file_url(tmp_path / "study.db")
    _drawn(StudySession(study, Store(study, url), _nothing), 5)
    session = _searched(study, Search("tpe", 4), url)
    assert session.resumed == 5
    assert len(_drawn(session)) == 4
    assert len(session.outcomes) == 9


@pytest.mark.parametrize(
    ("search", "why"),
    [
        (
            lambda: Search(cast("Method", "annealing"), 3),
            "search is 'annealing': expected one of tpe, nsga2, random",
        ),
        (lambda: Search("tpe", 0), "points is 0: expected at least 1"),
        (lambda: Search("tpe", 1, -1), "seed is -1: expected 0 or more"),
    ],
)
def test_what_is_no_search_is_refused(search: Any, why: str) -> None:
    """One sentence each."""
    with pytest.raises(ConfigurationError) as refused:
        search()
    assert refused.value.message == why


def test_nothing_kept_is_nothing_known() -> None:
    """The memory of a session without a storage."""
    kept = NotKept()
    assert kept.known() == kept.news() == []
    assert kept.claim(_study().point(0), insist=False)


def test_a_search_ends_where_all_that_is_drawn_is_proved_away() -> None:
    """Ten times as many points are drawn as are to run, and no more."""
    study = _study(where=("flops <= 1e5",))

    def look(points: Any) -> list[Before]:
        return [Before(each.index, {"flops": 10**6}) for each in points]

    session = SearchSession(study, Search("random", 3), None, look)
    assert session.ask() is None
    assert len(session.outcomes) == 30


@pytest.mark.parametrize(
    ("points", "population"),
    [(1, 10), (54, 10), (55, 11), (249, 49), (250, 50), (900, 50)],
)
def test_generations(points: int, population: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search has five, of ten points at least and fifty at most."""
    asked: list[int] = []

    class Told(optuna.samplers.RandomSampler):
        def __init__(self, *, population_size: int, seed: int) -> None:
            super().__init__(seed)
            asked.append(population_size)

    monkeypatch.setattr(optuna.samplers, "NSGAIISampler", Told)
    assert _searched(_study(), Search("nsga2", points)).ask() is not None
    assert asked == [population]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ((3,), "CategoricalDistribution(choices=(3,))"),
        ((3, 5), "IntDistribution(high=5, log=False, low=3, step=2)"),
        ((3, 5, 7), "IntDistribution(high=7, log=False, low=3, step=2)"),
        ((3, 5, 8), "CategoricalDistribution(choices=(3, 5, 8))"),
        ((5, 3), "CategoricalDistribution(choices=(5, 3))"),
        ((3, 5.5), "CategoricalDistribution(choices=(3, 5.5))"),
        ((3, True), "CategoricalDistribution(choices=(3, True))"),
        ((False, True), "CategoricalDistribution(choices=(False, True))"),
        ((1, True, 1.5), "CategoricalDistribution(choices=('1', 'True', '1.5'))"),
        (("a", None), "CategoricalDistribution(choices=('a', None))"),
    ],
)
def test_what_is_drawn_from(values: tuple[Any, ...], told: str) -> None:
    """Whole numbers that are evenly spaced have an order and a step; all else is a choice."""
    store = Store(_study(space=grid(x=values)))
    _, distributions = store.form.parameters(0)
    assert str(distributions["x"]) == told
    for index, value in enumerate(values):
        parameters, _ = store.form.parameters(index)
        assert list(store.form.indices({"x": value})) == [index]
        assert str(parameters["x"]) == str(value)


def test_where_points_of_sums_and_products_stand() -> None:
    """Every point's parameters are those of its setting, and lead back to it."""
    space = grid(x=(1, 2), y=("a", "b", "c")) + zipped(x=(7, 8), z=(1, 2)) * grid(y=("a", "b"))
    form = Store(_study(space=space)).form
    for index, setting in enumerate(space):
        parameters, distributions = form.parameters(index)
        product = int(index >= 6)
        assert parameters["product"] == product
        assert parameters.keys() == distributions.keys()
        assert parameters[f"y ({product})"] == setting["y"]
        if product:
            assert parameters["x:z (1)"] == f"{setting['x']}:{setting['z']}"
        assert list(form.indices(setting)) == [index]
    assert list(form.indices({"x": 7, "y": "a"})) == []
    with pytest.raises(IndexError):
        form.parameters(len(space))

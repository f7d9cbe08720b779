"""Sizing as a whole: goals are kept, bounds hold, and nothing is said that is not so."""

from __future__ import annotations

import importlib.util
import sys
from random import Random
from types import SimpleNamespace

# Any: what only some questions are asked of.
from typing import Any

import pytest

from fabric import ConfigurationError, FabricError, Program, Sizing, simulate, size
from fabric.explore.sizing.methods import METHODS, Method
from fabric.explore.sizing.problem import Asked, Depths
from fabric.explore.sizing.running import UNBOUNDED, Case, cycles_of
from fabric.explore.sizing.size import bindings
from fabric.extend import Deadlock
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import load_program
from fabric.runs.options import Options
from operators import EagerMerge
from tests.deadlock.parts import Script, feedback, relay, sink, source
from tests.fabric.scripted import Stage, Ticks
from tests.fabric.sizing.networks import network, program_of, shape
from tests.profiles import spread

GOALS = ("same-cycles", "slowdown=1.2", "deadlock-free")


def _allowed(found: Sizing, unbounded: int) -> float:
    return {"same-cycles": unbounded, "slowdown=1.2": unbounded * 1.2}.get(found.goal, float("inf"))


def _check(found: Sizing, program: Program) -> None:
    """Run the program: the goal is kept, and with one slot less anywhere it is not."""
    deep = cycles_of(program, dict.fromkeys(found.depths, UNBOUNDED))
    assert deep is not None
    allowed = _allowed(found, deep)
    assert found.inputs[0].cycles_unbounded == deep
    assert found.inputs[0].cycles == cycles_of(program, found.depths)
    assert (found.inputs[0].cycles or allowed) <= allowed
    assert found.cost == sum(each.depth * each.element_bytes for each in found.channels)
    assert found.lower_bound <= found.cost
    for channel in found.channels:
        assert channel.least_depth <= channel.depth
        if channel.depth == 1:
            assert channel.binds == "one slot"
            continue
        less = cycles_of(program, found.depths | {channel.option: channel.depth - 1})
        assert channel.binds == ("deadlock" if less is None else "goal")
        assert less is None or less > allowed


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("seed", range(8))
def test_networks(seed: int, goal: str) -> None:
    """Of networks of blocking reads all is proved."""
    random = Random(seed)
    program = program_of(network(random, shape(random)))
    try:
        found = size(program, goal=goal)
    except Deadlock:
        assert cycles_of(program, {}) is None
        return
    assert (found.truth, found.reasons, found.keeps) == ("proved", (), True)
    _check(found, program)
    least = {each.method: each for each in found.methods}
    assert tuple(least) == METHODS
    assert least["exact"].cost == min(each.cost or 0 for each in found.methods if each.keeps)
    assert least["high-water"].cycles == found.inputs[0].cycles_unbounded
    assert found.lower_bound <= (least["exact"].cost or 0) <= found.cost
    exactly = size(program, goal=goal, method="exact")
    assert exactly.cost == exactly.lower_bound == least["exact"].cost


PROGRAMS = (
    ("simplified_moe", ()),
    ("graph_layer", ()),
    ("edit_distance", ()),
    ("moe", ("model=tiny", "batch=4")),
)


@pytest.mark.parametrize(("name", "parameters"), spread(PROGRAMS, 2))
@pytest.mark.parametrize("goal", ["same-cycles", "deadlock-free"])
def test_programs(name: str, parameters: tuple[str, ...], goal: str) -> None:
    """Where the memory is shared what is found was run, and with a slot less, too."""
    program = load_program(f"programs/{name}.py", parameters, Hardware()).program
    found = size(program, goal=goal)
    assert found.keeps
    timeless = goal == "deadlock-free" and not any("whichever" in each for each in found.reasons)
    assert (found.truth == "proved") is (timeless and not found.reasons)
    _check(found, program)
    report = simulate(program, depths=found.depths)
    assert report.cycles == found.inputs[0].cycles


def test_merge() -> None:
    """A merge that takes what comes first: run, not proved."""
    program = _merge()
    found = size(program)
    assert found.truth == "validated"
    assert any("whichever input comes first" in reason for reason in found.reasons)
    _check(found, program)


def _fork_join() -> Program:
    """A fork whose second branch holds four elements back before it lets one out."""
    with Program("fork join") as program:
        first, second = Stage(8, outputs=2, name="fork")(Ticks(8, name="ticks")())
        late = Script(("r0", "r0", "r0", "r0", "s0", "s0", "s0", "s0"), rounds=2, counts=(8,))
        Stage(8, outputs=0, name="join")(first, *late(second))
    return program


def _merge() -> Program:
    with Program("merge") as program:
        data, selectors = EagerMerge()([source("one", 4), source("two", 4)])
        sink("data", data)
        sink("order", selectors)
    return program


@pytest.mark.parametrize("method", ["high-water", "paper-lp"])
def test_methods_that_only_propose(method: Method) -> None:
    """What they propose is run once and taken as it is; depths of one slot cost no more."""
    found = size(_merge(), method=method)
    (its,) = (each for each in found.methods if each.method == method)
    assert (found.method, found.truth) == (method, "validated")
    assert (its.cost, its.cycles, its.keeps) == (found.cost, found.inputs[0].cycles, found.keeps)
    assert found.lower_bound <= sum(each.element_bytes for each in found.channels)


def test_told_of_runs() -> None:
    """Every run is told with its number, its input, and how it ended."""
    told: list[str] = []
    found = size(_fork_join(), goal="deadlock-free", depths={"join.0": 9}, notify=told.append)
    unbounded = found.inputs[0].cycles_unbounded
    assert told[0] == f"run 1 took {unbounded} cycles"
    assert len(told) == found.runs
    told.clear()
    size({"one": _fork_join(), "two": _fork_join()}, notify=told.append)
    assert told[:2] == [f"{name}: run 1 took {unbounded} cycles" for name in ("one", "two")]
    told.clear()
    # Without limits, with the depths found, and as wired: two slots are too few for a branch
    # beside one that keeps four elements back.
    assert size(_fork_join(), notify=told.append).inputs[0].cycles_before is None
    took = [f"run {number} took {unbounded} cycles" for number in (1, 2)]
    assert told == [*took, "run 3 got stuck"]


def test_a_record_that_says_otherwise_than_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all is proved and the run nevertheless misses the goal, the fault is not the user's."""
    monkeypatch.setattr(Asked, "keeps", lambda *_: False)
    with pytest.raises(FabricError, match=r"^line: a run with the depths found does not keep same"):
        size(_line())


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods that need it have a note instead of depths; the others are there."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    found = {each.method: each for each in size(_line()).methods}
    assert [name for name, each in found.items() if each.cost is None] == ["exact", "paper-lp"]
    for name in ("exact", "paper-lp"):
        assert (found[name].cycles, found[name].keeps) == (None, False)
        assert "scipy, which is not installed" in found[name].note


def test_runs_are_forgotten_where_records_take_much_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one goes; a run that is kept is not made again."""
    case = Case("", _line(), Options(), 1, lambda _: None)
    all_of = dict.fromkeys(case.depths, 3)
    assert case.run(all_of) is case.run(all_of)
    assert case.runs == 2
    monkeypatch.setattr("fabric.explore.sizing.running._MOST_EVENTS", 0)
    case.run(dict.fromkeys(case.depths, 4))
    assert not case.has_run(dict.fromkeys(case.depths, UNBOUNDED))
    assert case.has_run(all_of)
    events = sum(len(each.record.events) for each in case._known.values() if each is not None)
    monkeypatch.setattr("fabric.explore.sizing.running._MOST_EVENTS", events)
    case.run(dict.fromkeys(case.depths, 5))
    assert case.has_run(all_of)
    case.run(dict.fromkeys(case.depths, 6))
    assert not case.has_run(all_of)
    assert case.runs == 5


def test_fork_join() -> None:
    """The direct branch holds what the other one keeps back."""
    found = size(_fork_join(), goal="deadlock-free")
    assert found.depths["join.0"] >= 3
    assert {each.option: each.binds for each in found.channels}["join.0"] == "deadlock"
    assert cycles_of(_fork_join(), found.depths | {"join.0": found.depths["join.0"] - 1}) is None


def test_pinned() -> None:
    """What is pinned stays; where it contradicts the goal the nearest one is told."""
    program = _fork_join()
    free = size(program)
    pinned = size(program, depths={"join.0": 7})
    assert pinned.depths["join.0"] == 7
    assert {each.option: each.binds for each in pinned.channels}["join.0"] == "pinned"
    assert pinned.cost >= free.cost
    with pytest.raises(ConfigurationError, match=r"with join\.0=1 pinned: the runs get stuck"):
        size(program, depths={"join.0": 1})
    line = _line()
    slow = cycles_of(line, {"last.0": 1})
    assert slow is not None
    with pytest.raises(
        ConfigurationError, match=rf"with last\.0=1 pinned: the nearest is cycles={slow}$"
    ):
        size(line, depths={"last.0": 1})
    assert size(line, depths={"last.0": 1}, goal=f"cycles={slow}").keeps


def _unlimited(program: Program) -> int:
    return size(program).inputs[0].cycles_unbounded


def _line(count: int = 6) -> Program:
    """A line whose last channel needs two slots: a credit takes a cycle on its way back."""
    with Program("line") as program:
        ticks = Ticks(count, name="ticks")()
        Stage(count, outputs=0, name="last")(*Stage(count, name="first")(ticks))
    return program


@pytest.mark.parametrize("goal", ["cycles=99999999999999999999", "slowdown=1e30"])
def test_a_goal_beyond_64_bits_is_no_limit(goal: str) -> None:
    assert size(_line(4), goal=goal).depths == size(_line(4), goal="deadlock-free").depths


@pytest.mark.parametrize("counts", [(4, 6, 5), (6, 5, 4)])
def test_of_the_longest_input(counts: tuple[int, ...]) -> None:
    """Channels have the most elements of any input, and the nearest goal is that of the longest."""
    programs = {str(each): _line(each) for each in counts}
    found = size(programs, objective="slots")
    assert [each.elements for each in found.channels] == [6, 6]
    assert [each.depth_before for each in found.channels] == [2, 2]
    assert [each.group for each in found.channels] == ["", ""]
    assert (found.cost_before, found.cost) == (2 + 2, sum(found.depths.values()))
    longest = _unlimited(_line(6))
    assert [each.name for each in found.inputs] == list(programs)
    assert max(each.limit_cycles or 0 for each in found.inputs) == longest
    told = f"line: no depths keep cycles=3: the nearest is cycles={longest}$"
    with pytest.raises(ConfigurationError, match=told):
        size(programs, goal="cycles=3")
    slowest = max(cycles_of(each, {"first.0": 1, "last.0": 1}) or 0 for each in programs.values())
    with pytest.raises(
        ConfigurationError,
        match=rf"with first\.0=1 and last\.0=1 pinned: the nearest is cycles={slowest}$",
    ):
        size(programs, depths={"last.0": 1, "first.0": 1})


@pytest.mark.parametrize("proved", [True, False])
def test_why_not_less(proved: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens with one slot less is asked of the records, or of the runs that there were."""
    after: dict[Depths, tuple[int | None, ...]] = {
        (2, 1, 4, 2, 5, 6): (7, None),
        (3, 1, 3, 2, 5, 6): (7, 9),
        (3, 1, 4, 1, 5, 6): (7, 8),
    }
    variables = [SimpleNamespace(is_pinned=each == 4) for each in range(6)]

    def known(depths: Depths) -> Any:
        return after.get(depths, (1, 1) if proved else None)

    def keeps(ran: tuple[int | None, ...]) -> bool:
        return None not in ran and max(each or 0 for each in ran) <= 8

    oracle = SimpleNamespace(cycles=known, keeps=lambda depths: keeps(known(depths)))
    monkeypatch.setattr("fabric.explore.sizing.size.Oracle", lambda _: oracle)
    asked: Any = SimpleNamespace(
        variables=variables,
        can_prove=proved,
        unbounded=(),
        problem=lambda _: None,
        known=known,
        keeps=keeps,
    )
    assert bindings(asked, (3, 1, 4, 2, 5, 6)) == (
        "deadlock", "one slot", "goal", "", "pinned", "",
    )  # fmt: skip


def test_infeasible() -> None:
    """Fewer cycles than any depths allow."""
    program = _fork_join()
    least = _unlimited(program)
    told = f"keep cycles={least - 1}: the nearest is cycles={least}"
    with pytest.raises(ConfigurationError, match=told):
        size(program, goal=f"cycles={least - 1}")
    assert size(program, goal=f"cycles={least}").keeps


def test_stuck_at_any_depth() -> None:
    """A deadlock that no depth helps is told with its reason."""
    with Program("stuck") as program:
        loop = feedback(2)
        first = Script(("r0", "r1", "s0", "s1"), counts=(2, 2))(source("two", 2), loop)
        loop.connect(relay("back", first[0]))
        sink("end", first[1])
    with pytest.raises(Deadlock, match="gets stuck even with unbounded channels: FAB-D"):
        size(program)


def test_shared() -> None:
    """Channels that share a depth have one, and cost no less than apart."""
    program = _fork_join()
    apart, together = (
        size(program, objective="slots"),
        size(program, objective="slots", share=("*",)),
    )
    assert len(set(together.depths.values())) == 1
    assert together.cost >= apart.cost
    assert {each.group for each in together.channels} == {"*"}


def test_steps() -> None:
    """Blocks of memory are what counts."""
    found = size(_fork_join(), step="4")
    assert found.cost == sum(-(-each.depth // 4) * 4 for each in found.channels)


def test_several_inputs() -> None:
    """The depths serve both; what is held out is run, and told where it misses."""
    programs = {f"seed={seed}": _moe(seed) for seed in range(2)}
    others = {"seed=7": _moe(7)}
    found = size(programs, held_out=others)
    assert [each.name for each in found.inputs] == list(programs)
    for (name, program), each in zip(programs.items(), found.inputs, strict=True):
        assert each.cycles == cycles_of(program, found.depths)
        assert (each.cycles or 0) <= (each.limit_cycles or 0), name
    (outside,) = found.held_out
    deep = cycles_of(others["seed=7"], dict.fromkeys(found.depths, UNBOUNDED))
    assert outside.limit_cycles == deep
    assert outside.cycles == cycles_of(others["seed=7"], found.depths)
    assert outside.violated == ((outside.cycles or 0) > (deep or 0))


def _moe(seed: int) -> Program:
    parameters = ["model=tiny", "batch=2", f"seed={seed}"]
    return load_program("programs/moe.py", parameters, Hardware()).program


def test_back_to_back() -> None:
    """Three inputs keep what three inputs without limits take."""
    program = load_program("programs/simplified_moe.py", [], Hardware()).program
    found = size(program, repeats=3)
    assert found.settled is not None
    assert found.settled.repeats == 3
    deep = cycles_of(program, dict.fromkeys(found.depths, UNBOUNDED), repeats=3)
    assert found.inputs[0].cycles == cycles_of(program, found.depths, repeats=3)
    assert (found.inputs[0].cycles or 0) <= (deep or 0)


def test_again() -> None:
    """The same is found twice."""
    program = _fork_join()
    assert size(program).as_json() == size(program).as_json()

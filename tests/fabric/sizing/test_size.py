from __future__ import annotations

from math import inf
from random import Random

import pytest

from fabric import ConfigurationError, Program, Sizing, simulate, size
from fabric.analysis.depths.problem import UNBOUNDED
from fabric.display.terminal import plain_text
from fabric.explore.sizing.methods import METHODS
from fabric.extend import Deadlock
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import load_program
from operators import EagerMerge
from tests.deadlock.parts import Script, sink, source
from tests.fabric.scripted import Stage, Ticks
from tests.fabric.sizing.networks import network, program_of, shape
from tests.fabric.sizing.problems import cycles_of
from tests.profiles import spread

GOALS = ("same-cycles", "slowdown=1.2", "deadlock-free")


def _check(found: Sizing, program: Program) -> None:
    deep = cycles_of(program, dict.fromkeys(found.depths, UNBOUNDED))
    assert deep is not None
    allowed = {"same-cycles": deep, "slowdown=1.2": deep * 1.2}.get(found.goal, inf)
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
@pytest.mark.parametrize("seed", spread(range(8), 3))
def test_size_of_random_networks_is_proved_and_least(seed: int, goal: str) -> None:
    random = Random(seed)
    program = program_of(network(random, shape(random)))
    try:
        found = size(program, goal=goal)
    except Deadlock:
        assert cycles_of(program, {}) is None
        return
    assert (found.truth, found.reasons, found.keeps) == ("proved", (), True)
    _check(found, program)
    assert tuple(each.method for each in found.methods) == METHODS[:-1]
    paper = size(program, goal=goal, method="paper-lp").methods[-1]
    assert paper.method == "paper-lp"
    least = {each.method: each for each in (*found.methods, paper)}
    assert least["exact"].cost == min(each.cost or 0 for each in least.values() if each.keeps)
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


@pytest.mark.parametrize(("name", "parameters"), spread(PROGRAMS, 1))
@pytest.mark.parametrize("goal", ["same-cycles", "deadlock-free"])
def test_size_of_programs_keeps_the_goal_and_one_less_does_not(
    name: str, parameters: tuple[str, ...], goal: str
) -> None:
    program = load_program(f"programs/{name}.py", parameters, Hardware()).program
    found = size(program, goal=goal)
    assert found.keeps
    timeless = goal == "deadlock-free" and not any("whichever" in each for each in found.reasons)
    assert (found.truth == "proved") is (timeless and not found.reasons)
    _check(found, program)
    report = simulate(program, depths=found.depths)
    assert report.cycles == found.inputs[0].cycles


def test_size_of_a_merge_is_validated_by_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    program = _merge()
    found = size(program)
    assert found.truth == "validated"
    assert any("whichever input comes first" in reason for reason in found.reasons)
    _check(found, program)
    monkeypatch.setattr("fabric.explore.sizing.methods._MOST_EVENTS", 0)
    monkeypatch.setattr("fabric.explore.sizing.methods._LEAST_RUNS", 4)
    # Besides the four, a run has unbounded channels, and one the wired depths.
    assert 4 + 2 == size(program).runs < found.runs


def _fork_join(block: int = 4) -> Program:
    with Program("fork join") as program:
        first, second = Stage(8, outputs=2, name="fork")(Ticks(8, name="ticks")())
        late = Script(("r0",) * block + ("s0",) * block, rounds=8 // block, counts=(8,))
        Stage(8, outputs=0, name="join")(first, *late(second))
    return program


def _merge() -> Program:
    with Program("merge") as program:
        data, selectors = EagerMerge()([source("one", 4), source("two", 4)])
        sink("data", data)
        sink("order", selectors)
    return program


def test_pinned_depths_stay_or_name_the_nearest_goal() -> None:
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
    nearest = rf"with last\.0=1 pinned: the nearest is cycles={slow}$"
    with pytest.raises(ConfigurationError, match=nearest):
        size(line, depths={"last.0": 1})
    assert size(line, depths={"last.0": 1}, goal=f"cycles={slow}").keeps


def _line(count: int = 6) -> Program:
    with Program("line") as program:
        ticks = Ticks(count, name="ticks")()
        Stage(count, outputs=0, name="last")(*Stage(count, name="first")(ticks))
    return program


@pytest.mark.parametrize("counts", [(4, 6, 5), (6, 5, 4)])
def test_nearest_goal_of_several_inputs_is_the_longest(counts: tuple[int, ...]) -> None:
    programs = {str(each): _line(each) for each in counts}
    found = size(programs, objective="slots")
    assert [each.elements for each in found.channels] == [6, 6]
    assert [each.depth_before for each in found.channels] == [2, 2]
    assert [each.group for each in found.channels] == ["", ""]
    assert (found.cost_before, found.cost) == (2 + 2, sum(found.depths.values()))
    longest = size(_line(6)).inputs[0].cycles_unbounded
    assert [each.name for each in found.inputs] == list(programs)
    assert max(each.limit_cycles or 0 for each in found.inputs) == longest
    message = f"line: no depths keep cycles=3: the nearest is cycles={longest}$"
    with pytest.raises(ConfigurationError, match=message):
        size(programs, goal="cycles=3")
    slowest = max(cycles_of(each, {"first.0": 1, "last.0": 1}) or 0 for each in programs.values())
    message = rf"with first\.0=1 and last\.0=1 pinned: the nearest is cycles={slowest}$"
    with pytest.raises(ConfigurationError, match=message):
        size(programs, depths={"last.0": 1, "first.0": 1})


def test_row_of_a_channel_names_the_input_that_decides() -> None:
    programs = {f"block={block}": _fork_join(block) for block in (2, 4, 1)}
    found = size(programs)
    limits = {each.name: each.limit_cycles or 0 for each in found.inputs}
    for channel in found.channels:
        depths = found.depths | {channel.option: channel.depth - 1}
        if channel.binds == "one slot":
            assert channel.input == ""
            continue
        less = {name: cycles_of(each, depths) for name, each in programs.items()}
        over = {n: inf if taken is None else taken / limits[n] for n, taken in less.items()}
        assert channel.input == max(over, key=lambda name: over[name])
    assert "block=4" in {each.input for each in found.channels}
    cycles, deep = found.worst.cycles, found.worst.cycles_unbounded
    worst = f"Cycles with {found.worst.name}, the input that decides: {cycles:,} with these depths"
    assert f"{worst}, goal at most {deep:,}; " in plain_text(found.sheet(), 200)


def test_shared_depths_are_one_and_cost_no_less() -> None:
    program = _fork_join()
    apart, together = (
        size(program, objective="slots"),
        size(program, objective="slots", share=("*",)),
    )
    assert len(set(together.depths.values())) == 1
    assert together.cost >= apart.cost
    assert {each.group for each in together.channels} == {"*"}


def test_steps_count_whole_blocks() -> None:
    found = size(_fork_join(), step="4")
    assert found.cost == sum(-(-each.depth // 4) * 4 for each in found.channels)


@pytest.mark.deep
def test_depths_serve_several_inputs_and_report_held_out_ones() -> None:
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


def test_depths_for_repeats_keep_the_cycles_of_repeats() -> None:
    program = load_program("programs/simplified_moe.py", [], Hardware()).program
    found = size(program, repeats=3)
    assert found.settled is not None
    assert found.settled.repeats == 3
    deep = cycles_of(program, dict.fromkeys(found.depths, UNBOUNDED), repeats=3)
    assert found.inputs[0].cycles == cycles_of(program, found.depths, repeats=3)
    assert (found.inputs[0].cycles or 0) <= (deep or 0)

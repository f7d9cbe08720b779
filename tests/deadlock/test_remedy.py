from __future__ import annotations

from hypothesis import given

from fabric import Program, simulate
from fabric.analysis.deadlock import remedy
from fabric.analysis.deadlock.document import Remedy
from fabric.analysis.deadlock.trial import EFFORT_ELEMENTS
from fabric.graph.wiring.elaborate import elaborate
from tests.deadlock.cases import CASES, fork_join
from tests.deadlock.parts import sink
from tests.deadlock.test_random import Network, networks
from tests.profiles import examples


def found(
    program: Program, depths: dict[str, int] | None = None, *, effort: int = EFFORT_ELEMENTS
) -> Remedy:
    return remedy.find_remedy(elaborate(program), depths or {}, {}, frozenset(), effort=effort)


def deep(lanes: int, size: int) -> Program:
    with Program("deep") as program:
        for lane in range(lanes):
            sink(f"y_{lane}", fork_join(f"l{lane}", size=size, relays=0, count=2 * size))
    return program


@examples(quick=12, deep=100)
@given(networks(merging=False))
def test_remedies_complete_and_one_less_does_not(network: Network) -> None:
    remedy_ = found(network.program, network.depths)
    depths = network.depths | {depth.option: depth.after for depth in remedy_.depths}
    if remedy_.initial or not remedy_.depths:
        return
    completed = simulate(network.program, depths=depths)
    assert ("completed", remedy_.cycles) == (completed.status, completed.cycles)
    if remedy_.faster:
        faster = simulate(network.program, depths=network.depths | remedy_.faster)
        assert remedy_.faster_cycles == faster.cycles
        assert 100 * (faster.cycles or 0) <= 99 * (remedy_.cycles or 0)
    for depth in remedy_.depths:
        less = depths | {depth.option: depth.after - 1}
        stuck = simulate(network.program, depths=less, on_deadlock="describe").deadlock
        assert stuck is not None
        assert depth.rejected_cycle == stuck["cycle"]


def test_remedy_takes_two_runs_and_one_for_each_depth() -> None:
    whole = found(deep(lanes=9, size=9), effort=15_000)

    assert (True, "", 11) == (whole.irreducible, whole.why_not, whole.trials)
    assert [9] * 9 == [depth.after for depth in whole.depths]


def test_effort_used_up_keeps_depths_of_the_record() -> None:
    short = found(deep(lanes=9, size=9), effort=3_000)

    assert {True, False} == {depth.rejected_cycle is not None for depth in short.depths}
    assert (True, [9] * 9) == (short.irreducible, [depth.after for depth in short.depths])


def test_merge_without_effort_left_proposes_every_channel() -> None:
    short = found(CASES["merge_in_a_loop"].build(), effort=200)

    assert (
        "none can be lowered by one as long as inputs come in the same order, but "
        "eager_merge_1 takes whichever comes first"
    ) == short.why_not
    assert not short.irreducible
    assert short.every_channel is not None

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fabric import Program, Stream
from fabric.analysis.depths.problem import Problem
from fabric.explore.sizing.paper_lp import paper_lp
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import Retimer
from tests.fabric.scripted import Stage
from tests.fabric.sizing.problems import deep_record, problem_of
from tests.profiles import examples

TOKENS = 48


def of(program: Program) -> Record:
    record = deep_record(program)
    assert record is not None
    return record


def cycles(problem: Problem, depths: tuple[int, ...]) -> int | None:
    return Retimer(problem.limits[0].record).time(depths).cycles


@st.composite
def pipelines(draw: st.DrawFn) -> Program:
    kernels = draw(st.integers(2, 6))
    pairs = [(source, target) for target in range(1, kernels) for source in range(target)]
    chosen = set(draw(st.lists(st.sampled_from(pairs), unique=True)))
    # Every kernel except the first has at least one input.
    chosen |= {(target - 1, target) for target in range(1, kernels)}
    streams: dict[tuple[int, int], Stream] = {}
    with Program("pipeline") as program:
        for kernel in range(kernels):
            outputs = sorted(pair for pair in chosen if pair[0] == kernel)
            made = Stage(
                TOKENS,
                outputs=len(outputs),
                work_cycles=(draw(st.integers(1, 8)),),
                works_first=draw(st.booleans()),
                name=f"k{kernel}",
            )(*(streams[pair] for pair in sorted(chosen) if pair[1] == kernel))
            streams |= dict(zip(outputs, made, strict=True))
    return program


@examples(quick=12, deep=100)
@given(pipelines(), st.booleans())
def test_paper_lp_depths_of_pipelines_delay_nothing(program: Program, conservative: bool) -> None:
    # Depths with normal intervals delay nothing; depths with conservative intervals only complete.
    record = of(program)
    problem = problem_of(record)
    found = cycles(problem, paper_lp(problem, conservative=conservative))

    assert found is not None
    if not conservative:
        assert cycles(problem, problem.most) == found


def test_paper_lp_depths_of_three_kernels_are_the_formulas() -> None:
    # Normal: 20 tokens of the source become visible in cycles 1 to 20. The stage has taken 9 of
    # them by then, so 11 are left, and 2 are in the credit loop. The stage sends one token every 2
    # cycles, from 1 to 39 cycles after it started. The reader has taken 7 by then, so 13 are left,
    # and 1 is in the loop. Conservative: no token waits, and 1 is in the loop.
    with Program("three") as program:
        (first,) = Stage(20, name="source")()
        (second,) = Stage(20, work_cycles=(2,), name="stage")(first)
        Stage(20, outputs=0, work_cycles=(5,), name="reader")(second)
    problem = problem_of(of(program))

    assert (11 + 2, 13 + 1) == paper_lp(problem, conservative=False)
    assert (1, 1) == paper_lp(problem, conservative=True)

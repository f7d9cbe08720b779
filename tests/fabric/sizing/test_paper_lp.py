"""What StreamTensor would choose: what is measured, and the depths of runs of its kernels."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabric import Program, Stream
from fabric.explore.sizing.paper_lp import Measured, measured, paper_lp
from fabric.explore.sizing.problem import Problem
from fabric.explore.sizing.search import high_water
from fabric.timing.retiming import events as e
from fabric.timing.retiming.record import Record, RecordedChannel
from fabric.timing.retiming.retimer import Retimer
from tests.deadlock.parts import Script, feedback
from tests.deadlock.test_random import Network, networks
from tests.fabric.scripted import Stage
from tests.fabric.sizing.problems import deep_record, problem_of
from tests.profiles import examples

TOKENS = 48


def of(program: Program) -> Record:
    """Return the record of a run that completes."""
    record = deep_record(program)
    assert record is not None
    return record


def measures(record: Record) -> list[Measured]:
    """Return what is measured in a run without bounds."""
    retimer = Retimer(record)
    retimer.time(problem_of(record).most)
    return measured(retimer)


def cycles(problem: Problem, depths: tuple[int, ...]) -> int | None:
    """Return how long its only record takes, each channel having a variable of its own."""
    return Retimer(problem.limits[0].record).time(depths).cycles


@st.composite
def pipelines(draw: st.DrawFn) -> Program:
    """Return kernels of one token a firing, each with its own interval and delay."""
    kernels = draw(st.integers(2, 6))
    pairs = [(source, target) for target in range(1, kernels) for source in range(target)]
    chosen = set(draw(st.lists(st.sampled_from(pairs), unique=True)))
    # Every kernel but the first is fed by one at least.
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


class TestMeasures:
    def test_stages(self) -> None:
        """A source of one in 2 cycles; a stage that works 3 first; a reader that works 5.

        The stage has its first element in cycle 1, and the reader its own in 1 + 3 + 1.
        """
        with Program("stages") as program:
            (first,) = Stage(9, work_cycles=(2,), name="source")()
            (second,) = Stage(9, work_cycles=(3,), works_first=True, name="stage")(first)
            Stage(9, outputs=0, work_cycles=(5,), name="reader")(second)

        two, three, five = Fraction(2), Fraction(3), Fraction(5)
        assert [
            Measured(0, 0, 1, 9, 1, two, three, 2, True),
            Measured(1, 1, 2, 9, 4, three, five, 2, True),
        ] == measures(of(program))

    def test_rates(self) -> None:
        """A kernel that takes three for each that it gives has an interval on each side."""
        with Program("rates") as program:
            (first,) = Stage(9, work_cycles=(1,), name="source")()
            steps = ("r0", "c2", "r0", "c2", "r0", "c2", "s0")
            (second,) = Script(steps, rounds=3, counts=(3,), name="gather")(first)
            Script(("r0", "c1"), rounds=3, counts=(), name="reader")(second)

        fine, coarse = measures(of(program))

        assert (9, Fraction(1), Fraction(2)) == fine[3:4] + fine[5:7]
        # Of the gatherer, from its first element in cycle 1 on: 6 cycles and the hop.
        assert (3, 7, Fraction(6)) == coarse[3:6]

    def test_starts_with_the_last_input(self) -> None:
        """A kernel has started when all that it needs for its first token is there."""
        with Program("join") as program:
            (early,) = Stage(4, name="early")()
            (late,) = Script(("c30", "s0"), rounds=4, counts=(4,), name="late")()
            (joined,) = Stage(4, work_cycles=(6,), works_first=True, name="join")(early, late)
            Stage(4, outputs=0, name="reader")(joined)

        assert [1, 31, 7] == [each.delay_cycles for each in measures(of(program))]

    def test_own_time(self) -> None:
        """A unit's own time is all but that in which it waits for a channel.

        The source sends in cycles 0, 40 and 80. The stage looks at an element 10 cycles before it
        takes it, waits 4 for a memory, and is busy until 9 after the next one's arrival, which it
        is 7 cycles before that; it sends from slots that it has reserved 5 cycles before.
        """
        ends = [(0, 1), (1, 2)]
        channels = tuple(
            RecordedChannel(f"u{consumer}.0", "", producer, consumer, 9, 1, 1, 3, 1)
            for producer, consumer in ends
        )
        of_source = [(e.SEND, 0), (e.SEND, 40), (e.SEND, 40), (e.FINISH, 0)]
        of_stage = []
        for number in range(3):
            of_stage += [(e.SEE, 0), (e.WORK, 1), (e.ARRIVAL, number), (e.WORK, 1), (e.UNTIL, 9)]
            of_stage += [(e.TAKE, 1), (e.WAIT, 4), (1 << e.SHIFT | e.RESERVE, 0)]
            of_stage += [(1 << e.SHIFT | e.PUT, 5)]
        of_stage.append((e.FINISH, 0))
        taking = 1 << e.SHIFT | e.TAKE
        of_reader = [(taking, 0), (taking, 0), (taking, 0), (e.FINISH, 0)]
        first = np.cumsum([0, len(of_source), len(of_stage), len(of_reader)])
        events = np.array([*of_source, *of_stage, *of_reader])
        record = Record("own", ("u0", "u1", "u2"), channels, first, events, 100)

        given, passed_on = measures(record)

        # From one taking of the stage to the next: 4 and 5 after it, 9 and 1 before.
        assert (Fraction(40), Fraction(19)) == given[5:7]
        # From its first look on: 9 + 1 + 4 + 5 and the hop; a slot is taken for 5 and 1 before.
        assert (20, Fraction(19), Fraction(1), 5 + 1 + 1) == passed_on[4:8]

    def test_nothing_sent(self) -> None:
        """A channel without elements is not measured, and one slot is enough."""
        with Program("silent") as program:
            silent, first = Script(("s1",), rounds=3, counts=(0, 3), name="source")()
            Script(("r0",), rounds=3, counts=(), name="reader")(first)
            Script(("r0",), counts=(), name="other")(silent)
        record = of(program)

        assert [each.tokens for each in measures(record)] == [3]
        silent_number = [channel.elements for channel in record.channels].index(0)
        assert 1 == paper_lp(problem_of(record), conservative=False)[silent_number]


class TestDepths:
    @examples(quick=25, deep=100)
    @given(pipelines(), st.booleans())
    def test_no_slower(self, program: Program, conservative: bool) -> None:
        """In graphs as the paper has them, with the credit loop, runs are as without bounds.

        With normal intervals; with conservative ones they complete.
        """
        record = of(program)
        problem = problem_of(record)
        found = cycles(problem, paper_lp(problem, conservative=conservative))

        assert found is not None
        if not conservative:
            assert cycles(problem, problem.most) == found

    def test_by_hand(self) -> None:
        """A source of one a cycle, a stage of 2 cycles, one of 5; 20 tokens.

        Normal: tokens of the source are visible from cycle 1 to 20, the stage takes 9 until then,
        11 are left and 2 are in the credit loop. The stage gives one in 2 cycles from 1 to 39
        after it started, the reader takes 7: 13 are left and 1 is in the loop. Conservative: none
        waits, one is in the loop.
        """
        with Program("three") as program:
            (first,) = Stage(20, name="source")()
            (second,) = Stage(20, work_cycles=(2,), name="stage")(first)
            Stage(20, outputs=0, work_cycles=(5,), name="reader")(second)
        problem = problem_of(of(program))

        assert (11 + 2, 13 + 1) == paper_lp(problem, conservative=False)
        assert (1, 1) == paper_lp(problem, conservative=True)

    def test_skip(self) -> None:
        """A stage works 12 cycles before its first token and gives one a cycle from then on.

        What goes past it is visible 13 cycles before its reader starts: 13 wait, 2 are in the
        loop. The stage takes one in 50/39 cycles: of 40, 30 are gone when the source ends.
        """
        with Program("skip") as program:
            first, skipped = Stage(40, outputs=2, name="source")()
            once = ("r0", "c12", "s0")
            (slow,) = Script(("r0", "s0", "c1"), once, rounds=39, counts=(40,), name="slow")(first)
            Stage(40, outputs=0, name="join")(slow, skipped)
        problem = problem_of(of(program))

        depths = paper_lp(problem, conservative=False)

        assert {"slow.0": 10 + 2, "join.0": 2, "join.1": 13 + 2} == problem.options(depths)
        assert cycles(problem, problem.most) == cycles(problem, depths)

    def test_records(self) -> None:
        """Of several records each variable has the most that one of them gives it."""
        with Program("pair") as program:
            (first,) = Stage(20, name="source")()
            (second,) = Stage(20, work_cycles=(2,), name="stage")(first)
            Stage(20, outputs=0, work_cycles=(5,), name="reader")(second)
        record = of(program)
        other = record.with_work([record.units.index("reader")], 0.2)
        one, two = (paper_lp(problem_of(each), conservative=False) for each in (record, other))
        both = paper_lp(problem_of(record, other), conservative=False)

        assert one != two
        assert both == tuple(map(max, zip(one, two, strict=True)))

    @pytest.mark.parametrize("conservative", [False, True])
    def test_no_tokens(self, conservative: bool) -> None:
        """Where nothing is sent at all, one slot each is enough."""
        with Program("nothing") as program:
            (silent,) = Script((), rounds=1, counts=(0,), name="source")()
            Script(("r0",), counts=(), name="reader")(silent)

        assert (1,) == paper_lp(problem_of(of(program)), conservative=conservative)

    def test_as_many_as_tokens(self) -> None:
        """No channel has more slots than tokens, though two are in the loop."""
        with Program("one") as program:
            (first,) = Stage(1, name="source")()
            Stage(1, outputs=0, name="reader")(first)
        problem = problem_of(of(program))
        (variable,) = problem.variables
        deeper = replace(problem, variables=(replace(variable, most=9),))

        assert (1,) == paper_lp(deeper, conservative=False)

    @pytest.mark.parametrize(("least", "most", "expected"), [(1, 4, 4), (17, 20, 17)])
    def test_limits(self, least: int, most: int, expected: int) -> None:
        """A variable is not taken out of its limits."""
        with Program("two") as program:
            (first,) = Stage(20, name="source")()
            Stage(20, outputs=0, work_cycles=(2,), name="reader")(first)
        problem = problem_of(of(program))
        (variable,) = problem.variables
        bound = replace(variable, least=least, most=most)

        assert (expected,) == paper_lp(replace(problem, variables=(bound,)), conservative=False)


class TestCircles:
    def loop(self) -> Record:
        """Return a record of a loop in which 3 elements go around; they wait before its head."""
        steps = ("s0", "s0", "s0", *("r0", "c9", "s1", "s0") * 9, *("r0", "s1") * 3)
        with Program("loop") as program:
            back = feedback(12)
            again, out = Script(steps, rounds=1, counts=(12, 12), name="head")(back)
            (ahead,) = Script(("r0", "s0"), rounds=12, counts=(12,), name="body")(again)
            back.connect(ahead)
            Script(("r0",), rounds=12, counts=(), name="reader")(out)
        return of(program)

    def test_closing(self) -> None:
        """What leads back has the slots that a run without bounds uses, the others the paper's."""
        problem = problem_of(self.loop())

        depths = problem.options(paper_lp(problem, conservative=True))

        # 9 cycles are the slowest interval: two cycles of a loop are one slot.
        assert 3 == problem.options(high_water(problem))["head.0"]
        assert {"body.0": 1, "head.0": 3, "reader.0": 1} == depths

    def test_late_but_no_circle(self) -> None:
        """What is not needed for the first token, and closes no circle, is sized as the others.

        The reader sends before it takes anything. 20 elements wait for it; the formula has the
        ones that come within its delay only.
        """
        with Program("late") as program:
            (first,) = Stage(20, name="source")()
            once = ("s0", "c30")
            made = Script(("r0", "c1"), once, rounds=20, counts=(1,), name="late")(first)
            Script(("r0",), rounds=1, counts=(), name="reader")(*made)
        problem = problem_of(of(program))

        assert 20 == problem.options(high_water(problem))["late.0"]
        assert 2 == problem.options(paper_lp(problem, conservative=False))["late.0"]

    @examples(quick=50, deep=200)
    @given(networks(merging=False), st.booleans())
    def test_any(self, network: Network, conservative: bool) -> None:
        """Whatever the network is like, each depth is one that it may have."""
        record = deep_record(network.program)
        assume(record is not None)
        assert record is not None
        problem = problem_of(record)

        depths = paper_lp(problem, conservative=conservative)

        limits = zip(problem.least, depths, problem.most, strict=True)
        assert all(least <= depth <= most for least, depth, most in limits)

"""Compares random networks, and remedies of their deadlocks, with all schedules of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from fabric import Broadcast, Feedback, Program, Report, Stream, simulate
from fabric.graph.values.dims import symbol
from fabric.graph.wiring.elaborate import Plan, elaborate
from operators import EagerMerge, Initial
from tests.deadlock.exhaustive import Outcome, Process, outcomes
from tests.deadlock.parts import Script, feedback
from tests.profiles import examples
from tests.schedules import SCHEDULES, schedule

STATES = 1_000


@dataclass(frozen=True)
class Network:
    """A program and the depths of its channels, by option."""

    program: Program
    depths: dict[str, int]


@st.composite
def networks(draw: st.DrawFn, *, merging: bool) -> Network:
    """Return a network of two to six scripts, some with feedback, some with a merge."""
    depth = draw(st.integers(1, 2))
    with Program("random", channel_depth=depth) as program:
        loops = [feedback(symbol("N")) for _ in range(draw(st.integers(0, 1)))]
        open_streams: list[Stream] = [*loops, *_sources(draw)]
        for _ in range(draw(st.integers(1, 3))):
            if merging and draw(st.booleans()):
                _merge(draw, open_streams)
            else:
                _script(draw, open_streams)
        for loop in loops:
            made = [stream for stream in open_streams if not isinstance(stream, Feedback)]
            if loop in open_streams:
                open_streams.remove(loop)
                Script(("r0",), rounds=draw(st.integers(1, 3)), counts=())(loop)
            made += [] if made else _sources(draw)
            loop.connect(made[draw(st.integers(0, len(made) - 1))])
        ends = [each for each in open_streams if each.node is not None]
        while ends:
            together, ends = ends[:3], ends[3:]
            steps = draw(st.permutations([f"r{port}" for port in range(len(together))]))
            Script(tuple(steps), counts=())(*together)
    keys = [edge.key for edge in elaborate(program).edges]
    chosen = draw(st.dictionaries(st.sampled_from(keys), st.integers(1, 3), max_size=3))
    return Network(program, chosen)


def _sources(draw: st.DrawFn) -> list[Stream]:
    steps = draw(st.sampled_from([("s0",), ("s0", "s1"), ("s0", "s0", "s1"), ("s1", "s0")]))
    counts = (1,) * len(set(steps))
    return list(Script(steps, rounds=draw(st.integers(1, 3)), counts=counts)())


def _script(draw: st.DrawFn, open_streams: list[Stream]) -> None:
    """Wire a script to one or two open streams, with each of its ports used at least once."""
    inputs = _taken(draw, open_streams, draw(st.integers(1, min(2, len(open_streams)))))
    outputs = draw(st.integers(1, 2))
    ports = [f"r{port}" for port in range(len(inputs))] + [f"s{port}" for port in range(outputs)]
    more: list[str] = draw(st.lists(st.sampled_from(ports), max_size=2))
    steps: list[str] = draw(st.permutations(ports + more))
    once: list[str] = draw(st.lists(st.sampled_from(ports[len(inputs) :]), max_size=2))
    rounds = draw(st.integers(1, 3))
    made = Script(tuple(steps), once=tuple(once), rounds=rounds, counts=(1,) * outputs)(*inputs)
    open_streams += made
    if draw(st.booleans()):
        open_streams.append(made[0])


def _merge(draw: st.DrawFn, open_streams: list[Stream]) -> None:
    made = [stream for stream in open_streams if stream.node is not None]
    if len(made) < 2:
        more = _sources(draw)
        open_streams += more
        made += more
    inputs = made[:2]
    for stream in inputs:
        if stream in open_streams:
            open_streams.remove(stream)
    data, selectors = EagerMerge()(inputs)
    open_streams.append(data)
    if len(open_streams) > 0 and draw(st.booleans()):
        (other,) = _taken(draw, open_streams, 1)
        rounds = draw(st.integers(1, 3))
        open_streams += Script(("steer",), rounds=rounds, counts=(1, 1))(other, selectors)


def _taken(draw: st.DrawFn, open_streams: list[Stream], count: int) -> list[Stream]:
    return [open_streams.pop(draw(st.integers(0, len(open_streams) - 1))) for _ in range(count)]


# ------------------------------------------------------------------------- the model


def processes(plan: Plan) -> list[Process]:
    return [
        Process(
            *_life(node.operator, plan, node.index),
            inputs=tuple(
                number
                for _, number in sorted(
                    (edge.input, number)
                    for number, edge in enumerate(plan.edges)
                    if edge.consumer is node
                )
            ),
            outputs=tuple(
                number
                for _, number in sorted(
                    (edge.output, number)
                    for number, edge in enumerate(plan.edges)
                    if edge.producer is node
                )
            ),
        )
        for node in plan.nodes
    ]


def _life(operator: Any, plan: Plan, index: int) -> tuple[tuple[str, ...], int | None]:
    """Return the steps of an operator, and the number of the step to which it returns."""
    if isinstance(operator, Broadcast):
        return ("keep", "all"), 0
    if isinstance(operator, Initial):
        front = ("s0",) * operator.count
        if not operator.keep_length:
            return (*front, "r0", "s0"), operator.count
        (length,) = plan.nodes[index].inputs[0].shape
        assert isinstance(length, int)
        passed = ("r0", "s0") * (length - operator.count)
        return (*front, *passed, *(("r0",) * operator.count)), None
    if isinstance(operator, EagerMerge):
        steered = any(edge.producer.index == index and edge.output == 1 for edge in plan.edges)
        return ("first", *(["S1"] if steered else []), "take", "s0"), 0
    assert isinstance(operator, Script)
    steps = tuple(
        each
        for step in operator.steps
        for each in (("r1", "r0", "to") if step == "steer" else (step,))
    )
    if operator.rounds is None:
        return operator.once + steps, len(operator.once)
    return operator.once + steps * operator.rounds, None


def model(plan: Plan, depths: dict[str, int] | None) -> set[Outcome] | None:
    """Return the outcomes of a program with ``depths``, or with unlimited channels."""
    rows = [
        None if depths is None else depths.get(edge.key, plan.program.channel_depth)
        for edge in plan.edges
    ]
    return outcomes(processes(plan), rows, limit=STATES)


# --------------------------------------------------------------------------- checks


def check(network: Network) -> None:
    """Compare a run and its remedy with all schedules of the model."""
    plan = elaborate(network.program)
    possible = model(plan, network.depths)
    assume(possible is not None)
    assert possible is not None
    report = simulate(network.program, depths=network.depths)
    event(report.status)
    completed = report.status == "completed"
    merges = any(isinstance(node.operator, EagerMerge) for node in plan.nodes)

    if not merges:
        assert 1 == len(possible)
    assert completed in {outcome.completed for outcome in possible}
    if not merges:
        (outcome,) = possible
        _check_counts(report, outcome)
    if not completed:
        _check_remedy(network, plan, report, merges=merges)


def _check_counts(report: Report, outcome: Outcome) -> None:
    """Compare the elements of the channels of each loop, or of a completed run, with the model."""
    if report.deadlock is None:
        assert list(outcome.sent) == [each.taken for each in report.channels_counters]
        return
    sent = dict(zip((each.name for each in report.channels_counters), outcome.sent, strict=True))
    held = dict(zip((each.name for each in report.channels_counters), outcome.held, strict=True))
    for loop in report.deadlock["loops"]:
        for channel in loop["channels"]:
            found = (channel["sent"], channel["held"])
            assert (sent[channel["name"]], held[channel["name"]]) == found


def _check_remedy(network: Network, plan: Plan, report: Report, *, merges: bool) -> None:
    assert report.deadlock is not None
    remedy = report.deadlock["remedy"]
    depths = {each["option"]: each["after"] for each in remedy["depths"]}
    if not depths or remedy["initial"]:
        unbounded = model(plan, None)
        event("no depth helps")
        assert unbounded is None or False in {outcome.completed for outcome in unbounded}
    if remedy["initial"]:
        event("initial elements")
        # There is at most one feedback; the stream that it is connected to identifies it.
        (front,) = remedy["initial"]
        (loop,) = {
            stream for node in plan.nodes for stream in node.inputs if isinstance(stream, Feedback)
        }
        assert loop.connected.name == front["stream"]
        begun_less = elaborate(network.program, {loop: front["count"] - 1})
        plan = elaborate(network.program, {loop: front["count"]})
        fewer = model(begun_less, network.depths | depths)
        assert fewer is None or False in {outcome.completed for outcome in fewer}
    elif not depths:
        return
    event("a remedy")
    enough = model(plan, network.depths | depths)
    assert enough is None or True in {outcome.completed for outcome in enough}
    for option, depth in depths.items():
        less = model(plan, network.depths | depths | {option: depth - 1})
        assert less is None or False in {outcome.completed for outcome in less}
        assert less is None or merges or {False} == {outcome.completed for outcome in less}


QUICK = examples(quick=20, deep=500)
LONG = settings(QUICK, max_examples=200_000)


@QUICK
@given(networks(merging=False))
def test_networks_end_as_the_model_does(network: Network) -> None:
    check(network)


@examples(quick=15, deep=150)
@given(networks(merging=True))
def test_networks_with_merges_end_as_some_schedule_does(network: Network) -> None:
    check(network)


@examples(quick=12, deep=100)
@given(networks(merging=True))
def test_report_is_equal_under_every_schedule(network: Network) -> None:
    reports = []
    for order in SCHEDULES:
        with schedule(order):
            report = simulate(network.program, depths=network.depths)
        reports.append(report.as_json() | {"wall_seconds": None})

    assert [reports[0]] * len(SCHEDULES) == reports


@pytest.mark.exhaustive
@LONG
@given(networks(merging=False))
def test_many_networks_end_as_the_model_does(network: Network) -> None:
    check(network)


@pytest.mark.exhaustive
@LONG
@given(networks(merging=True))
def test_many_networks_with_merges_end_as_some_schedule_does(network: Network) -> None:
    check(network)

"""The state of a run: data that nobody can change, whatever the machine does afterwards."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from fabric import Program, ProgramError, StreamType
from fabric.graph.hardware.description import Pages
from fabric.graph.values.expression import Symbol
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.telling.causes import Cause, Operation
from fabric.messages.telling.errors import Refusal
from fabric.messages.telling.place import Place
from fabric.runs.counters import (
    Compared,
    UnitCounters,
    channel_counters,
    totals,
    unit_counters,
    warnings,
)
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.engine.off_chip import (
    BusCycles,
    ChannelTraffic,
    ClientTraffic,
    MemoryCounters,
)
from fabric.timing.machine.machine import clients_of, cycles_of, shutdown_cycles_of, state_of
from fabric.timing.state.resource_use import (
    LinkUse,
    as_document,
    bus_shares,
    counters_in,
    row_outcomes,
    uneven_channels,
)
from fabric.timing.state.run_state import (
    ChannelState,
    OnChipState,
    OpenWait,
    RunState,
    UnitState,
    WaitState,
    expected_of,
    open_waits,
)
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.deadlock.cases import CASES
from tests.fabric.scripted import Stage
from tests.operators.driving import FLOAT, Collect, Emit


def execution(name: str) -> Execution:
    """Return a run of one of ``CASES`` that has not begun."""
    return Execution(CASES[name].build(), Settings(mode="timing"))


def test_a_state_stays() -> None:
    """The state before a run is not that after it, and the run leaves it as it was."""
    run = execution("pack_rows")
    before, again = state_of(run.machine), state_of(run.machine)
    run.execute()
    after = state_of(run.machine)

    assert before == again
    assert hash(before) == hash(again)
    assert before != after
    assert (0, 0, 0) == (before.cycles, before.elements, before.waiting)
    assert cycles_of(run.machine) == after.cycles
    assert (run.machine.elements, run.machine.waiting) == (after.elements, after.waiting)


def test_nobody_can_change_it() -> None:
    """Neither the state nor anything in it."""
    run = execution("pack_rows")
    run.execute()
    state = state_of(run.machine)
    waits = [unit.wait for unit in state.units if unit.wait is not None]

    for part in (state, state.units[0], state.channels[0], state.on_chip, waits[0]):
        for name in getattr(part, "_fields", ("cycles", "units", "channels")):
            with pytest.raises(AttributeError):
                setattr(part, name, None)


def test_who_holds_room() -> None:
    """Units that hold some, in node order, whoever asked first."""
    machine = execution("pack_rows").machine
    for number, held_bytes in (2, 5), (0, 3), (1, 0):
        machine.on_chip.held_by[machine.units[number]] = held_bytes
    assert state_of(machine).on_chip.held == ((0, 3), (2, 5))


def test_what_failed_first() -> None:
    """The error at the earliest cycle; in one cycle those of nobody, then the lowest node's.

    A unit ran ahead of it that was stopped in a later one of the stretches in which units rest.
    """
    machine = execution("pack_rows").machine
    failures, nodes, ports = machine.failures, machine.plan.nodes, machine.ports
    assert (failures.first, failures.first_cycle, machine.ran_ahead) == (None, None, False)
    for unit in machine.units[:3]:
        unit.charge(9)
    placed, bare, outside, before = (
        ProgramError(name, file=file, line=2)
        for name, file in (("a", "a.py"), ("b", None), ("c", "c.py"), ("d", "d.py"))
    )
    failures.keep(placed, nodes[2], ports[2])
    failures.keep(bare, nodes[1], ports[1])
    assert (failures.first, failures.first_cycle) == (bare, 9)
    assert (placed.file, placed.line, bare.file, bare.line) == ("a.py", 2, *nodes[1].place)
    failures.keep_at(9, outside)
    assert failures.first is outside
    failures.keep_at(8, before)
    assert (failures.first, failures.first_cycle) == (before, 8)
    assert failures.nodes == {-1, 1, 2}
    assert not machine.ran_ahead
    machine.clock.watch(lambda: None, 4)
    for cycles, ahead in (2, False), (1, True):
        machine.units[0].charge(cycles)
        assert machine.ran_ahead is ahead


def test_end_of_the_memory() -> None:
    """It stops 3 cycles after the last of its clients, which end one after the other."""
    with Program("copy") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(Tensor((4, 4)), (2, 2))())
    run = Execution(program, Settings(mode="timing"))
    machine = run.machine
    assert (shutdown_cycles_of(machine), clients_of(machine.plan)) == (0, (0, 1))
    run.execute()
    first, last = (unit.now for unit in machine.units)
    assert first < last
    assert (shutdown_cycles_of(machine), cycles_of(machine)) == (3, last + 3)
    assert shutdown_cycles_of(execution("pack_rows").machine) == 0


def test_room_in_words() -> None:
    """Room is in bytes, or in whole pages of those that memory units hold."""
    plain = OnChipState(1000, (), None)
    assert (plain.room, plain.amount(1), plain.number(450)) == ("1,000 bytes", "1 byte", 450)
    paged = OnChipState(1000, (), None, Pages(150, 400))
    # Two units of two pages each, and one in the 200 bytes of the last.
    assert paged.room == "5 pages of 150 bytes"
    assert (paged.amount(150), paged.number(450)) == ("1 page of 150 bytes", 3)


BUS = BusCycles(data=10, refresh=0, turnaround=5, window=1, conflict=2, idle=2)


def _counters(*requests: int, **given: Any) -> MemoryCounters:
    channels = tuple(ChannelTraffic(each, 1, each, 1, 0, BUS) for each in requests)
    clients = (ClientTraffic(3, 1, 1, 0, 0, 4, 5, 6),)
    return MemoryCounters(channels, clients, **{"period_cycles": 20, "periods": (BUS,), **given})


def test_counts_of_a_memory() -> None:
    """Shares are of all cycles, rows of all channels, links of what they could carry."""
    assert list(bus_shares(BUS)) == [
        ("data", 50), ("turnaround", 25), ("window", 5), ("conflict", 10), ("idle", 10),
    ]  # fmt: skip
    assert row_outcomes(_counters(2998, 0)) == (
        "row hits 2,998 (99.9 %), misses 2 (0.1 %), conflicts 0 (0.0 %)"
    )
    link = LinkUse("out of 0,0", 300, 4, ())
    assert (link.share(100), link.share(0)) == (0.75, None)
    assert LinkUse("out of 0,0", 300, None, ()).share(100) is None


@pytest.mark.parametrize(
    ("served", "told"),
    [
        ((), None),
        ((149, 49), "channel 0 served 150 requests, 1.5 times the mean; channel 1 the fewest, 50"),
        ((50, 148), None),
        ((0, 98), None),
        ((0, 99), "channel 1 served 100 requests, 2.0 times the mean; channel 0 the fewest, 1"),
        ((0, 1999, 0), "channel 1 served 2,000 requests, 3.0 times the mean; channel 0 the f"),
    ],
)
def test_uneven(served: tuple[int, ...], told: str | None) -> None:
    """A channel with half as much again as the mean is told of, where it has a hundred requests."""
    found = uneven_channels(_counters(*served))
    assert (found is None) == (told is None)
    assert (found or "").startswith(told or "")


@pytest.mark.parametrize(
    ("where", "value", "told"),
    [
        ("period_cycles", -1, "counters: period_cycles is -1: expected 0 to 9223372036854775807"),
        ("period_cycles", 1 << 63, "counters: period_cycles is 9223372036854775808: expected 0"),
        ("period_cycles", 0, "counters: period_cycles is 0: expected at least 1"),
        ("period_cycles", "a", "counters: Expected `int`"),
    ],
)
def test_counts_of_anybody(where: str, value: object, told: str) -> None:
    """What was kept of them is read again; numbers that are none of a run are refused."""
    document = as_document(_counters(5, 6))
    assert counters_in(document, 4) == _counters(5, 6)
    assert counters_in({**document, "period_cycles": (1 << 63) - 1}, 4).period_cycles == 2**63 - 1
    assert counters_in({**document, "period_cycles": 0, "periods": []}, 4).periods == ()
    with pytest.raises(Refusal, match="a client is unit 3: expected one below 3"):
        counters_in(document, 3)
    with pytest.raises(Refusal) as refused:
        counters_in({**document, where: value}, 4)
    assert str(refused.value).startswith(told)
    document["channels"][1]["bus"]["idle"] = -3
    with pytest.raises(Refusal, match=r"channels\[1\].bus.idle is -3: expected 0 to "):
        counters_in(document, 4)


def stopped(cycles: int = 100) -> RunState:
    """Return a run of six units that stopped, by hand."""

    def unit(
        number: int, cycle: int, wait: tuple[Operation, tuple[int, ...]] | None, flops: int | None
    ) -> UnitState:
        waits = None if wait is None else WaitState(*wait, cycle, len(wait[1]) > 1, None)
        return UnitState(
            number, f"u{number}", "Map", "compute", Place("a.py", number), 8 * number, cycle,
            wait is None, waits, 2, 3, 5, flops,
        )  # fmt: skip

    def channel(number: int, ends: tuple[int, int], taken: int, left_over: int) -> ChannelState:
        return ChannelState(
            number, f"c{number}", f"c{number}", *ends, "tile", 2, 1, 1, 0, taken, taken, 0, None,
            None, None, 2, 10 + number, 20 + number, 30 + number, left_over,
        )  # fmt: skip

    return RunState(
        "by hand",
        cycles,
        (
            unit(0, 90, None, 7),
            unit(1, 60, (Operation.SEND, (0,)), None),
            unit(2, 70, (Operation.RECEIVE, (1, 0)), 4),
            unit(3, 75, (Operation.CAPACITY, ()), 0),
            unit(4, 80, (Operation.REACH, ()), 1),
            unit(5, 85, (Operation.REACH, (2,)), 1),
        ),
        (channel(0, (1, 2), 3, 1), channel(1, (0, 2), 4, 0), channel(2, (4, 5), 5, 2_000)),
        OnChipState(64, ((3, 9),), None),
        4_096,
        None,
    )


def test_open_waits_last_to_the_end() -> None:
    """They count for who waits and for the first channel, and are no idle cycles."""
    state = stopped()
    assert open_waits(state) == [
        None, OpenWait(Cause.FULL, 0, 60), OpenWait(Cause.EMPTY, 1, 70),
        OpenWait(Cause.CAPACITY, None, 75), None, OpenWait(Cause.EMPTY, 2, 85),
    ]  # fmt: skip
    # Elements, empty, full, credit, HBM, capacity, idle, flops, by unit.
    assert [
        (each.elements, each.empty_cycles, each.full_cycles, each.credit_cycles, each.hbm_cycles,
         each.capacity_cycles, each.idle_cycles, each.flops)
        for each in unit_counters(state)
    ] == [
        (0, 0, 21, 31, 3, 5, 10, 7), (0, 0, 20 + 40, 30, 3, 5, 0, 0),
        (7, 10 + 11 + 30, 0, 0, 3, 5, 0, 4), (0, 0, 0, 0, 3, 5 + 25, 0, 0),
        (0, 0, 22, 32, 3, 5, 20, 1), (5, 12 + 15, 0, 0, 3, 5, 0, 1),
    ]  # fmt: skip
    assert [
        (each.empty_cycles, each.full_cycles, each.credit_cycles)
        for each in channel_counters(state)
    ] == [(10, 20 + 40, 30), (11 + 30, 21, 31), (12 + 15, 22, 32)]
    assert (12, 13, 5, 85) == (state.elements, state.flops, state.waiting, state.stopped_cycle)
    assert warnings(state) == (
        "FAB-D004: c0: 1 element was left over: u2 had ended",
        "FAB-D004: c2: 2,000 elements were left over: u5 had ended",
    )


@pytest.mark.parametrize(
    ("cycles", "peak", "utilization"),
    [(100, Fraction(5, 2), (13 / 12_000, 0.4)), (100, Fraction(0), (13 / 12_000, 0.0)),
     (0, Fraction(5, 2), (0.0, 0.0))],
)  # fmt: skip
def test_totals(cycles: int, peak: Fraction, utilization: tuple[float, float]) -> None:
    """What is used of what there is; nothing where there is none of it, or no time went by."""
    metrics: Any = SimpleNamespace(
        paper=SimpleNamespace(traffic_bytes=100, on_chip_bytes=31),
        artifact=SimpleNamespace(traffic_bytes=90, on_chip_bytes=32),
    )
    assert totals(stopped(cycles), peak, metrics)._asdict() == {
        "cycles": cycles, "off_chip_traffic_bytes": 100, "on_chip_requirement_bytes": 31,
        "off_chip_traffic_artifact_bytes": 90, "on_chip_requirement_artifact_bytes": 32,
        "hbm_bytes_moved": 4_096, "flops": 13, "allocated_flops_per_cycle": 120,
        "compute_utilization": utilization[0], "off_chip_bandwidth_utilization": utilization[1],
        "operators": 6, "channels": 3, "elements": 12,
    }  # fmt: skip


def test_who_took_part() -> None:
    """Who got an element, worked or asked a memory; who waited for elements alone did not."""
    names = ("elements", "busy_cycles", "hbm_cycles", "capacity_cycles")
    others = ("empty_cycles", "full_cycles", "credit_cycles", "idle_cycles", "flops")
    none = dict.fromkeys((*names, *others), 0) | {"flops_per_cycle": 8}

    def unit(**counts: int) -> UnitCounters:
        return UnitCounters("u", "Map", "compute", "a.py", 3, **(none | counts))

    assert [True] * 4 == [unit(**{name: 1}).took_part for name in names]
    assert not unit(**dict.fromkeys(others, 1)).took_part
    waits = {"empty_cycles": 1, "full_cycles": 3, "credit_cycles": 9, "hbm_cycles": 27}
    assert 121 == unit(**waits, capacity_cycles=81, busy_cycles=5, idle_cycles=6).stalled_cycles


@pytest.mark.parametrize("at_most", [True, False])
def test_compared(at_most: bool) -> None:
    """The same agrees, and less where it is an upper bound."""
    found = [Compared("x", 3, measured, at_most).agrees for measured in (2, 3, 4)]
    assert [at_most, True, False] == found


def test_what_shapes_tell() -> None:
    """Streams that have ended show the sizes of symbols, one by another, in whatever order.

    One whose values are no whole groups shows none, and neither does one that has no group.
    """
    first, second, third, fourth = map(Symbol, "DEFG")
    shapes = [(first, second), (first, 3), (5, second), (third, 3), (fourth, 0), (4, fourth)]
    with Program("shapes") as program:
        for number, shape in enumerate(shapes):
            Collect([], (0,), name=f"y{number}")(
                Emit(StreamType(shape, FLOAT), [], name=f"x{number}")()
            )
    state = state_of(Execution(program, Settings(mode="timing")).machine)
    sent = [14, 6, None, 7, 0, None]
    channels = tuple(
        each._replace(sent=count or 0, closed_cycle=None if count is None else 9)
        for each, count in zip(state.channels, sent, strict=True)
    )
    found = expected_of(elaborate(program), replace(state, channels=channels), channels[::-1])
    assert [found[number].in_all for number in range(6)] == [
        14, 6, 35, str(third * 3), 0, str(fourth * 4),
    ]  # fmt: skip
    assert [found[number].shape for number in (0, 4)] == ["[D, E]", "[G, 0]"]


@pytest.mark.parametrize(
    ("read", "made", "each"),
    [(6, 2, 3), (7, 2, None), (2, 6, None), (4, 4, None), (4, 0, None), (0, 4, None), (4, 1, 4)],
)
def test_how_many_make_one(read: int, made: int, each: int | None) -> None:
    """A whole number above 1 of elements, where the shapes say so; of an end none."""
    with Program("stages") as program:
        (stream,) = Stage(made)(*Stage(read)())
        Stage(made, outputs=0)(stream)
    state = state_of(Execution(program, Settings(mode="timing")).machine)
    found = expected_of(elaborate(program), state, state.channels)
    assert [found[number].per_output for number in range(2)] == [each, None]
    assert [found[number].in_all for number in range(2)] == [read, made]

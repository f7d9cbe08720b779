"""The state of a run: data that nobody can change, whatever the machine does afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from fabric.graph.hardware.description import Pages
from fabric.messages.telling.errors import Refusal
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.engine.off_chip import (
    BusCycles,
    ChannelTraffic,
    ClientTraffic,
    MemoryCounters,
)
from fabric.timing.machine.machine import cycles_of, state_of
from fabric.timing.state.resource_use import (
    LinkUse,
    as_document,
    bus_shares,
    counters_in,
    row_outcomes,
    uneven_channels,
)
from fabric.timing.state.run_state import OnChipState
from tests.deadlock.cases import CASES


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

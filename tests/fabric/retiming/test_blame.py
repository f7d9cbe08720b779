"""Which channels are to blame, against all depths of small networks."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from fabric import Hardware, Program
from fabric.graph.wiring.program import hardware_scope
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import NO_LIMIT, Retimer
from tests.fabric.retiming.networks import Network, Steps, networks
from tests.fabric.retiming.real import UNBOUNDED
from tests.profiles import examples

MOST: Final = 3
"""Slots of a channel, but for unbounded ones."""

QUICK: Final = examples(quick=20, deep=150)


def _small(network: Network) -> Record:
    """Return the record of a network of few channels."""
    assume(1 <= len(network.options) <= 6)
    record, _ = network.recorded([UNBOUNDED] * len(network.options))
    assume(record is not None)
    assert record is not None
    return record


def _retimer(program: Program, channels: int) -> Retimer:
    """Return a retimer of a run in which no channel was full."""
    record, _ = Network(program).recorded([UNBOUNDED] * channels)
    assert record is not None
    return Retimer(record)


def _below(blamed: frozenset[int], depths: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return all depths that are no deeper where ``blamed`` says; the others are unbounded, too."""
    anything = (*range(1, MOST + 1), UNBOUNDED)
    return list(
        product(
            *(
                [depth for depth in anything if number not in blamed or depth <= its]
                for number, its in enumerate(depths)
            )
        )
    )


@QUICK
@given(networks(), st.data())
def test_a_cut_is_valid(network: Network, data: st.DataObject) -> None:
    """Depths that are no deeper in the channels blamed fail as well, or take as long."""
    record = _small(network)
    retimer = Retimer(record)
    least = retimer.time([UNBOUNDED] * len(record.channels)).cycles
    assert least is not None
    depths = data.draw(st.tuples(*[st.integers(1, MOST)] * len(record.channels)))
    limit = data.draw(st.sampled_from((least - 1, least, least + 2, NO_LIMIT)))
    retimed = retimer.time(depths, limit)
    blamed = retimer.blamed(retimed)
    event("deadlock" if retimed.blocked else "passed" if retimed.cycles is None else "ended")
    found = [retimer.time(each, limit).cycles for each in _below(blamed, depths)]
    if retimed.cycles is None:
        assert {None} == set(found)
    else:
        assert all(cycles is None or cycles >= retimed.cycles for cycles in found)


@QUICK
@given(networks(), st.data())
def test_none_to_blame(network: Network, data: st.DataObject) -> None:
    """Where other depths help, at least one channel is blamed."""
    record = _small(network)
    retimer = Retimer(record)
    unbounded = retimer.time([UNBOUNDED] * len(record.channels)).cycles
    assert unbounded is not None
    depths = data.draw(st.tuples(*[st.integers(1, MOST)] * len(record.channels)))
    limit = data.draw(st.integers(max(0, unbounded - 2), unbounded + 1))
    retimed = retimer.time(depths, limit)
    if retimed.cycles is None:
        assert retimer.blamed(retimed) or limit < unbounded


@QUICK
@given(networks(), st.data())
def test_a_limit(network: Network, data: st.DataObject) -> None:
    """A limit changes nothing but that later ends are given up."""
    record = _small(network)
    retimer = Retimer(record)
    depths = data.draw(st.tuples(*[st.integers(1, MOST)] * len(record.channels)))
    free = retimer.time(depths)
    if free.cycles is None:
        return
    assert free == retimer.time(depths, free.cycles)
    given_up = retimer.time(depths, free.cycles - 1)
    assert (None, ()) == given_up[:2]
    assert given_up.passed is not None
    assert retimer.clocks[given_up.passed] > free.cycles - 1


@pytest.mark.parametrize(
    ("hardware", "slower"), [(Hardware(), 4 * (8 - 1) + 1), (Hardware().of_wires(), 4)]
)
def test_busy_since_an_arrival(hardware: Hardware, slower: int) -> None:
    """Who is busy for as long after each arrival waits for one slot if elements come one by one.

    Wires show the next element only after the one before: there is less to lose.
    """
    with hardware_scope(hardware), Program("since", channel_depth=2) as program:
        stream = Steps(("s0",), 5, (1,))()[0]
        for _ in range(2):
            stream = Steps(("r0", "s0"), None, (1,))(stream)[0]
        Steps(("b0+8",), None, ())(stream)
    retimer = _retimer(program, 3)

    def found(*depths: int) -> tuple[int | None, frozenset[int]]:
        retimed = retimer.time(depths)
        return retimed.cycles, retimer.blamed(retimed)

    least, nothing = found(UNBOUNDED, UNBOUNDED, UNBOUNDED)
    assert least is not None
    assert found(5, 5, 5) == (least, nothing) == (least, frozenset())
    slow, last = found(5, 5, 1)
    assert last == frozenset({2})
    assert slow is not None
    assert slow >= least + slower
    assert found(1, 1, 1) == (slow, last)


def test_busy_since_the_wires_were_free() -> None:
    """What arrives when the element before it is taken is as late as that: here by a slot."""
    with hardware_scope(Hardware().of_wires()), Program("wires", channel_depth=2) as program:
        both = Steps(("s0",), 2, (1,))()[0]
        sent = Steps(("s0", "s0", "r0", "b0+400"), 1, (2,))(both)[0]
        Steps(("c300", "r0"), 2, ())(sent)
    retimer = _retimer(program, 2)
    fast, slow = (retimer.time((2, depth)) for depth in (2, 1))
    assert retimer.blamed(slow) == frozenset({1})
    assert slow.cycles is not None
    assert fast.cycles is not None
    assert slow.cycles > 300 + 400
    # Then the reader of both is the last one.
    assert fast.cycles == 2 * 300


@pytest.mark.parametrize(
    ("steps", "blamed"),
    [(("n", "s0", "s0", "l1+30"), set()), (("s0", "s0", "n", "l1+30"), {0})],
)
def test_late_after_a_reading(steps: tuple[str, ...], blamed: set[int]) -> None:
    """A slot that was waited for after the clock was read does not delay what counts from there."""
    with Program("late", channel_depth=1) as program:
        first, late = Steps(steps, 1, (2, 1))()
        Steps(("r0", "c5"), None, ())(first)
        Steps(("r0",), None, ())(late)
    retimer = _retimer(program, 2)
    fast, slow = (retimer.time((depth, 1)) for depth in (2, 1))

    assert retimer.blamed(slow) == blamed
    assert slow.cycles is not None
    assert fast.cycles is not None
    assert (slow.cycles > fast.cycles) is bool(blamed)

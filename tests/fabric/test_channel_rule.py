"""Compares the rules of channels with definitions that look at every cycle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Hop, Program, simulate
from fabric.timing.engine.channel_rule import credit_part, links_part
from tests.deadlock.parts import Script

_CYCLES = st.integers(0, 40)


@given(_CYCLES, _CYCLES, _CYCLES)
def test_wait_for_a_credit_is_as_defined(begun: int, waited: int, backward: int) -> None:
    taken = begun + waited - backward
    on_its_way = sum(cycle >= taken for cycle in range(begun, begun + waited))

    assert on_its_way == credit_part(waited, backward)


@given(_CYCLES, _CYCLES, _CYCLES, _CYCLES)
def test_wait_for_links_is_as_defined(begun: int, waited: int, visible: int, late: int) -> None:
    of_links = range(visible - late, visible)
    expected = sum(cycle in of_links for cycle in range(begun, begun + waited))

    assert expected == links_part(begun, begun + waited, visible, late)


@pytest.mark.parametrize("elements", [3, 4, 5])
@pytest.mark.parametrize("busy_cycles", [1, 100])
def test_sender_to_an_ended_reader_waits(elements: int, busy_cycles: int) -> None:
    depth, hop = 3, Hop(2, 4)
    with Program("left", channel_depth=depth) as program:
        (sent,) = Script(("s0",), rounds=elements, counts=(elements,), name="sends")()
        Script((), once=(f"c{busy_cycles}",), rounds=0, counts=(), name="goes")(sent)

    report = simulate(program, hops={"goes.0": hop})

    clock = 0
    dequeued: list[int] = []
    for number in range(elements):
        if number >= depth:
            clock = max(clock, dequeued[number - depth] + hop.backward_cycles)
        dequeued.append(max(busy_cycles, clock + hop.forward_cycles))
    (sends,) = (unit for unit in report.units if unit.name == "sends")
    assert clock == sends.full_cycles + sends.credit_cycles

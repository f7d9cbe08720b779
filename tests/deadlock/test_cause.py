"""What the cause of a deadlock says, and what it rests on."""

from __future__ import annotations

import pytest

from fabric import Program, Stream, simulate
from fabric.graph.values.dims import Dim, symbol
from fabric.graph.wiring.elaborate import elaborate
from fabric.timing.engine.clock import VirtualClock
from fabric.timing.machine.assembly import assemble
from fabric.timing.machine.machine import state_of
from fabric.timing.state.run_state import expected_of
from tests.deadlock.parts import Script, feedback, sink


def full_ring(size: int) -> Program:
    """Units that each send two elements before they take one."""
    loop = feedback(6)
    with Program("full-ring", channel_depth=1) as program:
        stream: Stream = loop
        for number in range(size):
            (stream,) = Script(("s0", "s0", "r0"), rounds=3, counts=(6,), name=f"unit_{number}")(
                stream
            )
        loop.connect(stream)
    return program


@pytest.mark.parametrize(
    ("size", "told"),
    [(6, "0 1 2 3 4 5"), (7, "0 1 2 3 1-more 5 6"), (9, "0 1 2 3 3-more 7 8")],
)
def test_long_causes(size: int, told: str) -> None:
    """Of more than six sentences the first four and the last two stay."""
    report = simulate(full_ring(size))
    assert report.deadlock is not None
    (loop,) = report.deadlock["loops"]

    expected = []
    for word in told.split():
        if word.endswith("-more"):
            expected.append(f"{word[0]} more wait for one another like this.")
        else:
            number, following = int(word), (int(word) + 1) % size
            expected.append(
                f"unit_{number} cannot send element 2 before unit_{following} takes the one in "
                f"unit_{following}.0."
            )
    assert " ".join(expected) == loop["cause"]


@pytest.mark.parametrize(
    ("read", "made", "found"),
    [
        (8, 2, 4),
        (7, 3, None),
        (8, 8, None),
        (2, 8, None),
        (8, 0, None),
        (4 * symbol("n"), symbol("n"), 4),
        (3 * symbol("n"), 2 * symbol("n"), None),
        (symbol("n"), 0, None),
    ],
    ids=str,
)
def test_elements_that_make_one_output(read: Dim, made: Dim, found: int | None) -> None:
    """Only where the shapes say that it is a whole number above 1."""
    with Program("gather") as program:
        (source,) = Script(("s0",), counts=(read,))()
        (packed,) = Script(("r0", "s0"), counts=(made,))(source)
        sink("y", packed)
    clock = VirtualClock(lambda: None, lambda: None, 1)
    machine = assemble(
        elaborate(program), clock, functional=False, depths={}, hops={}, capacity_bytes=None
    )

    state = state_of(machine)

    told = expected_of(machine.plan, state, state.channels[:1])
    assert found == told[0].per_output

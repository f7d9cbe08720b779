from __future__ import annotations

import pytest

from fabric import Program, Stream, simulate
from fabric.graph.values.dims import Dim, symbol
from fabric.graph.wiring.elaborate import elaborate
from fabric.timing.engine.clock import VirtualClock
from fabric.timing.machine.assembly import Setup, assemble
from fabric.timing.machine.machine import state_of
from fabric.timing.state.run_state import expected_of
from operators import Bufferize, LinearOffChipLoad, LinearOffChipStore, Streamify, Tensor
from tests.deadlock.cases import on_a_small_chip
from tests.deadlock.parts import Script, feedback, sink


def full_ring(size: int) -> Program:
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
    [
        *((6, "0 1 2 3 4 5"), (7, "0 1 2 3 1-more 5 6"), (9, "0 1 2 3 3-more 7 8")),
        pytest.param(300, "0 1 2 3 294-more 298 299", marks=pytest.mark.deep),
    ],
)
def test_cause_of_a_long_loop_keeps_six_sentences(size: int, told: str) -> None:
    report = simulate(full_ring(size))
    assert report.deadlock is not None
    (loop,) = report.deadlock["loops"]

    expected = []
    for word in told.split():
        if word.endswith("-more"):
            expected.append(f"{word.removesuffix('-more')} more wait for one another like this.")
        else:
            number, following = int(word), (int(word) + 1) % size
            expected.append(
                f"unit_{number} cannot send element 2 before unit_{following} takes the one in "
                f"unit_{following}.0."
            )
    assert " ".join(expected) == loop["cause"]


@pytest.mark.parametrize(
    ("buffers", "tiles", "more"),
    [(4, (3, 3, 2, 2), ""), (5, (2,) * 4, " and 1 more holds"), (6, (2,) * 4, " and 2 more hold")],
)
def test_cause_names_four_holders_of_memory(
    buffers: int, tiles: tuple[int, ...], more: str
) -> None:
    with on_a_small_chip(10 * 2048, "buffers") as program:
        for number in range(buffers):
            x = LinearOffChipLoad(Tensor((128, 64)), tile=(16, 64))()
            LinearOffChipStore(f"y{number}")(Streamify()(Bufferize(rank=2)(x)))
    report = simulate(program)
    assert report.deadlock is not None
    cause = report.deadlock["loops"][0]["cause"]

    held = [f"bufferize_{number} holds {2048 * n:,}" for number, n in enumerate(tiles, 1)]
    rest = f"{more} the rest" if more else ""
    assert cause.endswith(f". Of 20,480 bytes on chip {', '.join(held)}{rest}.")


@pytest.mark.parametrize(
    ("units", "named"), [(4, "u0 and u1 and u2 and u3"), (6, "u0 and u1 and u2 and u3 and 2 more")]
)
def test_cause_names_four_units_of_a_livelock(units: int, named: str) -> None:
    with Program("round") as program:
        loop = feedback(1)
        stream: Stream = loop
        for number in range(units):
            once = () if number else ("s0",)
            (stream,) = Script(("r0", "s0"), once=once, name=f"u{number}")(stream)
        loop.connect(stream)
    report = simulate(program, livelock_cycles=2_000)
    assert report.deadlock is not None
    (found,) = report.deadlock["loops"]

    assert found["cause"].startswith(f"{named} pass elements on and on. For 2,000 cycles no sink ")
    assert [unit["waits_for"] for unit in found["units"]] == [
        [f"u{(number + 1) % units}"] for number in range(units)
    ]


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
    with Program("gather") as program:
        (source,) = Script(("s0",), counts=(read,))()
        (packed,) = Script(("r0", "s0"), counts=(made,))(source)
        sink("y", packed)
    clock = VirtualClock(lambda: None, lambda: None, 1)
    machine = assemble(Setup(plan=elaborate(program)), clock)

    state = state_of(machine)

    told = expected_of(machine.plan, state, state.channels[:1])
    assert found == told[0].per_output

from __future__ import annotations

import numpy as np
import pytest

import operators as op
from fabric import Program, Stream, simulate
from tests.deadlock.cases import on_a_small_chip
from tests.deadlock.parts import Script, feedback, sink, source


@pytest.mark.parametrize(
    ("buffers", "tiles", "more"),
    [(4, (3, 3, 2, 2), ""), (5, (2,) * 4, " and 1 more holds"), (6, (2,) * 4, " and 2 more hold")],
)
def test_cause_names_four_holders_of_memory(
    buffers: int, tiles: tuple[int, ...], more: str
) -> None:
    with on_a_small_chip(10 * 2048, "buffers") as program:
        for number in range(buffers):
            x = op.LinearOffChipLoad(op.Tensor((128, 64)), tile=(16, 64))()
            op.LinearOffChipStore(f"y{number}")(op.Streamify()(op.Bufferize(rank=2)(x)))
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
            (stream,) = Script(("r0", "s0"), () if number else ("s0",), name=f"u{number}")(stream)
        loop.connect(stream)
    report = simulate(program, livelock_cycles=2_000)
    assert report.deadlock is not None
    (found,) = report.deadlock["loops"]

    assert found["cause"].startswith(f"{named} pass elements without end. For 2,000 cycles ")
    assert [unit["waits_for"] for unit in found["units"]] == [
        [f"u{(number + 1) % units}"] for number in range(units)
    ]


def test_cause_counts_the_only_element_of_a_stream_in_the_singular() -> None:
    with Program("short") as program:
        route = op.Flatten(0, 1)(op.Selectors(np.array([[0], [1], [1], [0]]), width=2)())
        sink("y", op.Reassemble()([source("a", 4), source("b", 1)], route))
    report = simulate(program)
    assert report.deadlock is not None
    assert " after 1 element; selector 3 " in report.deadlock["loops"][0]["cause"]

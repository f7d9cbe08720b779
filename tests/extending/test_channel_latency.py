"""From outside: units have places on a line, and a channel is as long as the way it goes."""

from __future__ import annotations

import pytest

from fabric import Hop, Program, simulate
from tests.fabric.scripted import Charge, Relay, Ticks
from tests.schedules import SCHEDULES, schedule

COUNT = 20
PLACES = {"source": 0, "near": 2, "far": 9, "sink": 10}
PRODUCERS = {"near.0": "source", "far.0": "near", "sink.0": "far"}


def _line(depth: int) -> Program:
    with Program("line", channel_depth=depth) as program:
        stream = Ticks(COUNT, name="source")()
        Charge(name="sink")(Relay(name="far")(Relay(name="near")(stream)))
    return program


def _placed() -> dict[str, Hop]:
    ways = {key: PLACES[key.partition(".")[0]] - PLACES[of] for key, of in PRODUCERS.items()}
    return {key: Hop(forward_cycles=way, backward_cycles=way) for key, way in ways.items()}


@pytest.mark.parametrize("order", SCHEDULES)
@pytest.mark.parametrize("depth", [1, 3, 14])
def test_element_takes_the_latencies_of_all_channels(depth: int, order: str | int) -> None:
    # Seven cycles there and seven back: a channel of depth K passes K elements in 14 cycles.
    with schedule(order):
        report = simulate(_line(depth), hops=_placed())
    rounds, rest = divmod(COUNT - 1, depth)
    last = rounds * max(14, depth) + rest
    assert "completed" == report.status
    assert PLACES["sink"] + last + 1 == report.cycles

"""How far the authors' own cycles scatter.

In their simulator the host's threads decide in which cycle a reader sees the end of a channel: the
fabric takes the producer's last one. Here that is moved by up to two cycles, for each channel on
its own, and the cycles of the whole run move by one per cent: more than any printed run of dynamic
tiles is off ours.
"""

from __future__ import annotations

import random

import pytest

from fabric import simulate
from fabric.graph.hardware.file import load_hardware
from fabric.graph.loading.program_file import load_program
from fabric.timing.engine.channel import Channel
from tests.benchmarks.points import printed_moe_points
from tests.programs.loading import PROGRAMS

TRIALS = 20
DYNAMIC = (4, 9, 21, 22)
"""Dynamic tiles of the printed points: Mixtral and Qwen of batch 64, Qwen in 128 and 8 regions."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", DYNAMIC)
def test_printed_cycles_are_within_the_scatter_of_ends_seen_later(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = list(printed_moe_points())[number]
    (printed,) = (each.value for each in point.bounds if each.field == "cycles")
    see_end = Channel.see_end
    found = []
    for seed in range(TRIALS):
        drawn = random.Random(seed)

        def late(channel: Channel, drawn: random.Random = drawn) -> None:
            first = not channel.ended
            see_end(channel)
            if first:
                channel.idle(channel.consumer.now + drawn.randrange(3))

        monkeypatch.setattr(Channel, "see_end", late)
        hardware = load_hardware(PROGRAMS / "hardware" / point.hardware)
        loaded = load_program(PROGRAMS / point.program, point.parameters, hardware)
        cycles = simulate(loaded.program, engine="tasks").cycles
        assert cycles is not None
        found.append(cycles)

    assert min(found) < printed < max(found)
    assert max(found) - min(found) > 0.003 * printed

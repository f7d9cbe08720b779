from __future__ import annotations

from unittest import mock

from fabric import simulate
from fabric.timing.engine.unit import Unit
from fabric.timing.memories.flat import FlatMemory
from tests.programs.loading import program


def test_flat_memory_answers_after_its_silent_cycles() -> None:
    margins: list[int] = []
    advance = FlatMemory.advance

    def noted(memory: FlatMemory, horizon_cycle: int) -> list[Unit]:
        silent_until = memory.world.progress.silent_until
        done = advance(memory, horizon_cycle)
        margins.extend(unit.now - silent_until for unit in done)
        return done

    with mock.patch.object(FlatMemory, "advance", noted):
        simulate(program("top2_moe"), mode="timing", engine="tasks")
    # It is one cycle later if no other client uses the channels.
    assert min(margins) == 1

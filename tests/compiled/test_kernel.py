from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from fabric import Program
from fabric.graph.wiring.elaborate import elaborate
from fabric.timing.compiled import arrays
from fabric.timing.compiled import world as c
from tests.compiled.both import both
from tests.compiled.odd_programs import STAY
from tests.programs.loading import program


def routed() -> Program:
    return program("top2_moe", tokens=4, experts=4)


@pytest.mark.parametrize(
    ("number", "reason"), [(0, c.SLOTS_FULL), (1, c.BUFFER_FULL)], ids=["slots", "buffer"]
)
def test_loop_returns_when_its_arrays_are_full(number: int, reason: int, tmp_path: Path) -> None:
    build = STAY[number]
    depths = {edge.key: 100_000 for edge in elaborate(build()).edges}
    found = []
    native = arrays.Arrays.run

    def noted(these: arrays.Arrays, *integers: int) -> tuple[int, int]:
        found.append(native(these, *integers))
        return found[-1]

    with mock.patch.object(arrays.Arrays, "run", noted), mock.patch.object(arrays, "_LEDGER", 64):
        both(build, tmp_path, depths=depths)
    assert reason in {each[0] for each in found}

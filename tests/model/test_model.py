"""The fabric's cycles are those of an independent model of the rules, for random settings."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from pathlib import Path
from random import Random

import pytest

from fabric import Hop, Program
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.program import hardware_scope
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.machine.machine import state_of
from tests.model.graph import Graph, Outcome, Setting
from tests.model.kernels import KERNELS, draw_kernel
from tests.model.settings import DRAWN, draw_moe, draw_setting, hardware
from tests.model.settings import routed as routed_layer
from tests.model.swiglu import swiglu
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule


def outcome(program: Program, hop: tuple[int, int] = (1, 1)) -> Outcome:
    """Run on the fabric; a report counts what waits for ever up to the end, so clocks are asked."""
    hops = {edge.key: Hop(*hop) for edge in elaborate(program).edges}
    run = Execution(program, Settings(mode="timing", hops=hops))
    status = run.execute()
    assert status in {"completed", "deadlock"}
    return Outcome(
        state_of(run.machine).cycles if status == "completed" else None,
        sorted(unit.now for unit in run.machine.units),
        sorted(channel.elements for channel in run.machine.channels),
    )


class TestWorkloads:
    @pytest.mark.parametrize("seed", spread(range(20), 3))
    @pytest.mark.parametrize("name", DRAWN)
    def test_every_clock(self, tmp_path: Path, name: str, seed: int) -> None:
        """Cycles, the last clock of every unit and the elements of every channel, or a deadlock."""
        drawn = DRAWN[name](Random(f"{name} {seed}"))

        assert drawn.model().run() == outcome(drawn.program(tmp_path)), drawn

    @pytest.mark.parametrize(
        ("hop", "order"),
        list(zip([(2, 1), (1, 3), (4, 2), (7, 7), (3, 5)], cycle(SCHEDULES), strict=False)),
    )
    @pytest.mark.parametrize("name", DRAWN)
    def test_longer_channels(
        self, tmp_path: Path, name: str, hop: tuple[int, int], order: str | int
    ) -> None:
        """The same where elements and credits are on their way for longer, under any schedule."""
        drawn = DRAWN[name](Random(f"{name} {hop}"))
        model = drawn.model()
        model.setting = replace(model.setting, hop=hop)
        with schedule(order):
            found = outcome(drawn.program(tmp_path), hop)

        assert model.run() == found, drawn

    @pytest.mark.parametrize("seed", spread(range(12), 2))
    @pytest.mark.parametrize("name", DRAWN)
    def test_wires(self, tmp_path: Path, name: str, seed: int) -> None:
        """The same where a channel takes one element a cycle and gives one."""
        drawn = DRAWN[name](Random(f"{name} {seed}"))
        drawn = replace(drawn, setting=replace(drawn.setting, apart=1))
        hop = (1, 1) if seed % 2 else (3, 2)
        model = drawn.model()
        model.setting = replace(model.setting, apart=1, hop=hop)

        assert model.run() == outcome(drawn.program(tmp_path), hop), drawn

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", DRAWN)
    def test_many(self, tmp_path: Path, name: str) -> None:
        """The same for a thousand settings."""
        for seed in range(1000):
            drawn = DRAWN[name](Random(f"{name} {seed}"))

            assert drawn.model().run() == outcome(drawn.program(tmp_path)), (seed, drawn)


class TestDeadlock:
    @pytest.mark.parametrize(("tile_n", "expected"), [(2, "deadlock"), (64, "completed")])
    def test_of_shared_regions(self, tmp_path: Path, tile_n: int, expected: str) -> None:
        """Both stop with the same clocks behind a tile that waits for the end of the tokens."""
        choice = [[0, 1]] + [[1, 2]] * 63
        drawn = routed_layer(Setting(), choice, tile_n=tile_n, regions=1)
        model = drawn.model().run()

        assert expected == ("deadlock" if model.cycles is None else "completed")
        assert model == outcome(drawn.program(tmp_path))


class TestKernels:
    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("name", KERNELS)
    def test_every_clock(self, name: str, seed: int) -> None:
        """The same of single operators, with rules that the workloads never feel."""
        program, model = kernel(name, seed)

        assert model.run() == outcome(program)

    @pytest.mark.parametrize("hop", [(2, 1), (1, 3), (4, 2), (7, 7)])
    @pytest.mark.parametrize("name", KERNELS)
    def test_longer_channels(self, name: str, hop: tuple[int, int]) -> None:
        """The same where elements and credits are on their way for longer."""
        program, model = kernel(name, sum(hop))
        model.setting = replace(model.setting, hop=hop)

        assert model.run() == outcome(program, hop)

    @pytest.mark.parametrize("seed", spread(range(8), 2))
    @pytest.mark.parametrize("name", KERNELS)
    def test_wires(self, name: str, seed: int) -> None:
        """The same where a channel takes one element a cycle and gives one."""
        hop = (1, 1) if seed % 2 else (2, 3)
        program, model = kernel(name, seed, apart=1)
        model.setting = replace(model.setting, hop=hop)

        assert model.run() == outcome(program, hop)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", KERNELS)
    def test_many(self, name: str) -> None:
        """The same for a thousand settings."""
        for seed in range(1000):
            program, model = kernel(name, seed)

            assert model.run() == outcome(program), seed


def kernel(name: str, seed: int, apart: int = 0) -> tuple[Program, Graph]:
    """Draw one and its machine."""
    random = Random(f"{name} {seed}")
    setting = replace(draw_setting(random), apart=apart)
    with hardware_scope(hardware(setting)):
        return draw_kernel(name, random, setting)


class TestModel:
    """Against published numbers of the authors' simulator."""

    def test_swiglu(self) -> None:
        """64 x 256 x 512 in tiles of 64 and 16; theirs may shut down a cycle earlier: 15,218."""
        setting = Setting(element_bytes=4, on_chip=256, depth=1, channels=8, bundle=4)

        assert swiglu(setting, 64, 256, 512, 64, 16).run().cycles == 15_219

    def test_early_selectors_matter(self) -> None:
        """Some drawn layer takes another time where EagerMerge waits for its winner's stamp."""
        late = [draw_moe(Random(f"moe {seed}"), early=False) for seed in range(20)]
        early = [draw_moe(Random(f"moe {seed}")) for seed in range(20)]

        assert [each.model().run() for each in late] != [each.model().run() for each in early]

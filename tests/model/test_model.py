from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

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
    # A report counts open waits up to the end of the run; clocks of units do not.
    hops = {edge.key: Hop(*hop) for edge in elaborate(program).edges}
    run = Execution(program, Settings(mode="timing", hops=hops))
    status = run.execute()
    assert status in {"completed", "deadlock"}
    return Outcome(
        state_of(run.machine).cycles if status == "completed" else None,
        sorted(unit.now for unit in run.machine.units),
        sorted(channel.elements for channel in run.machine.channels),
    )


@pytest.mark.parametrize(
    ("hop", "order"),
    spread(zip([(2, 1), (1, 3), (4, 2), (7, 7), (3, 5)], cycle(SCHEDULES), strict=False), 2),
)
@pytest.mark.parametrize("name", DRAWN)
def test_workload_with_longer_channels_has_the_clocks_of_the_model(
    tmp_path: Path, name: str, hop: tuple[int, int], order: str | int
) -> None:
    drawn = DRAWN[name](Random(f"{name} {hop}"))
    model = drawn.model()
    model.setting = replace(model.setting, hop=hop)
    with schedule(order):
        found = outcome(drawn.program(tmp_path), hop)

    assert model.run() == found, drawn


@pytest.mark.parametrize("seed", spread(range(44), 6))
@pytest.mark.parametrize("name", DRAWN)
def test_workload_has_the_clocks_of_the_model(tmp_path: Path, name: str, seed: int) -> None:
    drawn = DRAWN[name](Random(f"{name} {seed}"))
    channels = draw_channels(seed)
    drawn = replace(drawn, setting=replace(drawn.setting, **channels))
    model = drawn.model()
    model.setting = replace(model.setting, **channels)

    assert model.run() == outcome(drawn.program(tmp_path), channels["hop"]), drawn


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", DRAWN)
def test_thousand_workloads_have_the_clocks_of_the_model(tmp_path: Path, name: str) -> None:
    for seed in range(1000):
        drawn = DRAWN[name](Random(f"{name} {seed}"))

        assert drawn.model().run() == outcome(drawn.program(tmp_path)), (seed, drawn)


@pytest.mark.parametrize(("tile_n", "expected"), [(2, "deadlock"), (64, "completed")])
def test_deadlock_of_shared_regions_has_the_clocks_of_the_model(
    tmp_path: Path, tile_n: int, expected: str
) -> None:
    choice = [[0, 1]] + [[1, 2]] * 63
    drawn = routed_layer(Setting(), choice, tile_n=tile_n, regions=1)
    model = drawn.model().run()

    assert expected == ("deadlock" if model.cycles is None else "completed")
    assert model == outcome(drawn.program(tmp_path))


@pytest.mark.parametrize("seed", spread(range(28), 10))
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_has_the_clocks_of_the_model(name: str, seed: int) -> None:
    channels = draw_channels(seed)
    program, model = kernel(name, seed, **channels)

    assert model.run() == outcome(program, channels["hop"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", KERNELS)
def test_thousand_kernels_have_the_clocks_of_the_model(name: str) -> None:
    for seed in range(1000):
        program, model = kernel(name, seed)

        assert model.run() == outcome(program), seed


def kernel(name: str, seed: int, **changed: Any) -> tuple[Program, Graph]:
    random = Random(f"{name} {seed}")
    setting = replace(draw_setting(random), **changed)
    with hardware_scope(hardware(setting)):
        return draw_kernel(name, random, setting)


def draw_channels(seed: int) -> dict[str, Any]:
    random = Random(seed)
    hop = random.choice(((1, 1), (1, 1), (2, 1), (1, 3), (3, 2), (7, 7)))
    if not random.randrange(3):
        return {"hop": hop}
    some = (*random.choices((0, 1), k=3), random.randint(0, 2))
    registers = random.choice(((0, 0, 0, 0), (1, 1, 1, 2), some))
    return {"hop": hop, "apart": 1, "registers": registers}


def test_model_of_swiglu_has_the_published_cycles() -> None:
    # The authors' simulator may stop a cycle earlier, at 15,218.
    setting = Setting(element_bytes=4, on_chip=256, depth=1, channels=8, bundle=4)

    assert swiglu(setting, 64, 256, 512, 64, 16).run().cycles == 15_219


def test_early_selectors_change_the_time_of_a_layer() -> None:
    late = [draw_moe(Random(f"moe {seed}"), early=False) for seed in range(5)]
    early = [draw_moe(Random(f"moe {seed}")) for seed in range(5)]

    assert [each.model().run() for each in late] != [each.model().run() for each in early]

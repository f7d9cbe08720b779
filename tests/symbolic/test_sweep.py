"""Metrics for many sizes at once equal the metrics for each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from typing_extensions import override

from fabric import ConfigurationError, Program, StreamType
from fabric.analysis.symbolic.metrics import Sweep, metrics_of
from fabric.analysis.symbolic.substitution import Substitution, chosen_sizes
from fabric.extend import Costs
from fabric.graph.wiring.elaborate import elaborate
from operators import Flatten, LinearOffChipLoad, Partition, Selectors
from tests.fabric.scripted import Charge
from tests.symbolic.programs import symbolic_metrics, wired


@pytest.mark.parametrize("tiling", ["static", "dynamic"])
def test_equals_substitution(tiling: str) -> None:
    """Three settings in one call are what three substitutions give."""
    program = wired("moe", model="tiny", batch=16, tiling=tiling)
    sweep = Sweep(symbolic_metrics(program))
    random = np.random.default_rng(0)
    sizes = {name: random.integers(0, 40, 3) for name in sweep.symbols}
    found = sweep(sizes)

    for setting in range(3):
        plan = elaborate(wired("moe", model="tiny", batch=16, tiling=tiling))
        given = {name: int(values[setting]) for name, values in sizes.items()}
        metrics = metrics_of(plan, Substitution(chosen_sizes(plan, given, data=False)))
        assert {
            "paper.traffic_bytes": metrics.paper.traffic_bytes,
            "paper.on_chip_bytes": metrics.paper.on_chip_bytes,
            "paper.memory_cycles": metrics.paper.memory_cycles,
            "artifact.store_bytes": metrics.artifact.store_bytes,
            "artifact.fifo_bytes": metrics.artifact.fifo_bytes,
            "flops": metrics.flops,
            "compute_cycles": max(metrics.compute_cycles),
        }.items() <= {name: int(values[setting]) for name, values in found.items()}.items()


@dataclass(frozen=True)
class HalfBytes(Charge):
    """Store numbers of 4 bits."""

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs(store_bytes=inputs[0].count * Fraction(1, 2))


def test_fractions_are_rounded_up() -> None:
    """Half a byte is one that is moved: bytes are whole, as in a substitution."""
    with Program("halves") as program:
        rows = Flatten(0, 1)(LinearOffChipLoad(np.zeros((3, 32), np.float32), (1, 32))())
        route = Selectors(np.array([[0], [1], [0]]), 2, name="route")()
        for stream in Partition(2)(rows, route):
            HalfBytes()(stream)
    plan = elaborate(program)
    found = Sweep(metrics_of(plan, Substitution({})))({"D_route[0]": range(3), "D_route[1]": [0]})

    assert [0, 1, 1] == found["paper.store_bytes"].tolist()
    for size in range(3):
        sizes = chosen_sizes(plan, {"D_route[0]": size, "D_route[1]": 0}, data=False)
        metrics = metrics_of(plan, Substitution(sizes))
        assert metrics.paper.store_bytes == found["paper.store_bytes"][size]


def test_static_program() -> None:
    """A program without symbols has one setting."""
    sweep = Sweep(symbolic_metrics(wired("swiglu")))

    assert () == sweep.symbols
    assert 50_626_560 == int(sweep({})["flops"])


def test_many_missing_sizes() -> None:
    """Eight of those that are missing are named."""
    with Program("p") as program:
        rows = Flatten(0, 1)(LinearOffChipLoad(np.ones((3, 32)), (1, 32))())
        for stream in Partition(9)(rows, Selectors(np.array([[0], [1], [8]]), 9, name="route")()):
            HalfBytes()(stream)
    sweep = Sweep(symbolic_metrics(program))
    with pytest.raises(ConfigurationError) as refused:
        sweep({})
    named = ", ".join(f"D_route[{number}]" for number in range(8))

    assert (
        f"the sweep has no sizes for {named}: expected an array for each of 9 symbols"
    ) == refused.value.message


def test_missing_sizes() -> None:
    """Every symbol needs sizes."""
    sweep = Sweep(symbolic_metrics(wired("simplified_moe")))
    with pytest.raises(ConfigurationError) as refused:
        sweep({"D_selectors_1[0]": [3, 4]})

    assert (
        "the sweep has no sizes for D_selectors_1[1]: expected an array for each of 2 symbols"
    ) == refused.value.message

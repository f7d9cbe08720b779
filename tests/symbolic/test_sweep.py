"""Metrics for many sizes at once equal the metrics for each."""

from __future__ import annotations

import numpy as np
import pytest

from fabric import ConfigurationError
from fabric.symbolic.chosen import chosen_sizes
from fabric.symbolic.metrics import metrics_of
from fabric.symbolic.substitution import Substitution
from fabric.symbolic.sweep import Sweep
from fabric.wiring.elaborate import elaborate
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


def test_static_program() -> None:
    """A program without symbols has one setting."""
    sweep = Sweep(symbolic_metrics(wired("swiglu")))

    assert () == sweep.symbols
    assert 50_626_560 == int(sweep({})["flops"])


def test_missing_sizes() -> None:
    """Every symbol needs sizes."""
    sweep = Sweep(symbolic_metrics(wired("simplified_moe")))
    with pytest.raises(ConfigurationError) as refused:
        sweep({"D_selectors_1[0]": [3, 4]})

    assert (
        "the sweep has no sizes for D_selectors_1[1]: expected an array for each of its 2 symbols"
    ) == refused.value.message

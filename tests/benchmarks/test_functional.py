"""What functional mode costs: a layer with its data, against the same layer in plain numpy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from tests.benchmarks.functional import cost, plain
from tests.programs.loading import program

pytestmark = pytest.mark.benchmark

_TURNS: Final = 3
_WEIGHTS_BYTES: Final = 128 * 3 * 2048 * 768 * 2
"""Of Qwen's layer in bfloat16."""


def test_layer(benchmark: Any) -> None:
    """Wiring, run and verification take less than twice the time, and twice the weights' room."""
    model, turns = ("qwen3-30b-a3b", _TURNS) if benchmark.enabled else ("tiny", 1)
    costs = [(cost("fabric", model, 64), cost("numpy", model, 64)) for _ in range(turns)]
    ours, numpys = map(min, zip(*costs, strict=True))
    peak_bytes = max(each.peak_bytes for each, _ in costs)
    ratio = ours.seconds / numpys.seconds
    benchmark.extra_info["ratio"], benchmark.extra_info["peak_bytes"] = ratio, peak_bytes
    benchmark.pedantic(cost, ("numpy", "tiny", 64), rounds=1)
    print(
        f"\n{model}: {ours.seconds:.2f} s, {ratio:.2f} x numpy, {peak_bytes / 1e9:.2f} GB, "
        f"{peak_bytes / _WEIGHTS_BYTES:.2f} x the weights"
    )
    if benchmark.enabled:
        assert ratio < 2
        assert peak_bytes < 2 * _WEIGHTS_BYTES


def test_numpy_computes_the_same(benchmark: Any) -> None:
    """The yardstick is the layer, but for the rounding of weights to bfloat16."""
    wired = program("moe", model="tiny", batch=24)
    from layers.models import MODELS
    from layers.routing import draw_routing

    size = MODELS["tiny"]
    choice = draw_routing(24, size.top_k, size.experts, 0)
    y = benchmark.pedantic(plain, (size, choice), rounds=1)

    expected: Any = wired.expected["y"].compute()
    np.testing.assert_allclose(y, expected, rtol=0.05, atol=0.01)

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from tests.benchmarks.functional import cost, plain
from tests.programs.loading import program

pytestmark = pytest.mark.benchmark

_TURNS: Final = 3
_WEIGHTS_BYTES: Final = 128 * 3 * 2048 * 768 * 2


def test_layer_takes_less_than_twice_the_time_of_numpy(benchmark: Any) -> None:
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


def test_numpy_layer_equals_the_expected_result_of_moe_but_for_rounding(benchmark: Any) -> None:
    wired = program("moe", model="tiny", batch=24)
    from layers.models import MODELS
    from layers.routing import draw_routing

    size = MODELS["tiny"]
    choice = draw_routing(24, size.top_k, size.experts, 0)
    y = benchmark.pedantic(plain, (size, choice), rounds=1)

    expected: Any = wired.expected["y"].compute()
    np.testing.assert_allclose(y, expected, rtol=0.05, atol=0.01)

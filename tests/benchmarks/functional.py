"""A mixture-of-experts layer in functional mode and in plain numpy, in two processes.

``python -m tests.benchmarks.functional fabric|numpy MODEL BATCH`` prints the processor seconds of
all threads, from the wiring or the first drawn number on, and the peak of the process's memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.resident import peak_bytes

_ROOT: Final = Path(__file__).parents[2]

Array = NDArray[np.float32]


class Cost(NamedTuple):
    seconds: float
    peak_bytes: int


def cost(how: str, model: str, batch: int) -> Cost:
    out = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.functional", how, model, str(batch)],
        cwd=_ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return Cost(float(out[0]), int(out[1]))


def plain(model: Any, choice: NDArray[np.int64], seed: int = 0) -> Array:
    """Compute the layer in float32: the weights of each expert with tokens are drawn once.

    The numbers are those that the program draws, in the same way. ``choice`` has the experts of
    each token.
    """

    def drawn(*key: int, shape: tuple[int, ...]) -> Array:
        return np.random.default_rng((seed, *key)).standard_normal(shape, dtype=np.float32)

    def weights(part: int, expert: int, rows: int, cols: int) -> Array:
        matrix = drawn(1, part, expert, shape=(rows, cols))
        matrix *= np.float32(rows**-0.5)
        return matrix

    x, powers = drawn(2, shape=(len(choice), model.hidden)), np.exp(drawn(3, shape=choice.shape))
    router = powers / powers.sum(axis=1, keepdims=True)
    y = np.zeros_like(x)
    for expert in np.unique(choice).tolist():
        token, slot = np.nonzero(choice == expert)
        gates = x[token] @ weights(1, expert, model.hidden, model.inter)
        inner = gates / (1 + np.exp(-gates))
        inner *= x[token] @ weights(0, expert, model.hidden, model.inter)
        outer = inner @ weights(2, expert, model.inter, model.hidden)
        y[token] += router[token, slot][:, np.newaxis] * outer
    return y


def _main(how: str, model: str, batch: int) -> Cost:
    from fabric import simulate
    from fabric.graph.hardware.description import Hardware
    from fabric.graph.loading.program_file import load_program

    start = time.process_time()
    if how == "fabric":
        parameters = [f"model={model}", f"batch={batch}", "tile_n=64"]
        loaded = load_program(_ROOT / "programs" / "moe.py", parameters, Hardware())
        assert simulate(loaded.program, mode="functional").verified is True
    else:
        sys.path.insert(0, str(_ROOT / "programs"))
        from layers.models import MODELS
        from layers.routing import draw_routing

        size = next(each for name, each in MODELS.items() if name == model)
        plain(size, draw_routing(batch, size.top_k, size.experts, 0))
    seconds = time.process_time() - start
    return Cost(seconds, peak_bytes())


if __name__ == "__main__":
    print(*_main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

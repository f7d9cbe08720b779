from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import operators as op
from fabric import Program, Report, Stream, simulate

Array = NDArray[Any]


def _random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(scale=shape[-2] ** -0.5, size=shape)


def _load(array: Array, tile: tuple[int, int], shape: Any = None, strides: Any = None) -> Any:
    return op.LinearOffChipLoad(
        op.Tensor(array.shape, array, dtype="float32"), tile, shape, strides
    )


def _verify(name: str, wire: Callable[[], object], depth: int, **expected: Array) -> Report:
    with Program(name, channel_depth=depth, flops_per_cycle=1024) as wired:
        wire()
    outputs: dict[str, Any] = {name: partial(np.asarray, each) for name, each in expected.items()}
    wired.expect(**outputs)
    report = simulate(wired, mode="functional")
    assert ("completed", True) == (report.status, report.verified), report.warnings
    return report


def _silu(x: Array) -> Array:
    result: Array = x / (1 + np.exp(-x))
    return result


M, K, N = 32, 48, 64


@pytest.mark.parametrize(
    ("tile", "on_chip"), [((16, 16, 64), False), ((16, 48, 16), True), ((16, 16, 16), False)]
)
def test_linear_of_any_tiles_equals_numpy(tile: tuple[int, int, int], on_chip: bool) -> None:
    m, k, n = tile
    x, w = _random(M, K), _random(K, N, seed=1)
    rows, inner, cols = M // m, K // k, N // n

    def wire() -> None:
        if on_chip:
            tiles = _load(x, (m, k))()  # [1, rows, inner]
            left = op.Streamify((cols,))(op.Bufferize(1)(tiles))  # [1, rows, cols, inner]
        else:
            left = _load(x, (m, k), (rows, cols, inner), (inner, 0, 1))()
        right = _load(w, (k, n), (rows, cols, inner), (0, 1, cols))()
        op.LinearOffChipStore("y")(op.Accum(op.MatmulSum())(left, right))

    _verify("linear", wire, 1 if not on_chip else 2, y=x @ w)


def test_input_stationary_experts_equal_numpy() -> None:
    choice = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    experts, hidden, inter = 8, 64, 128
    x = _random(2, 4, 1, hidden)
    up, gate = (_random(experts, hidden, inter, seed=seed) for seed in (1, 2))
    down = _random(experts, inter, hidden, seed=3)

    def weights(which: Array, rows: int, cols: int, by_column: bool) -> Stream:
        chosen = op.Selectors(choice[:, :, np.newaxis], experts)()  # [1, 2, 4]
        view = (cols, rows) if by_column else (rows, cols)
        strides = (1, cols) if by_column else (cols, 1)
        loads = [
            _load(which[expert], (32, 32), view, strides)(part)
            for expert, part in enumerate(op.Partition(experts)(chosen, chosen))
        ]
        # [1, 2, 4, hits of 1, *view] to [1, 2, 4, *view]
        return op.Flatten(2, 3)(op.Reassemble(rank=2)(loads, chosen))

    def product(tiles: Stream, which: Array, rows: int, cols: int) -> Stream:
        again = op.Streamify((cols,))(op.Bufferize(1)(tiles))  # [1, 2, 4, cols, rows]
        return op.Accum(op.MatmulSum())(again, weights(which, rows, cols, by_column=True))

    def wire() -> None:
        tiles = _load(x.reshape(8, hidden), (1, 32), (2, 4, 2), (8, 2, 1))()  # [1, 2, 4, 2]
        gated = op.Map(op.SiLU())(product(tiles, gate, 2, 4))
        inner = op.Map(op.Mul())(gated, product(tiles, up, 2, 4))
        op.LinearOffChipStore("y")(product(inner, down, 4, 2))

    rows = x[:, :, 0]
    inner = _silu(np.einsum("bnd,bndf->bnf", rows, gate[choice]))
    inner = inner * np.einsum("bnd,bndf->bnf", rows, up[choice])
    y = np.einsum("bnf,bnfd->bnd", inner, down[choice]).reshape(8, hidden)
    _verify("experts", wire, 64, y=y)


def _schedule(cut: str) -> tuple[int, int, int]:
    return 2 if "m" in cut else 1, 2 if "k" in cut else 1, 4 if "n" in cut else 1


@pytest.mark.parametrize(
    ("gate_cut", "down_cut"), [("m", "k"), ("mk", "n"), ("mn", ""), ("mkn", "kn")]
)
def test_swiglu_of_any_cut_equals_numpy(gate_cut: str, down_cut: str) -> None:
    batch, hidden, inter = 8, 16, 32
    x, gate, up = _random(batch, hidden), _random(hidden, inter), _random(hidden, inter, seed=1)
    down = _random(inter, hidden, seed=2)
    rows, inner, cols = _schedule(gate_cut)
    _, _, outer = _schedule(down_cut)
    parts = cols if "k" in down_cut else 1

    def wire() -> None:
        tile = (batch // rows, hidden // inner)
        left = _load(x, tile, (rows, cols, inner), (inner, 0, 1))

        def product(weight: Array) -> Stream:
            tile = (hidden // inner, inter // cols)
            return op.Accum(op.MatmulSum())(
                left(), _load(weight, tile, (rows, cols, inner), (0, 1, cols))()
            )  # [1, rows, cols]

        joined = op.Map(op.Mul())(op.Map(op.SiLU())(product(gate)), product(up))
        if parts != cols:
            joined = op.Reshape(1)(op.Accum(op.RetileCol())(joined))[0]  # [1, rows, 1]
        again = op.Streamify((outer,))(op.Bufferize(1)(joined))  # [1, rows, outer, parts]
        tile = (inter // parts, hidden // outer)
        weights = _load(down, tile, (rows, outer, parts), (0, 1, outer))()
        op.LinearOffChipStore("y")(op.Accum(op.MatmulSum())(again, weights))

    y = (_silu(x @ gate) * (x @ up)) @ down
    _verify("swiglu", wire, 64, y=y)

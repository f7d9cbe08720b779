"""The SwiGLU layer; ``workloads.md`` 2."""

from __future__ import annotations

from tests.model.compute import elementwise, fold, map1, map2, matmul_sum
from tests.model.graph import Graph, Setting
from tests.model.memory import load, store
from tests.model.shape import reshape


def swiglu(
    setting: Setting, batch: int, hidden: int, inter: int, tile_batch: int, tile_inter: int
) -> Graph:
    g = Graph(setting)
    rows, cols = batch // tile_batch, inter // tile_inter
    x = load(g, (tile_batch, hidden), (rows, cols, 1))
    gate, up = (load(g, (hidden, tile_inter), (rows, cols, 1)) for _ in range(2))
    gated = fold(g, "gate", matmul_sum(g), [x, gate])
    upped = fold(g, "up", matmul_sum(g), [x, up])
    product = map2(g, "mul", elementwise(g, 1), map1(g, "silu", elementwise(g, 8), gated), upped)
    down = load(g, (tile_inter, hidden), (rows, 1, cols))
    written = -(-tile_batch * hidden * setting.element_bytes // setting.on_chip)
    y = fold(g, "down", matmul_sum(g), [reshape(g, 1, product), down], written)
    store(g, y)
    return g

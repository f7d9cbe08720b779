"""Evaluates row-local kernels with numpy: tiles are gathered, computed and put back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric import Layout, Tile
from operators.kernels.concatenate import Concatenate, Concatenated
from operators.kernels.model import Model
from operators.kernels.row_local import RowLocal
from operators.kernels.tensors import Computed, Source, Stored, View


def evaluated(model: Model, view: View) -> np.ndarray:
    arrays: dict[Source, np.ndarray] = {}
    for kernel in model.kernels:
        (result,) = kernel.results
        if isinstance(kernel, Concatenate):
            parts = [_seen(arrays, each.view) for each in kernel.operands]
            assert isinstance(result, Concatenated)
            arrays[result] = np.concatenate(parts, axis=result.dim)
        else:
            assert isinstance(kernel, RowLocal)
            arrays[result] = _row_local(arrays, kernel)
    return _seen(arrays, view)


def _row_local(arrays: dict[Source, np.ndarray], kernel: RowLocal) -> np.ndarray:
    (result,) = kernel.results
    assert isinstance(result, Computed)
    computed = np.zeros(result.shape, result.dtype)
    cut = []
    for operand in kernel.operands:
        assert operand.layout is not None
        pulled = operand.view.pull(operand.layout)
        assert pulled is not None
        array = _array(arrays, operand.view.source).reshape(pulled.layout.shape)
        tiles = [array.reshape(-1)[each] for each in _tiles(pulled.layout)]
        sizes = pulled.layout.rows, pulled.layout.cols
        cut.append([each.reshape(sizes) for each in tiles])
    for place, *tiles in zip(_tiles(result.layout), *cut, strict=True):
        operands = [Tile(len(each), each.shape[1], each.dtype, each) for each in tiles]
        tile = kernel.chain.apply(*operands)
        assert tile.data is not None
        assert (tile.rows, tile.cols) == tile.data.shape == (result.layout.rows, result.layout.cols)
        computed.reshape(-1)[place.reshape(-1)] = tile.data.reshape(-1)
    return computed


def _tiles(layout: Layout) -> list[NDArray[np.int64]]:
    numbers = np.arange(np.prod(layout.shape, dtype=int)).reshape(layout.shape)
    return [
        numbers[tuple(slice(at, at + size) for at, size in zip(first, layout.tile, strict=True))]
        for first in layout.offsets().tolist()
    ]


def _seen(arrays: dict[Source, np.ndarray], view: View) -> np.ndarray:
    array = _array(arrays, view.source)
    for step, _ in view.steps:
        array = step.seen(array)
    return array


def _array(arrays: dict[Source, np.ndarray], source: Source) -> np.ndarray:
    return source.array() if isinstance(source, Stored) else arrays[source]

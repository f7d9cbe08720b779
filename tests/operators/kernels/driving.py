"""Runs single kernels with operands in the requested layouts; numpy checks the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fabric import Layout, Program, Stream
from fabric.extend import dtype_name
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from operators.kernels.kernel import Kernel
from operators.kernels.tensors import Computed, Source
from operators.shape import redimensioned

Array = np.ndarray


def streamed(array: Array, layout: Layout) -> Array:
    tiles = []
    for offset in layout.offsets():
        window = tuple(
            slice(first, first + size) for first, size in zip(offset, layout.tile, strict=True)
        )
        tiles.append(array[window].reshape(layout.rows, layout.cols))
    return np.concatenate(tiles)


def driven(
    kernel: Kernel,
    data: Mapping[Source, Array],
    expected: Callable[[], Array],
    *,
    flops_per_cycle: int | None = None,
) -> Program:
    with Program("kernel", mode="functional", flops_per_cycle=flops_per_cycle) as program:
        streams = kernel.wire(_inputs(kernel, data))
        kernel.configure(program, streams)
        (result,) = streams
        assert isinstance(result, Stream)
        (given,) = kernel.results
        assert isinstance(given, Computed)
        layout = given.layout
        assert result.shape == (1, *layout.trips)
        LinearOffChipStore("output")(redimensioned(result, (1, layout.count, 1)))
    program.expect(output=lambda: streamed(expected(), layout))
    return program


def _inputs(kernel: Kernel, data: Mapping[Source, Array]) -> Sequence[Stream]:
    streams = []
    for operand in kernel.operands:
        view, layout = operand.view, operand.layout
        assert layout is not None
        seen = data[view.source]
        for step, _ in view.steps:
            seen = step.seen(seen)
        tiles = streamed(seen, layout)
        tensor = Tensor(tiles.shape, tiles, dtype=dtype_name(view.dtype))
        load = LinearOffChipLoad(tensor, tile=(layout.rows, layout.cols))()
        streams.append(redimensioned(load, (1, *layout.trips)))
    return streams

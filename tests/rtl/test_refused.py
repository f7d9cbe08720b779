from __future__ import annotations

from collections.abc import Callable

# Any: streams of every kind.
from typing import Any

import numpy as np
import pytest

import operators as op
from fabric import Hardware, Program, ProgramError
from fabric.extend import ChannelDescription
from fabric.graph.wiring.program import hardware_scope
from operators.rtl.hardware import design
from operators.rtl.netlist import Instance

WIRES = Hardware(channel=ChannelDescription(interval_cycles=1))


def designed(build: Callable[[], object]) -> dict[str, Instance]:
    with hardware_scope(WIRES), Program("bound", mode="timing") as built:
        build()
    return {unit.name: unit for unit in design(built).netlist.units}


def loaded(rows: int, cols: int, tile: tuple[int, int], **view: Any) -> Any:
    return op.LinearOffChipLoad(op.Tensor((rows, cols)), tile=tile, **view)()


def rows(count: int = 4) -> Any:
    return loaded(count, 8, (1, 8), shape=(count,), strides=(1,))


def single_row(rank: int) -> Any:
    ones = (1,) * (rank - 1)
    return op.Promote(0)(loaded(1, 8, (1, 8), shape=ones, strides=ones))


def buffers(repeats: int) -> Any:
    return op.Streamify(repeats=(1,) * repeats)(op.Bufferize(2)(loaded(8, 24, (4, 8))))


def ragged_columns() -> Any:
    places = op.RaggedIntegers([[1, 2], [3]])()
    loads = op.RandomOffChipLoad(np.zeros((8, 4)), tile=(2, 4))(places)
    return op.Accum(op.RetileCol())(loads)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: op.Parallelize(2, switch_cycles=2)(op.Flatten(0, 1)(rows())),
            "Parallelize has no hardware module with more than 1 switch cycle",
        ),
        (
            lambda: op.Consumer()(op.Initial((0.0, 0.0))(op.Zip()(rows(), rows()))),
            r"Initial has no hardware module for \(1x8 bfloat16, 1x8 bfloat16\)$",
        ),
        (
            lambda: op.FlatMap(op.SplitTiles(rows=2, cols=2))(ragged_columns()),
            "bfloat16: expected a constant number of columns, above 0",
        ),
        (
            lambda: op.Zip()(op.Metadata(np.array([1, 2, 3, 4]))(), rows()),
            r"zip_1: Zip has no hardware module for \(1x1 uint64, 1x8 bfloat16\): expected tuples "
            "of two tiles, or of two numbers",
        ),
        (
            lambda: loaded(1, 8, (1, 8), shape=(1,) * 7, strides=(1,) * 7),
            "for views of rank 7: expected at most 6",
        ),
        (
            lambda: op.Zip()(rows(), rows(), rows()),
            "1x8 bfloat16, 1x8 bfloat16, 1x8 bfloat16.: expected tuples of two tiles, or of two n",
        ),
        (lambda: op.Initial(0.0)(single_row(7)), "Initial has .* of rank 7: expected at most 6"),
        (lambda: buffers(5), "for readings of rank 7: expected at most 6"),
        (lambda: loaded(2, 0, (1, 1)), "has no hardware module for tensors that are empty"),
    ],
)
def test_operator_beyond_its_module_is_refused(build: Callable[[], Any], message: str) -> None:
    def wired() -> None:
        streams = build()
        for stream in streams if isinstance(streams, tuple) else (streams,):
            if stream is not None:
                op.Consumer()(stream)

    with pytest.raises(ProgramError, match=message):
        designed(wired)


def test_operators_of_the_largest_rank_have_modules() -> None:
    def wired() -> None:
        views = loaded(1, 8, (1, 8), shape=(1,) * 6, strides=(1,) * 6)
        for stream in (views, buffers(4), op.Initial(0.0)(single_row(6))):
            op.Consumer()(stream)

    units = designed(wired)

    for name in ("linear_off_chip_load_1", "streamify_1", "initial_1"):
        assert units[name].parameters["rank"] == 6

"""What each unit of hardware is told: parameters that follow from an operator and its streams."""

from __future__ import annotations

from collections.abc import Callable

# Any: streams of every kind.
from typing import Any

import numpy as np
import pytest

from fabric import Hardware, Program, ProgramError
from fabric.extend import ChannelDescription
from fabric.graph.wiring.program import hardware_scope
from operators import (
    Accum,
    Bufferize,
    Consumer,
    FlatMap,
    Flatten,
    Initial,
    LinearOffChipLoad,
    Metadata,
    Partition,
    RetileCol,
    RetileRow,
    Scatter,
    Selectors,
    SplitTiles,
    Streamify,
    Tensor,
    Zip,
)
from operators.rtl.blocks import BITS, packed
from operators.rtl.hardware import design

WIRES = Hardware(channel=ChannelDescription(interval_cycles=1))


def units_of(build: Callable[[], object]) -> dict[str, tuple[str, dict[str, int]]]:
    """Return module and parameters of each unit by the name of its operator."""
    with hardware_scope(WIRES), Program("bound", mode="timing") as built:
        build()
    return {each.name: (each.module, each.parameters) for each in design(built).netlist.units}


def loaded(rows: int, cols: int, tile: tuple[int, int], **given: Any) -> Any:
    """Return tiles of a tensor of bfloat16."""
    return LinearOffChipLoad(Tensor((rows, cols)), tile=tile, **given)()


def numbers(*given: int) -> Any:
    """Return numbers."""
    return Metadata(np.array(given))()


def steered() -> None:
    """Wire rows to three consumers, the first of them to the last one."""
    first = Initial(2, 1, keep_length=True)(Selectors(np.array([[1], [0], [2]]), width=3)())
    for each in Partition(3)(loaded(3, 8, (1, 8), shape=(3,), strides=(1,)), first):
        Consumer()(each)


BOUND: dict[str, tuple[Callable[[], object], str, tuple[str, dict[str, int]]]] = {
    "tiles in two dimensions": (
        lambda: Consumer()(loaded(4, 24, (2, 8))),
        "linear_off_chip_load_1",
        ("Load_0", {"rank": 2, "rows": 2, "cols": 8, "size_0": 3, "size_1": 2}),
    ),
    "tiles of a tile": (
        lambda: Consumer()(FlatMap(SplitTiles(rows=2, cols=4))(loaded(6, 24, (6, 12)))),
        "split_tiles_1",
        ("FlatMap_SplitTiles", {"rows": 2, "cols": 4, "across": 3}),
    ),
    # 1,200 bytes, 64 a cycle.
    "words": (
        lambda: Consumer()(
            Scatter(3, banks=2, width=2)(
                numbers(2, 0, 1, 2), loaded(4, 600, (1, 600), shape=(4,), strides=(1,))
            )
        ),
        "scatter_1",
        (
            "Scatter_2",
            {
                "rank": 1,
                "words": 3,
                "width": 2,
                "rows": 1,
                "cols": 600,
                "word_cycles": 19,
                "load_cycles": 19,
            },
        ),
    ),
    "a buffer, again and again": (
        lambda: Consumer()(Streamify(repeats=(5,))(Bufferize(2)(loaded(8, 24, (4, 8))))),
        "streamify_1",
        ("Streamify_1", {"rank": 3, "ragged": 1, "size_0": 3, "size_1": 2, "size_2": 5}),
    ),
    "a number in front": (
        lambda: Consumer()(Initial(7, 2)(numbers(2, 0, 1, 2))),
        "initial_1",
        (
            "Initial",
            {"rank": 1, "count": 2, "size_0": 4, "rows": 1, "cols": 1, "control": 7},
        ),
    ),
    "a way in front": (
        steered,
        "initial_1",
        (
            "Initial",
            {"rank": 1, "count": 1, "size_0": 3, "kept": 0, "groups": 1, "control": 0b100},
        ),
    ),
    "fewer dimensions": (
        lambda: Consumer()(Flatten(0, 1)(loaded(4, 4, (2, 2)))),
        "flatten_1",
        ("Flatten", {"inner": 0, "outer": 1}),
    ),
    "rows": (
        lambda: Consumer()(Accum(RetileRow(), rank=1)(loaded(4, 6, (2, 3)))),
        "retile_row_1",
        (
            "Accum_RetileRow",
            {
                "rank": 1,
                "bandwidth": 64,
                "rate": 1,
                "to_memory": 0,
                "store_bytes": 0,
                "rows": 0,
                "cols": 3,
                "bytes_0": 2,
            },
        ),
    ),
    "columns": (
        lambda: Consumer()(Accum(RetileCol(), rank=2)(loaded(4, 6, (2, 3)))),
        "retile_col_1",
        (
            "Accum_RetileCol",
            {
                "rank": 2,
                "bandwidth": 64,
                "rate": 1,
                "to_memory": 0,
                "store_bytes": 0,
                "rows": 2,
                "cols": 0,
                "bytes_0": 2,
            },
        ),
    ),
}


@pytest.mark.parametrize("name", BOUND)
def test_parameters(name: str) -> None:
    """They are sizes, ranks, bytes and cycles of the streams that are wired."""
    build, unit, expected = BOUND[name]

    assert units_of(build)[unit] == expected


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Consumer()(
                Zip()(numbers(1, 2), loaded(2, 4, (1, 4), shape=(2,), strides=(1,)))
            ),
            r"zip_1: Zip has no hardware module for \(1x1 uint64, 1x4 bfloat16\): expected tuples "
            "of two tiles, or of two numbers",
        ),
        (
            lambda: Consumer()(loaded(1, 8, (1, 8), shape=(1,) * 7, strides=(1,) * 7)),
            "for views of rank 7: expected at most 6",
        ),
        (
            lambda: Consumer()(Streamify(repeats=(1,) * 5)(Bufferize(2)(loaded(8, 24, (4, 8))))),
            "for readings of rank 7: expected at most 6",
        ),
    ],
)
def test_refused(build: Callable[[], object], message: str) -> None:
    """Tuples that no token has room for, and more dimensions than a module counts."""
    with pytest.raises(ProgramError, match=message):
        units_of(build)


def test_as_many_dimensions_as_there_are() -> None:
    """Six are counted."""
    found = units_of(lambda: Consumer()(loaded(1, 8, (1, 8), shape=(1,) * 6, strides=(1,) * 6)))
    again = units_of(
        lambda: Consumer()(Streamify(repeats=(1,) * 4)(Bufferize(2)(loaded(8, 24, (4, 8)))))
    )

    assert found["linear_off_chip_load_1"][1]["rank"] == again["streamify_1"][1]["rank"] == 6


def test_bits_of_a_token() -> None:
    """Fields stand one after the other, the lowest first, each as wide as its largest value."""
    fields = [("level", 5), ("bare", 1), ("empty", 5)]
    fields += [(name, 20) for name in ("rows", "cols", "valid_rows", "valid_cols")]
    fields += [("in_memory", 1), ("control", 128)]
    at = 0
    for name, bits in fields:
        most = 2**bits - 1
        assert packed(**{name: most}) == most << at
        for wrong in (-1, most + 1):
            with pytest.raises(ValueError, match=f"^{name} is {wrong}: expected 0 to {most}$"):
                packed(**{name: wrong})
        at += bits

    assert at == BITS
    assert packed() == 0

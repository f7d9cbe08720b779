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
    CacheReadAddresses,
    Consumer,
    EagerMerge,
    Expand,
    ExpertAddresses,
    FilterLastTile,
    FlatMap,
    Flatten,
    Initial,
    Intersect,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Metadata,
    Mul,
    PadRows,
    Parallelize,
    Partition,
    Promote,
    RaggedIntegers,
    RandomOffChipLoad,
    RandomOffChipStore,
    Reassemble,
    Repeat,
    Reshape,
    RetileCol,
    RetileRow,
    Scan,
    Scatter,
    Selectors,
    SplitRows,
    SplitTiles,
    Streamify,
    Sum,
    Tensor,
    Zip,
)
from operators.functions.choosing import OneHot
from operators.functions.matmul import ScaledAdd
from operators.rtl.blocks import BITS, packed
from operators.rtl.hardware import design
from tests.rtl.driving import tokens

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


def rows(count: int = 4) -> Any:
    """Return rows of 8 numbers, [count]."""
    return loaded(count, 8, (1, 8), shape=(count,), strides=(1,))


def ranked(rank: int) -> Any:
    """Return a row in so many dimensions of 1, and one more."""
    return Promote(0)(loaded(1, 8, (1, 8), shape=(1,) * (rank - 1), strides=(1,) * (rank - 1)))


def tiles() -> Any:
    """Return tiles, [2, 3]."""
    return loaded(4, 24, (2, 8))


def ways(*given: int, width: int = 3) -> Any:
    """Return selectors."""
    return Selectors(np.array(given)[:, None], width=width)()


def consumed(*given: Any) -> None:
    """Read streams."""
    for each in given:
        Consumer()(each)


def wire_many() -> None:
    """Wire an operator of each kind."""
    consumed(Zip(name="tuples")(rows(), rows()), Zip(name="pairs")(numbers(1, 2), numbers(3, 4)))
    consumed(*Reshape(chunk=2, dimension=1, name="outer")(tiles()))
    consumed(Reshape(chunk=3, pad=0.0, name="inner")(tiles())[0])
    consumed(ExpertAddresses(5, name="expert")(ways(1, 0, 2)))
    consumed(FilterLastTile(name="last")(numbers(2, 1)))
    consumed(CacheReadAddresses(7, name="cache")(numbers(2, 1), numbers(1, 2)))
    consumed(Promote(0, name="inside")(tiles()), Promote(name="outside")(tiles()))
    consumed(Repeat(5, name="repeat")(rows()))
    consumed(*Parallelize(3, name="deal")(Flatten(0, 1)(rows())))
    parts = Partition(3, switch_cycles=2, name="part")(rows(3), ways(1, 0, 2))
    consumed(Reassemble(switch_cycles=4, name="join")(parts, ways(1, 0, 2)))
    given = ways(1, 2), ways(1, 0, width=2)
    consumed(*Partition(2, switch_cycles=0, name="selectors")(*given))
    consumed(*EagerMerge(name="both")(Parallelize(2)(Flatten(0, 1)(rows()))))
    consumed(EagerMerge(name="chosen")(Parallelize(2)(Flatten(0, 1)(rows())))[1])
    consumed(*Intersect(name="meet")(*(RaggedIntegers([[1, 2], [3]])() for _ in "ab")))
    consumed(
        Map(PadRows(6), name="pad")(tiles()), Map(ScaledAdd(0.5), name="scaled")(rows(), rows())
    )
    product = Matmul(transposed=True)
    consumed(Map(product, name="product", flops_per_cycle=64, to_memory=True)(rows(), rows()))
    consumed(Map(Mul(), name="of_tuple")(Zip()(rows(), rows())))
    consumed(Map(OneHot(3), name="chooses")(numbers(2, 0)))
    consumed(Scan(Sum(), name="scan", flops_per_cycle=9, to_memory=True)(rows()))
    for valid_only in (False, True):
        consumed(FlatMap(SplitRows(valid_only=valid_only), name=f"split{valid_only}")(tiles()))
    stored = RandomOffChipStore("x", Tensor((8, 8)), (1, 8), name="awaited")(
        numbers(0, 1, 2, 3), rows()
    )
    consumed(stored)
    RandomOffChipStore("y", Tensor((8, 8)), (1, 8), name="unread")(numbers(0, 1, 2, 3), rows())
    consumed(RandomOffChipLoad(np.zeros((8, 4)), tile=(2, 4), name="random")(numbers(3, 1)))
    consumed(
        Expand(1, name="expand")(
            Promote(0)(Flatten(0, 1)(rows(2))), Flatten(1, 2)(RaggedIntegers([[1, 2], [3]])())
        )
    )
    LinearOffChipStore("z", name="store")(rows())


MAPPED = {"bandwidth": 64, "rate": 4096, "result_bytes": 2, "to_memory": 0, "stride": 0}
TWO = {"bytes_0": 2, "bytes_1": 2}
MANY: dict[str, tuple[str, dict[str, int]]] = {
    "tuples": ("Zip", {}),
    "pairs": ("Zip_numbers", {}),
    "outer": ("ReshapeOuter_2", {"chunk": 2, "dimension": 1}),
    "inner": ("Reshape_1", {"chunk": 3, "rows": 2, "cols": 8, "outermost": 0}),
    "expert": ("ExpertAddresses", {"tiles": 5}),
    "last": ("FilterLastTile", {}),
    "cache": ("CacheReadAddresses", {"stride": 7}),
    "inside": ("Promote", {"inside": 0, "outermost": 0}),
    "outside": ("Promote", {"inside": 3, "outermost": 1}),
    "repeat": ("Repeat", {"count": 5}),
    "deal": ("Parallelize_3", {"rank": 0}),
    "part": ("Partition_3", {"rank": 0, "switch": 2, "bytes_0": 2, "bandwidth": 64}),
    "join": ("Reassemble_3", {"rank": 0, "switch": 4, "bytes_0": 2, "bandwidth": 64}),
    "selectors": ("Partition_2", {"rank": 0, "switch": 0, "bytes_0": 0, "bandwidth": 64}),
    "both": ("EagerMerge_2_ds", {"rank": 0}),
    "chosen": ("EagerMerge_2_s", {"rank": 0}),
    "meet": ("Intersect_012_11", {}),
    "pad": ("Map_PadRows_6", MAPPED | {"rate": 1, "bytes_0": 2}),
    "scaled": ("Map_ScaledAdd2", MAPPED | TWO),
    "product": ("Map_MatmulT", MAPPED | TWO | {"rate": 64, "to_memory": 1}),
    "of_tuple": ("Map_Binary_2", MAPPED | TWO),
    "chooses": ("Map_OneHot", MAPPED | {"rate": 1, "result_bytes": 0, "bytes_0": 8}),
    "scan": (
        "Scan_Sum",
        {
            "rank": 1,
            "bandwidth": 64,
            "rate": 9,
            "to_memory": 1,
            "store_bytes": 16,
            "rows": 1,
            "cols": 8,
            "bytes_0": 2,
        },
    ),
    "splitFalse": ("FlatMap_SplitRows", {"valid_only": 0}),
    "splitTrue": ("FlatMap_SplitRows", {"valid_only": 1}),
    "awaited": ("Store_1", {}),
    "unread": ("Store_0", {}),
    "random": ("Load_1", {"rank": 0, "rows": 2, "cols": 4}),
    "expand": ("Expand", {"rank": 1}),
    "store": ("Store", {}),
}


def test_many() -> None:
    """Modules and parameters of an operator of each kind, in one program."""
    found = units_of(wire_many)

    assert {name: found[name] for name in MANY} == MANY


def sent(text: str) -> list[int]:
    """Return the bits of tokens."""
    return [packed(**each) for each in tokens(text)]


def test_what_sources_send() -> None:
    """Stops, bare ones too, and numbers or ways as bits; and what steers is told."""

    def wire() -> None:
        consumed(Metadata(np.array([[4, 5, 6], [7, 8, 9]]), name="numbers")())
        consumed(Selectors(np.array([[0, 2], [2, 1]]), width=3, name="ways")())
        consumed(RaggedIntegers([[], [3, 4], []], name="lists")())
        consumed(Map(OneHot(4), name="chosen")(numbers(2, 0, 3)))
        consumed(LinearOffChipLoad(Tensor((4, 8)), tile=(2, 8), name="loads")())

    with hardware_scope(WIRES), Program("sources", mode="timing") as built:
        wire()
    units = {each.name: each for each in design(built).netlist.units}
    assert units["numbers"].given == sent("4 5 6. 7 8 9..")
    assert units["ways"].given == sent("#5 #6.")
    assert units["lists"].given == sent("-0. 3 4. -0..")
    assert units["chosen"].given == sent("#4 #1 #8")
    latencies = units["loads"].latencies_cycles
    assert latencies is not None
    assert len(latencies) == 2
    assert units["numbers"].latencies_cycles is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: consumed(ways(128, width=129)),
            "selectors_1: Selectors has no hardware module that steers 129: expected at most 128 w",
        ),
        (
            lambda: consumed(*Parallelize(2, switch_cycles=2)(Flatten(0, 1)(rows()))),
            "Parallelize has no hardware module where it switches in more than 1 cycle",
        ),
        (
            lambda: consumed(Initial((0.0, 0.0))(Zip()(rows(), rows()))),
            r"Initial has no hardware module for \(1x8 bfloat16, 1x8 bfloat16\)$",
        ),
        (
            lambda: consumed(
                FlatMap(SplitTiles(rows=2, cols=2))(
                    Accum(RetileCol())(
                        RandomOffChipLoad(np.zeros((8, 4)), tile=(2, 4))(
                            RaggedIntegers([[1, 2], [3]])()
                        )
                    )
                )
            ),
            "bfloat16: expected a number of columns that is known, above 0",
        ),
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
            lambda: consumed(Zip()(rows(), rows(), rows())),
            "1x8 bfloat16, 1x8 bfloat16, 1x8 bfloat16.: expected tuples of two tiles, or of two n",
        ),
        (
            lambda: consumed(Initial(0.0)(ranked(7))),
            "Initial has no hardware module of rank 7: expected at most 6",
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
    assert units_of(lambda: consumed(Initial(0.0)(ranked(6))))["initial_1"][1]["rank"] == 6


def test_as_many_ways_as_there_are() -> None:
    """A selector has 128 bits."""
    assert units_of(lambda: consumed(ways(127, width=128)))["selectors_1"][0] == "Source"


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

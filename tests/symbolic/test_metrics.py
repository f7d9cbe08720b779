"""Metrics by hand: both accountings, FIFOs, ragged sizes, elements of several streams."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fabric import Program, ProgramError, Stream
from fabric.analysis.symbolic.check import check
from fabric.analysis.symbolic.metrics import intensity, largest, metrics_of
from fabric.analysis.symbolic.substitution import Substitution, chosen_sizes
from fabric.graph.values.dims import dim_text, symbol
from fabric.graph.wiring.elaborate import elaborate
from operators import (
    Accum,
    Bufferize,
    Consumer,
    EagerMerge,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Matmul,
    Parallelize,
    Partition,
    Promote,
    Reassemble,
    RetileRow,
    Selectors,
    SiLU,
    Streamify,
)
from tests.symbolic.programs import data_metrics, symbolic_metrics
from tests.symbolic.small_operators import HitList


def ones(rows: int, cols: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """A tensor."""
    return np.ones((rows, cols), np.float32)


def split(choice: list[list[int]]) -> tuple[Stream, Stream]:
    """Rows of 1x32, routed to two."""
    rows = Flatten(0, 1)(LinearOffChipLoad(ones(len(choice), 32), (1, 32))())
    left, right = Partition(2)(rows, Selectors(np.array(choice), 2, name="route")())
    return left, right


class TestByHand:
    def test_static(self) -> None:
        """X @ w of 4 tiles 16x32 by 32x16: every figure from the equations."""
        with Program("p", channel_depth=3, flops_per_cycle=1000) as program:
            x = LinearOffChipLoad(ones(16, 32), (16, 32), shape=(4, 1), strides=(0, 1))()
            w = LinearOffChipLoad(ones(32, 64), (32, 16), shape=(4, 1), strides=(1, 1))()
            LinearOffChipStore("y")(Map(Matmul())(x, w))
        metrics = data_metrics(program)
        tile_x, tile_w, tile_y = 16 * 32 * 2, 32 * 16 * 2, 16 * 16 * 2

        assert 4 * (tile_x + tile_w) == metrics.paper.load_bytes
        assert 4 * tile_y == metrics.paper.store_bytes
        assert 4 * 2 * tile_y == metrics.artifact.store_bytes
        matmul = 16 * 32 + tile_w
        assert 2 * (tile_x + tile_w + tile_y) + matmul == metrics.paper.on_chip_bytes
        assert tile_x + tile_w + 2 * tile_y == metrics.artifact.on_chip_bytes
        assert 3 * (tile_x + tile_w + tile_y) == metrics.paper.fifo_bytes
        # Of the map: both operands and the result, at 4 bytes an element.
        assert 2 * (tile_x + tile_w + tile_y) == metrics.artifact.fifo_bytes
        assert 4 * 2 * 16 * 32 * 16 == metrics.flops
        # 16,384 FLOPs an element at 1,000 a cycle are 17 cycles, four times.
        assert 4 * 17 == max(metrics.compute_cycles)
        assert -(-(4 * (tile_x + tile_w + tile_y)) // 1024) == metrics.paper.memory_cycles
        assert 1000 == metrics.allocated_flops_per_cycle

    def test_deeper_channels(self) -> None:
        """A channel with a depth of its own counts at that; the data have the same sums."""
        with Program("p", channel_depth=3, flops_per_cycle=1000) as program:
            x = LinearOffChipLoad(ones(16, 32), (16, 32), shape=(4, 1), strides=(0, 1))()
            w = LinearOffChipLoad(ones(32, 64), (32, 16), shape=(4, 1), strides=(1, 1))()
            LinearOffChipStore("y")(Map(Matmul(), name="product")(x, w))
        program.deepen("product.1", 7)
        metrics = data_metrics(program)
        tile_x, tile_w, tile_y = 16 * 32 * 2, 32 * 16 * 2, 16 * 16 * 2
        load_bytes, store_bytes = 4 * (tile_x + tile_w), 4 * tile_y
        on_chip = 2 * (tile_x + tile_w + tile_y) + 16 * 32 + tile_w
        flops = 4 * 2 * 16 * 32 * 16

        assert {
            "off_chip_traffic_bytes": load_bytes + store_bytes,
            "off_chip_load_bytes": load_bytes,
            "off_chip_store_bytes": store_bytes,
            "on_chip_requirement_bytes": on_chip,
            "on_chip_requirement_with_fifos_bytes": on_chip + 3 * (tile_x + tile_y) + 7 * tile_w,
            "flops": flops,
            "operational_intensity_flops_per_byte": flops / (load_bytes + store_bytes),
            "roofline_compute_cycles": 4 * 17,
            "roofline_memory_cycles": -(-(load_bytes + store_bytes) // 1024),
            "allocated_flops_per_cycle": 1000,
        } == metrics.as_json("paper")
        assert [0, 0, 4 * 17, 0] == [each.compute_cycles for each in metrics.operators]
        needs = [each.costs.on_chip_bytes for each in metrics.operators]
        assert metrics.on_chip_bytes == tuple(needs)
        assert sum(metrics.on_chip_bytes) == on_chip

    def test_intensity(self) -> None:
        """Operations a byte: none without bytes, and text where a symbol is in either."""
        size = symbol("n")

        assert (1.5, None) == (intensity(3, 2), intensity(3, 0))
        assert ("(n)/(2)", "(3)/(n)") == (intensity(size, 2), intensity(3, size))

    def test_dynamic_tile(self) -> None:
        """The rows of a tile that holds a whole group are the group's size."""
        with Program("p") as program:
            for number, stream in enumerate(split([[0], [1], [0]])):
                grouped = Accum(RetileRow())(HitGroup()(stream))
                LinearOffChipStore(f"y{number}")(Map(SiLU())(grouped))
        metrics = symbolic_metrics(program)

        assert () == metrics.on_chip_bytes
        assert "64*D_route[0] + 64*D_route[1]" == dim_text(metrics.paper.store_bytes)
        assert "256*D_route[0] + 256*D_route[1]" == dim_text(metrics.flops)

    def test_elements_of_several_streams(self) -> None:
        """Traffic counts the mean tile of a merged stream, the requirement the largest one."""
        with Program("p") as program:
            tiles = [Accum(RetileRow())(HitGroup()(stream)) for stream in split([[0], [1], [0]])]
            LinearOffChipStore("y")(EagerMerge()(tiles)[0])
        plan = elaborate(program)
        given = {"D_route[0]": 2, "D_route[1]": 5}
        metrics = metrics_of(plan, Substitution(chosen_sizes(plan, given, data=False)))
        (store,) = [each for each in metrics.operators if "store" in each.node.name]

        assert (2 + 5) * 64 == metrics.paper.store_bytes
        assert 2 * 5 * 64 == store.costs.on_chip_bytes

    def test_fifos_of_buffers(self) -> None:
        """A slot for a buffer counts as all of its tiles, of 4 bytes an element for the authors."""
        with Program("p") as program:
            buffers = Bufferize(2)(LinearOffChipLoad(ones(6, 32), (1, 32))())
            LinearOffChipStore("y")(Streamify()(Promote()(buffers)))
        (promote,) = [
            each for each in data_metrics(program).operators if "promote" in each.node.name
        ]

        assert "[1] of buffer [6, 1] of 1x32 bfloat16" == str(buffers.type)
        assert 2 * 6 * 32 * 4 == promote.costs.artifact_fifo_bytes

    def test_fifos_of_parallelize(self) -> None:
        """One on its input and one for each consumer, of 4 bytes an element for the authors."""
        with Program("p") as program:
            for stream in Parallelize(3, rank=2)(LinearOffChipLoad(ones(6, 32), (1, 32))()):
                Consumer()(stream)
        (shared,) = [
            each for each in data_metrics(program).operators if "parallelize" in each.node.name
        ]

        assert (1 + 3) * 32 * 4 == shared.costs.artifact_fifo_bytes

    def test_free_symbols(self) -> None:
        """Those of the bytes and those of the FLOPs, in the order of the program."""
        with Program("p") as program:
            stored, computed = split([[0], [1], [0]])
            LinearOffChipStore("y")(Promote(0)(stored))
            Consumer()(Map(SiLU())(computed))

        for given, free in (
            ({}, ("D_route[0]", "D_route[1]")),
            ({"D_route[0]": 2}, ("D_route[1]",)),
            ({"D_route[1]": 1}, ("D_route[0]",)),
        ):
            assert free == check(program, given, data=False).free_symbols

    def test_largest(self) -> None:
        """The largest number, as text where symbols are beside it; of nothing 0."""
        assert 0 == largest(())
        assert 7 == largest((3, 7, 5))
        assert "max(0, m, n)" == largest((symbol("n"), symbol("m")))
        assert "max(7, n)" == largest((7, symbol("n"), 3))

    def test_ragged_dimensions_absorb(self) -> None:
        """Flattening a ragged dimension makes a new one, whose size follows."""
        with Program("p") as program:
            chosen = HitList(((0, 1), (0,)))()
            rows = Flatten(0, 1)(LinearOffChipLoad(ones(2, 32), (1, 32))())
            y = Reassemble()(Partition(2)(rows, chosen), chosen)
            flat = Flatten(0, 1)(y)
            LinearOffChipStore("y")(flat)
        plan = elaborate(program)

        assert "[1, 2, D_reassemble_1~] of 1x32 bfloat16" == str(y.type)
        assert "[1, D_flatten_2~] of 1x32 bfloat16" == str(flat.type)
        sizes = chosen_sizes(plan, {"D_reassemble_1~": 3}, data=False)
        assert {"D_reassemble_1~": 3, "D_flatten_2~": 6} == {
            symbol.name: size for symbol, size in sizes.items()
        }


class HitGroup:
    """Put a stream [D] into one group: [1, D]."""

    def __call__(self, source: Stream) -> Stream:
        """Return the group."""
        return Promote()(source)


class TestBind:
    def refused(self, index: int, size: int) -> str:
        """The message for binding the size of a dimension of [D, 1]."""
        with Program("p") as program:
            left, _ = split([[0]])
        dim = (left.shape[0], 3, left.shape[0] + 1)[index]
        with pytest.raises(ProgramError) as refused:
            program.bind(dim, size)
        return refused.value.message

    def test_negative(self) -> None:
        """Sizes are not negative."""
        assert "bind gives D_route[0] the size -1: expected a size of at least 0" == self.refused(
            0, -1
        )

    def test_number(self) -> None:
        """A number has its own size."""
        assert "bind gives 3 the size 4: expected 3, which it has already" == self.refused(1, 4)

    def test_expression(self) -> None:
        """Only symbols can be bound, and sums of what streams have."""
        assert (
            "bind gives D_route[0] + 1 the size 4: expected a symbol, or a sum of streams' counts"
        ) == self.refused(2, 4)

    def test_each_kind(self) -> None:
        """Sizes of symbols, means of ragged ones, and totals are kept apart; each has one."""
        with Program("p") as program:
            left, right = split([[0]])
        ragged = program.symbol("n", ragged=True)
        one, other = left.shape[0], right.shape[0]
        for dim, size in (
            (one, 0), (one, 0), (other, Fraction(4)), (ragged, Fraction(3, 2)), (one + other, 4),
        ):  # fmt: skip
            program.bind(dim, size)
        assert program.sizes == {one: 0, other: 4, ragged: Fraction(3, 2)}
        assert program.totals == {one + other: 4}
        for dim, size, told in (
            (one, 1, "0, which it has already"),
            (one + other, 5, "4, which it has already"),
            (one + ragged, Fraction(5, 2), "a whole number of elements"),
            (one * other, Fraction(5), "a whole number of elements"),
            (other, Fraction(5, 2), "an integer: only sizes of many groups have a mean"),
            (symbol("D"), 1, "a symbol of program 'p'"),
        ):
            with pytest.raises(ProgramError) as refused:
                program.bind(dim, size)
            assert refused.value.message.endswith(f": expected {told}")

"""Routed rows while a model is planned: the choice, what is known of it, and where forms meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fabric import Layout, Program, ProgramError, simulate
from operators.accum import Accum
from operators.expand import Repeat
from operators.flat_map import FlatMap
from operators.functions.steps import Chain, Number, Pointwise
from operators.kernels.grouped import GroupedProduct, RaggedMap, common_form
from operators.kernels.kernel import Operand
from operators.kernels.model import Model, wire
from operators.kernels.off_chip import Store
from operators.kernels.routed import (
    Collect,
    Deal,
    KnownRows,
    Pack,
    Packing,
    Routed,
    Routing,
    Spread,
    drawn,
)
from operators.kernels.tensors import Computed, Opaque, Stored, View
from operators.map import Map
from operators.off_chip_load import RandomOffChipLoad
from operators.partition import Partition
from operators.reassemble import EagerMerge
from operators.tiles.tensor import Tensor


def routing(choice: Any, experts: int = 3) -> Routing:
    """Return the routing of two tokens to two experts each."""
    found = Routing(0, 2, 2, lambda _: np.array(choice), "the choice")
    found.experts = experts
    return found


def test_choice() -> None:
    """The experts of each token, asked for once, and the tokens of each expert."""
    asked: list[int] = []

    def choice(experts: int) -> Any:
        asked.append(experts)
        return np.array([[0, 2], [3, 2]], np.uint8)

    found = Routing(0, 2, 2, choice, "the choice")
    found.experts = 5
    assert [1, 0, 2, 1, 0] == found.counts()
    assert [[0, 2], [3, 2]] == found.choice().tolist()
    assert [5] == asked
    assert np.int64 == found.choice().dtype


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ([[0, 1]], "is an array [1, 2] of int64: expected integers [2, 2], the experts of each"),
        ([[0.0, 1.0]] * 2, "is an array [2, 2] of float64: expected integers [2, 2], the experts"),
        ([[0, 1], [1, 3]], "names experts 0 to 3: expected 0 to 2"),
        ([[-1, 1], [1, 2]], "names experts -1 to 2: expected 0 to 2"),
        ([[0, 1], [2, 2]], "names expert 2 twice for token 1: expected different experts"),
    ],
)
def test_what_is_no_choice(choice: Any, message: str) -> None:
    """Another array, experts that are not there, and one twice."""
    with pytest.raises(ProgramError) as caught:
        routing(choice).choice()
    assert caught.value.message.startswith(f"the choice {message}")


def test_a_choice_at_random() -> None:
    """Different experts for each token, the same ones every time, others in another layer."""
    found = drawn(1, 40, 3)(5)
    assert (40, 3) == found.shape
    assert all(len(set(row)) == 3 for row in found.tolist())
    assert set(range(5)) == set(found.reshape(-1).tolist())
    assert found.tolist() == drawn(1, 40, 3)(5).tolist() != drawn(2, 40, 3)(5).tolist()


@pytest.mark.parametrize(
    ("experts", "order", "where", "count", "places"),
    [
        # Rows 0 and 1 go to expert 0, rows 1 and 0 to expert 2 in ascending order.
        ([0, 0, 2, 2], [0, 1, 2, 3], [0, 1, 0, 1], 2, [[0, 2], [0, 2]]),
        ([0, 1, 1, 2], [0, 2, 1, 3], [1, 1, 0, 0], 2, [[1, 2], [0, 1]]),
        ([0, 0], [0, 1], [0, 1], 2, [[0], [0]]),
        # In another order, to different numbers of experts, and more than goes around.
        ([0, 0, 2, 2], [0, 1, 2, 3], [0, 1, 1, 0], 2, None),
        ([0, 0], [0, 1], [0, 0], 1, None),
        ([0, 1, 1, 2], [0, 1, 2, 3], [0, 0, 1, 0], 2, None),
        ([0, 1, 2], [0, 1, 2], [0, 1, 0], 2, None),
    ],
)
def test_known_rows(
    experts: list[int], order: list[int], where: list[int], count: int, places: Any
) -> None:
    """The experts that each row goes to, where all go to as many and come in order."""
    found = KnownRows(np.array(experts), np.array(order)).places(np.array(where), count)
    assert places == (None if found is None else found.tolist())


def test_where_forms_meet() -> None:
    """In tiles where all were packed together, whole where one is or has to be; else in rows."""
    route, packing, other = routing([[0, 1]] * 2), Packing(1), Packing(1)
    rows = Routed(route, Spread.ROWS)
    packed, tiled = (Routed(route, each, packing) for each in (Spread.PACKED, Spread.TILED))
    elsewhere = Routed(route, Spread.PACKED, other)
    for forms, any_, whole in (
        ([rows, rows], rows, rows),
        ([packed, packed], packed, packed),
        ([tiled, tiled], tiled, packed),
        ([tiled, packed], packed, packed),
        ([packed, tiled], packed, packed),
        ([packed, rows], rows, rows),
        ([packed, elsewhere], rows, rows),
        ([tiled], tiled, packed),
    ):
        assert any_ == common_form(forms, whole_rows=False)
        assert whole == common_form(forms, whole_rows=True)
    assert "rows of tokens at their experts" == str(tiled)


TOKENS, EXPERTS = 5, 4
CHOICE = np.array([[0, 2], [2, 3], [2, 0], [3, 2], [2, 3]])
"""Two tokens go to the first expert, none to the second one, all five to the third, three on."""


def numbers(*shape: int) -> np.ndarray:
    """Return small integers, so that sums are the same in any order."""
    return np.random.default_rng(shape).integers(-3, 4, shape).astype(np.float32)


def mixed(regions: int, tile_rows: int | None, *, whole: bool) -> Program:
    """Rows of 4 numbers times 4 x 6 in three tiles, larger than 0, and times 6 x 8 then.

    Args:
        regions: that share the experts.
        tile_rows: of a tile; None for all rows of an expert.
        whole: what is between is computed of whole rows, and so is the product behind it; rows
            come one by one.
    """
    dtype = np.dtype(np.float32)
    x, first, second = numbers(TOKENS, 4), numbers(EXPERTS, 4, 6), numbers(EXPERTS, 6, 8)
    route = Routing(0, TOKENS, 2, lambda _: CHOICE, "the choice")
    route.experts = EXPERTS
    packing = Packing(regions)
    packed = Routed(route, Spread.PACKED, packing)
    tiled = Routed(route, Spread.TILED, packing, 2)

    def rows(name: str, cols: int, form: Routed) -> Opaque:
        return Opaque(name, (2 * TOKENS, cols), dtype, form)

    def read(source: Opaque) -> Operand:
        return Operand(View.of(source), None)

    def parts(weights: np.ndarray) -> list[Tensor]:
        return [Tensor(each.shape, each, dtype="float32") for each in np.split(weights, regions)]

    stored = View.of(Stored.of("x", x.shape, dtype, lambda: x))
    dealt = rows("rows", 4, Routed(route, Spread.ROWS))
    deal = Deal(
        "deal",
        route,
        Operand(stored, Layout.tiled(x.shape, (1 if whole else 5, 4))),
        lambda: CHOICE,
        None,
        dealt,
    )
    pack = Pack("pack", read(dealt), tile_rows, rows("packed", 4, packed))
    wide = rows("wide", 6, tiled)
    up = GroupedProduct("up", read(rows_of(pack)), [parts(first)], 2, [wide])
    between = rows("positive", 6, packed if whole else tiled)
    chain = Chain(1, (Pointwise((0, Number(0)), dtype, "maximum"),))
    positive = RaggedMap("positive", chain, [read(wide)], between)
    narrow = rows("narrow", 8, tiled if whole else packed)
    down = GroupedProduct("down", read(between), [parts(second)], 2, [narrow])
    shape = TOKENS, 8
    result = Computed("y", shape, dtype, Layout.tiled(shape, (1, 8)))
    collect = Collect("collect", route, read(narrow), lambda: CHOICE, None, result, adds_up=True)
    store = Store("y", Operand(View.of(result), result.layout), shape)
    with Program("mixed", mode="functional") as program:
        wire(program, Model([deal, pack, up, positive, down, collect, store]))
    each = np.maximum(np.einsum("tk,thkn->thn", x, first[CHOICE]), 0)
    expected = np.einsum("thk,thkn->tn", each, second[CHOICE])
    program.expect(y=lambda: expected)
    return program


def rows_of(kernel: Pack) -> Opaque:
    """Return what a kernel gives."""
    (result,) = kernel.results
    assert isinstance(result, Opaque)
    return result


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("regions", "tile_rows"), [(4, None), (4, 2), (2, 1), (2, 2), (1, None), (1, 2), (1, 4)]
)
def test_what_is_read_and_wired(regions: int, tile_rows: int | None, whole: bool) -> None:
    """Weights pass once for each tile of rows; regions that have one expert merge nothing."""
    program = mixed(regions, tile_rows, whole=whole)
    report = simulate(program)

    assert report.verified, report.verification
    assert simulate(program, mode="timing").cycles == report.cycles
    tiles = sum(-(-rows // (tile_rows or rows)) for rows in (2, 5, 3))
    weights = 4 * (4 * 6 + 6 * 8)
    assert report.off_chip_traffic_bytes == tiles * weights + 4 * TOKENS * (4 + 8)
    # Padding is multiplied, too; each of the ten results is added to the sum of its token.
    rows = tiles * tile_rows if tile_rows else 2 * TOKENS
    assert report.flops == rows * (2 * 4 * 6 + 6 + 2 * 6 * 8) + 2 * TOKENS * 8
    kinds = EagerMerge, Partition, FlatMap, Repeat, Accum, Map, RandomOffChipLoad
    operators = [node.operator for node in program.nodes]
    shared = regions if regions < EXPERTS else 0
    assert [sum(isinstance(each, kind) for each in operators) for kind in kinds] == [
        shared,
        1 + shared,
        (not whole) + EXPERTS,
        (1 + whole) * regions,
        EXPERTS + (1 + whole) * regions + 1,
        (2 + whole) * regions,
        2 * shared,
    ]
    assert [TOKENS] * EXPERTS == [program.depth_of(f"collect.{each}") for each in range(EXPERTS)]


def test_a_choice_is_drawn_by_the_layer() -> None:
    """The order of as many random numbers as there are experts, of each token."""
    for layer in (0, 3):
        order = np.random.default_rng([0, layer]).random((6, 5)).argsort(axis=1)
        assert order[:, :2].tolist() == drawn(layer, 6, 2)(5).tolist()

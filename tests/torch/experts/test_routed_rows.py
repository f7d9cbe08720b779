"""Rows that go to experts: how they are read, what may stand beside them, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fabric import Layout
from operators.functions.steps import Pointwise
from operators.kernels.grouped import RaggedMap
from operators.kernels.model import Model
from operators.kernels.routed import Deal, KnownRows, Packing, Routed, Routing, Spread
from operators.kernels.tensors import Computed, Opaque, Stored, View
from operators.torch.call import Call, UnsupportedError
from operators.torch.routed_rows import (
    Collected,
    Control,
    Gathered,
    NoElements,
    Pairs,
    Says,
    deal,
    on_routed_rows,
    rows_operand,
    to_experts,
)

FLOAT = np.dtype(np.float32)
EXPERTS = np.array([0, 0, 1, 2, 2, 2])
KNOWN = KnownRows(EXPERTS, np.arange(6))


def routing_of(rows: KnownRows | None = None, tokens: int = 3, hits: int = 2) -> Routing:
    return Routing(0, tokens, hits, lambda _: np.zeros((tokens, hits), int), "routing[0]", rows)


def stored(*shape: int) -> View:
    return View.of(Stored.of("x", shape, FLOAT, lambda: np.zeros(shape, np.float32)))


def computed(shape: tuple[int, ...], tile: tuple[int, ...], order: tuple[int, ...] = ()) -> View:
    layout = Layout.tiled(shape, tile, order) if order else Layout.tiled(shape, tile)
    return View.of(Computed("y", shape, FLOAT, layout))


def opaque(form: object, *shape: int) -> View:
    return View.of(Opaque("o", shape, FLOAT, form))


A_CALL = Call("aten.index.Tensor", "it", (), {}, (), False, "", None, None)


def test_forms_in_words() -> None:
    x = stored(6, 4)
    assert [
        str(each)
        for each in (
            Control(routing_of(), x, Says.COUNTS),
            Control(routing_of(), x, Says.ORDER),
            Pairs(x),
            Gathered(x, np.arange(6), A_CALL),
            NoElements(),
            Collected(x, lambda: EXPERTS, None),
        )
    ] == [
        "integers that data decide (how many tokens each expert gets)",
        "integers that data decide (the order that sorts the experts of all tokens)",
        "complex numbers",
        "rows in another order",
        "a tensor without elements",
        "rows of tokens, one for each expert of a token",
    ]


@pytest.mark.parametrize(
    ("view", "cols", "tile", "as_it_is"),
    [
        (computed((6, 4), (2, 4)), 4, (2, 4), True),
        (computed((6, 4), (6, 4)), 2, (6, 4), True),
        (computed((6, 4), (2, 2)), 4, (1, 4), False),
        (computed((6, 4), (2, 2)), 2, (1, 4), False),
        (computed((2, 3, 4), (1, 1, 4), (1, 0, 2)).reshaped((6, 4)), 4, (1, 4), False),
        (stored(6, 4), 4, (1, 4), False),
        (stored(6, 4), 2, (1, 2), False),
    ],
)
def test_how_rows_are_read(view: View, cols: int, tile: tuple[int, ...], as_it_is: bool) -> None:
    found = rows_operand(view, cols)
    assert found.view is view
    assert found.layout is not None
    assert found.layout.tile == tile
    assert found.layout.same_order(Layout.tiled((6, 4), tile))
    assert (found.layout == view.layout) == as_it_is


@pytest.mark.parametrize(
    ("shape", "read", "cols"),
    [
        ((3, 4), (3, 4), 4),
        ((3, 2, 5), (3, 10), 10),
        ((6, 1), (3, 2), 1),  # one number for each expert of a token
        ((6, 4), (6, 4), 4),
        ((3, 1), (3, 1), 1),
    ],
)
def test_rows_are_dealt(shape: tuple[int, ...], read: tuple[int, int], cols: int) -> None:
    for indices in (None, stored(3, 2)):
        model, routing = Model(), routing_of()
        view = deal(model, "d", stored(*shape), routing, lambda: EXPERTS, indices)
        (kernel,) = model.kernels
        assert isinstance(kernel, Deal)
        assert isinstance(view.source, Opaque)
        assert (view.source.name, view.shape, view.dtype) == ("d", (6, cols), FLOAT)
        assert view.source.form == Routed(routing, Spread.ROWS)
        rows = kernel.operands[0]
        assert rows.view.shape == read
        assert rows.layout is not None
        assert rows.layout.tile == (1, cols)
        assert len(kernel.operands) == 1 + (indices is not None)
        if indices is not None:
            layout = kernel.operands[1].layout
            assert layout is not None
            assert layout.tile == (1, 2)


def test_what_stands_beside_routed_rows() -> None:
    model, routing = Model(), routing_of(KNOWN)
    there = opaque(Routed(routing, Spread.ROWS), 6, 4)
    assert to_experts(model, there, routing) is there
    assert not model.kernels
    for view in (
        stored(6, 4),
        opaque(Gathered(stored(3, 4), np.array([0, 1, 0, 1, 2, 2]), A_CALL), 6, 4),
    ):
        if view.source.name == "o":
            routing = routing_of(KnownRows(np.array([0, 0, 1, 1, 1, 2]), np.arange(6)))
        found = to_experts(model, view, routing)
        assert isinstance(found.source, Opaque)
        assert found.source.form == Routed(routing, Spread.ROWS)
        assert found.shape == (6, 4)
        assert found.source.name == f"{view.source.name}_route"


BESIDE: dict[str, tuple[Any, Any, str]] = {
    "another choice": (
        KNOWN,
        opaque(Routed(routing_of(KNOWN), Spread.ROWS), 6, 4),
        "rows of two choices of experts: expected one",
    ),
    "data choose": (
        None,
        stored(6, 4),
        "rows of experts and other rows: expected rows of the same",
    ),
    "data choose, and an order is known": (
        None,
        opaque(Gathered(stored(6, 4), np.arange(6), A_CALL), 6, 4),
        "rows of experts and rows in another order: expected rows of the same",
    ),
    "another form": (
        KNOWN,
        opaque(Pairs(stored(6, 4, 2)), 6, 4),
        "rows of experts and complex numbers: expected rows of the same",
    ),
    "too many rows": (
        KNOWN,
        stored(7, 4),
        r"rows of experts and a tensor \[7, 4\]: expected as many rows as experts have, 6",
    ),
    "another order": (
        KNOWN,
        opaque(Gathered(stored(6, 4), np.array([1, 0, 2, 3, 4, 5]), A_CALL), 6, 4),
        "rows of experts in two orders: expected one",
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_cannot_stand_beside_routed_rows(name: str) -> None:
    rows, view, said = BESIDE[name]
    with pytest.raises(UnsupportedError, match=f"^it is given {said}$"):
        to_experts(Model(), view, routing_of(rows))


@pytest.mark.parametrize(
    ("cols", "is_whole", "spread"),
    [(4, False, Spread.TILED), (4, True, Spread.PACKED), (1, False, Spread.PACKED)],
)
def test_steps_on_routed_rows(cols: int, is_whole: bool, spread: Spread) -> None:
    model, routing, packing = Model(), routing_of(KNOWN), Packing(2)
    step = Pointwise((0, 1), np.dtype(np.float16), "add")
    form = Routed(routing, Spread.TILED, packing, 2)
    given = [opaque(form, 6, 4), opaque(form, 6, cols)]
    found = on_routed_rows(model, "it", given, (step,), whole=is_whole)
    (kernel,) = model.kernels
    assert isinstance(kernel, RaggedMap)
    assert isinstance(found.source, Opaque)
    assert (found.source.name, found.shape, found.dtype.name) == ("it", (6, 4), "float16")
    assert isinstance(found.source.form, Routed)
    assert found.source.form.spread is spread
    assert [each.view for each in kernel.operands] == given
    assert all(each.layout is None for each in kernel.operands)

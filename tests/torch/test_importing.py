"""The model while calls are imported: what is planned for each, and who imports which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import pytest
import torch

from fabric import Layout, ShapeError
from operators.functions.ordering import Taken
from operators.functions.steps import Pointwise
from operators.kernels.concatenate import Concatenate
from operators.kernels.kernel import Operand
from operators.kernels.product import Product
from operators.kernels.recurrence import Entrance, Recurrence
from operators.kernels.row_local import RowLocal, row_local
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Opaque, Stored, View
from operators.torch import registry
from operators.torch.call import Call, Spec, UnsupportedError
from operators.torch.importing import Importing
from operators.torch.loops.around import rows_in_loops
from operators.torch.planning import imported
from operators.torch.registry import (
    Unsupported,
    importer_of,
    imports,
    makes_whole,
    supported,
    takes_opaque,
    whole,
)
from tests.torch.calls.evaluating import evaluated

FLOAT = np.dtype(np.float32)
NUMBERS = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
OWN = "own.call.default"


def no_choice(*_: object) -> NoReturn:
    raise AssertionError("no call of these asks for a choice of experts")


def importing_with(**options: Any) -> Importing:
    return Importing(Schedule(**options), no_choice)


def a_call(
    target: str = OWN, *args: Any, results: Sequence[Spec] = (), module: str = "", **kwargs: Any
) -> Call:
    return Call(target, "it", args, kwargs, tuple(results), len(results) > 1, module, None, None)


def stored(array: np.ndarray = NUMBERS, *, known: bool = False) -> View:
    return View.of(Stored.of("x", array.shape, array.dtype, lambda: array, known=known))


def given(importing: Importing, tile: tuple[int, ...], array: np.ndarray = NUMBERS) -> View:
    layout = Layout.tiled(array.shape, tile)
    result = Computed("y", array.shape, array.dtype, layout)
    operand = Operand(stored(array), layout)
    copied = row_local("y", [operand], [Pointwise((0,), array.dtype, "copy")], result)
    (found,) = importing.add(copied)
    return found


def kinds(importing: Importing) -> list[type]:
    return [type(each) for each in importing.model.kernels[1:]]


def test_arguments_of_a_call() -> None:
    x = stored()
    call = a_call("aten.own.default", 7, x, results=[Spec((2, 3), FLOAT)], dim=5)

    assert (call.argument(0, "dim"), call.argument(2, "dim"), call.argument(2, "k", 9)) == (7, 5, 9)
    assert call.argument(2, "k") is None
    assert call.tensor(1) is x
    assert call.result == Spec((2, 3), FLOAT)
    assert str(call) == "aten.own.default"
    assert str(replace(call, module="layers.0")) == "aten.own.default in layers.0"


@pytest.mark.parametrize(
    ("target", "module", "names"),
    [
        ("aten._softmax.default", "", ["softmax", "softmax_2"]),
        ("aten.add_.Tensor", "layers.0.mlp", ["layers_0_mlp_add", "layers_0_mlp_add_2"]),
        ("mul", "head", ["head_mul", "head_mul_2"]),
    ],
)
def test_names_of_kernels(target: str, module: str, names: list[str]) -> None:
    importing = importing_with()
    found = [importing.name_of(a_call(target, module=module)) for _ in names]
    assert found == names


def test_what_is_known() -> None:
    importing = importing_with()
    numbers = importing.known(stored(known=True).sliced(1, 1, 2))
    assert numbers is not None
    np.testing.assert_array_equal(numbers, NUMBERS[:, 1:3])
    assert importing.known(stored()) is None
    assert importing.known(given(importing, (1, 1, 4))) is None
    assert importing.known(3) is None


def test_within_a_loop() -> None:
    importing = importing_with(
        tile_rows=16, order="weight", orders={"a": "weight", "b": "output"}, units=2
    )
    whole_schedule = importing.schedule
    with suppress(KeyError), importing.step_by_step(3):
        inner = importing.schedule
        assert importing.in_loop
        raise KeyError
    assert (inner.tile_rows, inner.order, inner.units) == (3, "row", 1)
    assert inner.orders == {"a": "row", "b": "output"}
    assert importing.schedule is whole_schedule
    assert not importing.in_loop

    importing = importing_with(order="output")
    with importing.step_by_step(2):
        assert importing.schedule.order == "output"


def test_weights_stay_on_chip_in_a_loop() -> None:
    target = "aten.linear.default"
    importer = importer_of(target)
    assert importer is not None
    x, w = np.zeros((8, 4), np.float32), np.zeros((6, 4), np.float32)
    for in_loop in (False, True):
        importing = importing_with(tile_rows=2, tile_cols=2, order="output")
        importing.in_loop = in_loop
        importer(importing, a_call(target, stored(x), stored(w), results=[Spec((8, 6), FLOAT)]))
        (product,) = (each for each in importing.model.kernels if isinstance(each, Product))
        assert all(each.resident for each in product.operands) == in_loop


@pytest.mark.parametrize(
    ("dim", "first", "count", "tile", "cuts"),
    [
        (2, 0, 4, (1, 1, 4), False),  # all there is
        (2, 1, 2, (1, 1, 4), True),
        (2, 0, 2, (1, 1, 2), False),
        (2, 2, 2, (1, 1, 2), False),
        (2, 1, 2, (1, 1, 2), True),
        (2, 2, 1, (1, 1, 2), True),
        (2, 3, 1, (1, 1, 1), False),
        (1, 1, 2, (1, 1, 4), False),
        (0, 1, 1, (1, 1, 4), False),
    ],
)
def test_parts(dim: int, first: int, count: int, tile: tuple[int, ...], cuts: bool) -> None:
    importing = importing_with()
    x = given(importing, tile)
    part = importing.part(a_call(), x, dim, first, count)

    wanted = NUMBERS.take(range(first, first + count), axis=dim)
    np.testing.assert_array_equal(evaluated(importing.model, part), wanted)
    assert kinds(importing) == [RowLocal] * cuts
    memory = importing.part(a_call(), stored(), dim, first, count)
    assert isinstance(memory.source, Stored)
    np.testing.assert_array_equal(memory.array(), wanted)


@pytest.mark.parametrize(
    ("places", "kernels"), [([1, 2], 0), ([2], 0), ([2, 1], 1), ([0, 0, 2], 1), ([0, 2], 1)]
)
def test_places(places: list[int], kernels: int) -> None:
    importing = importing_with()
    x = given(importing, (1, 3, 4))
    found = importing.taken(a_call(), x, 1, places)

    wanted = NUMBERS.take(places, axis=1)
    np.testing.assert_array_equal(evaluated(importing.model, found), wanted)
    assert len(kinds(importing)) == kernels
    memory = importing.taken(a_call(), stored(), 1, places)
    assert isinstance(memory.source, Stored)
    np.testing.assert_array_equal(memory.array(), wanted)
    assert len(kinds(importing)) == kernels


@pytest.mark.parametrize(("dim", "kind"), [(2, RowLocal), (1, Concatenate), (0, Concatenate)])
def test_joined(dim: int, kind: type) -> None:
    importing = importing_with()
    x = given(importing, (1, 1, 4))
    shape = [2, 3, 4]
    shape[dim] *= 3
    call = a_call(results=[Spec(tuple(shape), FLOAT)])
    assert importing.joined(call, [x], dim) is x
    found = importing.joined(call, [x, stored(NUMBERS + 50), x], dim)

    wanted = np.concatenate([NUMBERS, NUMBERS + 50, NUMBERS], axis=dim)
    np.testing.assert_array_equal(evaluated(importing.model, found), wanted)
    assert kinds(importing) == [kind]


def test_what_is_read_once() -> None:
    importing = importing_with()
    x = given(importing, (1, 1, 4))
    assert importing.once(a_call(), x) is x
    found = importing.once(a_call(), stored(NUMBERS * 2))
    assert isinstance(found.source, Computed)
    np.testing.assert_array_equal(evaluated(importing.model, found), NUMBERS * 2)
    assert kinds(importing) == [RowLocal]


def test_what_is_settled() -> None:
    importing = importing_with()
    x = given(importing, (1, 1, 4))
    for view in (x, stored(), stored().permuted((2, 0, 1))):
        assert importing.settled(view) is view
    assert kinds(importing) == []
    found = importing.settled(x.permuted((2, 0, 1)).sliced(0, 1, 2))

    wanted = NUMBERS.transpose(2, 0, 1)[1:3]
    np.testing.assert_array_equal(evaluated(importing.model, found), wanted)
    assert found.shape == (2, 2, 3)
    assert kinds(importing) == [RowLocal]
    (source,) = importing.model.kernels[-1].results
    assert source.name == "y_settled"
    assert isinstance(source, Computed)
    assert source.layout.tile == source.layout.shape == (12,)


def test_a_tensor_that_a_kernel_will_give() -> None:
    layout = Layout.tiled((2, 4), (1, 4))
    found = Importing.computed("z", Spec((2, 4), FLOAT), layout)
    assert (found.name, found.shape, found.dtype, found.layout) == ("z", (2, 4), FLOAT, layout)


class Form:
    def __str__(self) -> str:
        return "my numbers"


class Other(Form):
    """Another one."""


def opaque(form: object, shape: tuple[int, ...] = (2, 3, 4)) -> View:
    return View.of(Opaque("o", shape, FLOAT, form))


def test_forms_that_a_kernel_does_not_take() -> None:
    importing = importing_with()
    layout = Layout.tiled((2, 3, 4), (1, 3, 4))
    result = Computed("y", (2, 3, 4), FLOAT, layout)
    step = Pointwise((0,), FLOAT, "copy")
    said = "^it is given my numbers: expected a tensor whole$"
    for view, its in (
        (opaque(Form()), layout),
        (opaque(Form(), (3, 8)).reshaped((2, 3, 4)), None),
        (opaque(Form(), (4, 3, 4)).sliced(0, 0, 2), None),
    ):
        kernel = row_local("y", [Operand(stored(), layout)], [step], result)
        kernel.operands = (Operand(view, its),)
        with pytest.raises(UnsupportedError, match=said):
            importing.add(kernel)
    assert not importing.model.kernels
    kernel.operands = (Operand(opaque(Form(), (2, 12)).reshaped((2, 3, 4)), None),)
    (found,) = importing.add(kernel)
    assert found.source is result
    with pytest.raises(
        UnsupportedError, match=r"^it is given rows of experts: expected a tensor w"
    ):
        importing.along(a_call(), (stored(), opaque(Form())), (1,), Taken((0,)), (1,), FLOAT)


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_IMPORTERS", "_MAKERS"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))


@pytest.mark.usefixtures("_registered")
def test_who_imports_a_call() -> None:
    def first(_: Importing, call: Call) -> View:
        return call.tensor()

    def second(_: Importing, call: Call) -> View:
        return call.tensor()

    before = supported()
    assert importer_of(OWN) is None
    assert imports(OWN, "own.a.default")(first) is first
    assert importer_of(OWN) is importer_of("own.a.default") is first
    assert imports(OWN, of=Form)(second) is second
    assert importer_of(OWN) is importer_of(OWN, [Other]) is first
    assert importer_of(OWN, [Other, Form]) is second
    assert takes_opaque(OWN, [Other, Form])
    assert not takes_opaque(OWN, [Other])
    assert not takes_opaque(OWN, [])
    assert list(supported()) == sorted({*before, OWN, "own.a.default"})
    imports("own.a.default")(second)
    assert importer_of("own.a.default") is second


@pytest.mark.usefixtures("_registered")
def test_who_makes_a_form_whole() -> None:
    importing, asked = importing_with(), []

    @makes_whole(Form)
    def maker(_: Importing, view: View) -> View:
        asked.append(view)
        return stored()

    x = opaque(Form())
    assert whole(importing, x).array().tolist() == NUMBERS.tolist()
    found = whole(importing, x.permuted((2, 0, 1)))
    np.testing.assert_array_equal(found.array(), NUMBERS.transpose(2, 0, 1))
    assert [each.shape for each in asked] == [(2, 3, 4)]
    assert maker is not None
    view = stored()
    assert whole(importing, view) is view
    with pytest.raises(
        UnsupportedError, match=r"^it is given my numbers: expected a tensor whole$"
    ):
        whole(importing, opaque(Other()))


@pytest.mark.parametrize(
    ("written", "module", "said"),
    [
        ("sort", "layers.0", "sort (aten.sort.default) in module layers.0: an order"),
        ("", "", "aten.sort.default: an order"),
    ],
)
def test_a_call_that_cannot_be_imported(written: str, module: str, said: str) -> None:
    call = Unsupported(written, "aten.sort.default", module, None, None, "an order")
    assert str(call) == f"from_torch cannot import {said}"


RESULT = Spec((2, 3, 4), FLOAT)
DOUBLE = Spec((2, 3, 4), np.dtype(np.float16))


@pytest.mark.usefixtures("_registered")
@pytest.mark.parametrize(
    ("results", "gives", "said"),
    [
        ([RESULT], lambda x: x, ""),
        ([RESULT] * 2, lambda x: (x, None), ""),
        ([RESULT] * 2, lambda x: x, "the number of its importer's results is 1: expected 2"),
        ([RESULT], lambda x: (x, x), "the number of its importer's results is 2: expected 1"),
        (
            [RESULT],
            lambda x: x.reshaped((6, 4)),
            r"its importer gives a tensor \[6, 4\] of float32: expected \[2, 3, 4\] of float32",
        ),
        (
            [RESULT, DOUBLE],
            lambda x: (x, x),
            r"its importer gives a tensor \[2, 3, 4\] of float32: expected \[2, 3, 4\] of float16",
        ),
        (
            [Spec((2, 3, 4), np.dtype(np.complex64))],
            lambda x: x,
            r"its importer gives a tensor \[2, 3, 4\] of float32: expected .* of complex64",
        ),
    ],
)
def test_what_a_users_importer_gives(
    results: list[Spec], gives: Callable[[View], Any], said: str
) -> None:
    @imports(OWN)
    def own(_: Importing, call: Call) -> Any:
        return gives(call.tensor())

    x = stored()
    call = a_call(OWN, x, results=results)
    assert own is importer_of(OWN)
    if not said:
        assert imported(importing_with(), call) == gives(x)
        return
    with pytest.raises(UnsupportedError, match=f"^{said}$"):
        imported(importing_with(), call)


@pytest.mark.usefixtures("_registered")
def test_complex_numbers_that_are_none() -> None:
    def own(_: Importing, call: Call) -> Any:
        return call.tensor()

    own.__module__ = "operators.own"
    imports(OWN)(own)
    call = a_call(OWN, stored(), results=[Spec((2, 3, 4), np.dtype(np.complex64))])
    with pytest.raises(UnsupportedError, match=r"^it gives complex numbers: expected products or"):
        imported(importing_with(), call)


@pytest.mark.usefixtures("_registered")
def test_views_that_an_importer_cannot_read() -> None:
    seen: list[Any] = []

    @imports(OWN)
    def own(_: Importing, call: Call) -> Any:
        seen.append((call.tensor(), call.kwargs["other"][0]))
        if len(seen) == 1:
            raise ShapeError("no walk")
        return call.tensor()

    importing = importing_with()
    x, y = given(importing, (1, 1, 4)).permuted((2, 0, 1)), stored()
    call = a_call(OWN, x, results=[Spec((4, 2, 3), FLOAT)], other=[y, 3])
    found = imported(importing, call)

    assert own is importer_of(OWN)
    assert [first is x for first, _ in seen] == [True, False]
    assert all(other is y for _, other in seen)
    assert isinstance(found, View)
    assert found is seen[1][0]
    assert [each.results[0].name for each in importing.model.kernels] == ["y", "y_settled"]
    np.testing.assert_array_equal(evaluated(importing.model, found), NUMBERS.transpose(2, 0, 1))


@pytest.mark.usefixtures("_registered")
def test_forms_of_arguments() -> None:
    seen: list[View] = []

    @makes_whole(Form)
    def maker(_: Importing, __: View) -> View:
        return stored()

    def own(_: Importing, call: Call) -> View:
        seen.append(call.tensor())
        return stored()

    x = opaque(Form())
    call = a_call(OWN, x, results=[RESULT])
    imports(OWN)(own)
    imported(importing_with(), call)
    imports(OWN, of=Form)(own)
    imported(importing_with(), call)

    assert maker is not None
    assert [isinstance(each.source, Stored) for each in seen] == [True, False]
    assert seen[1] is x


def test_what_comes_into_a_loop() -> None:
    importer = importer_of("step_loop.each.default")
    assert importer is not None
    importing = importing_with(tile_rows=2)
    rows, numbers = np.zeros((5, 4), np.float32), np.zeros(5, np.float32)
    x, single = given(importing, (1, 4), rows), given(importing, (1,), numbers)
    memory = stored(rows)
    for view in (memory, single):
        assert importer(importing, a_call("step_loop.each.default", view, 5, 0)) is view
    found = importer(importing, a_call("step_loop.each.default", x, 5, 0))
    assert isinstance(found, View)
    assert found.shape == (5, 4)
    assert kinds(importing) == [RowLocal, Entrance]


def test_states_of_a_loop() -> None:
    importing = importing_with(tile_rows=2)
    first = stored(np.zeros((3, 4), np.float32))
    begun, ends = (importer_of(f"step_loop.{name}.default") for name in ("states", "behind"))
    assert begun is not None
    assert ends is not None
    for number in (0, 1):
        call = a_call("step_loop.states.default", first, 5, 7, number)
        call = replace(call, results=(Spec((5, 3, 4), FLOAT),), file="m.py", line=number + 8)
        given_ = begun(importing, call)
        assert isinstance(given_, View)
        assert given_.shape == (5, 3, 4)
        call = a_call("step_loop.behind.default", given_, 7, number, results=[Spec((3, 4), FLOAT)])
        last = ends(importing, call)
        assert isinstance(last, View)
        assert last.shape == (3, 4)
    (loop,) = importing.model.loops.values()
    assert isinstance(loop, Recurrence)
    assert (loop.steps, loop.file, loop.line) == (5, "m.py", 8)
    assert importing.model.loops == {7: loop}
    assert [*loop.states] == [*loop.behind] == [0, 1]
    assert all(loop.behind[at].states is each for at, each in loop.states.items())


def test_rows_of_tiles_in_loops() -> None:
    graph = torch.fx.Graph()
    calls = torch.ops.step_loop

    def call(target: Any, shape: tuple[int, ...], *args: Any) -> torch.fx.Node:
        made = graph.call_function(target, args)
        made.meta["val"] = torch.empty(shape)
        return made

    x = graph.placeholder("x")
    outside = call(torch.ops.aten.sin.default, (5, 2, 6, 3), x)
    entrance = call(calls.each.default, (5, 2, 6, 3), outside, 5, 3)
    h = call(calls.states.default, (5, 2, 6, 3), x, 5, 3, 0)
    c = call(calls.states.default, (5, 8, 7), x, 5, 3, 1)
    on_the_way = call(torch.ops.aten.add.Tensor, (5, 2, 6, 3), h, entrance)
    aside = call(torch.ops.aten.cos.default, (5, 2, 6, 3), on_the_way)
    before = call(torch.ops.aten.cos.default, (5, 8, 7), outside)
    also = call(torch.ops.aten.mul.Tensor, (5, 8, 7), c, before)
    ends = [
        call(calls.behind.default, (2, 6, 3), on_the_way, 3, 0),
        call(calls.behind.default, (8, 7), also, 3, 1),
    ]
    other = call(calls.states.default, (5, 9, 4), ends[0], 5, 4, 0)
    end = call(calls.behind.default, (9, 4), other, 4, 0)
    nodes = [node for node in graph.nodes if node.op == "call_function"]

    found = rows_in_loops(nodes, 6)

    inside = {entrance, h, c, on_the_way, also, *ends}
    assert {node for node, rows in found.items() if rows == 4} == inside
    assert {node for node, rows in found.items() if rows == 3} == {other, end}
    assert not {outside, aside, before} & found.keys()
    assert set(rows_in_loops(nodes, 3).values()) == {2, 3}
    assert set(rows_in_loops(nodes, 1).values()) == {1}


def test_what_operands_broadcast_to() -> None:
    importing = importing_with(tile_rows=2)
    x = given(importing, (1, 1, 4))
    row, number = stored(np.arange(4, dtype=np.float32)), stored(np.array(5, np.float32))
    added = importing.chain(
        a_call(),
        (x, row, number),
        (Pointwise((0, 1), FLOAT, "add"), Pointwise((3, 2), FLOAT, "add")),
    )
    assert added.shape == (2, 3, 4)
    np.testing.assert_array_equal(
        evaluated(importing.model, added), NUMBERS + np.arange(4, dtype=np.float32) + 5
    )
    alone = importing.chain(a_call(), (number,), (Pointwise((0,), FLOAT, "copy"),))
    assert alone.shape == ()

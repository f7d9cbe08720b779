"""The state of an import: the schedule, and the model so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final, NoReturn

import numpy as np

from fabric import Layout
from operators.functions.ordering import Along, OnAxes, Taken
from operators.functions.row_functions import Reduced, Variance
from operators.functions.steps import Cut, Joined, Pointwise, Step, shapes
from operators.kernels.concatenate import Concatenate
from operators.kernels.following import followed, followed_whole, with_sizes
from operators.kernels.kernel import Kernel, Operand
from operators.kernels.model import Model
from operators.kernels.product import Product
from operators.kernels.routed import Choice, Routing
from operators.kernels.row_local import row_local
from operators.kernels.schedule import Order, Schedule
from operators.kernels.tensors import Computed, Opaque, Reshaped, Source, Stored, View
from operators.torch.call import Call, UnsupportedError
from operators.torch.routed_rows import on_routed_rows


class Importing:
    """The model while its calls are imported, one after the other.

    Attributes:
        schedule: tiles and orders. Within a loop, the order is step by step.
        in_loop: whether the current call is on a cycle of a loop.
        choice_of: chooses the experts of a layer in runs without data. It takes the number of the
            layer, the name of the call that reads the choice, the number of tokens, and the number
            of experts per token.
        model: the kernels so far.
        routings: the routing of each layer with experts so far.
        dealt: rows sent to their known groups, by the source of the rows.
        packed: routed rows packed into tiles, by the source of the rows.
        products: the rows and the weights of each grouped product, by its result.
        wholes: tensors brought into a layout, by their source in an opaque form.
    """

    def __init__(
        self, schedule: Schedule, choice_of: Callable[[int, str, int, int], Choice]
    ) -> None:
        self.schedule = schedule
        self.in_loop = False
        self.choice_of: Final = choice_of
        self.model: Final = Model()
        self.routings: Final[list[Routing]] = []
        self.dealt: Final[dict[Source, View]] = {}
        self.packed: Final[dict[Source, View]] = {}
        self.products: Final[dict[Source, tuple[View, View]]] = {}
        self.wholes: Final[dict[Source, View]] = {}

    def add(self, kernel: Kernel) -> tuple[View, ...]:
        """Append a kernel and return views of its results.

        Raises:
            ShapeError: it reads a tensor in an order that no walk over its tiles has.
            UnsupportedError: it reads a tensor in an opaque form as if it had a layout.
        """
        for operand in kernel.operands:
            source = operand.view.source
            if isinstance(source, Opaque) and not (
                operand.layout is None and _as_it_is(operand.view)
            ):
                self.unsupported(f"it is given {source.form}: expected a tensor whole")
            if isinstance(source, Computed) and not operand.rearranges:
                operand.pulled()
        if self.in_loop and isinstance(kernel, Product):
            # Every step reads all weights: they stay on chip.
            kernel.operands = tuple(replace(each, resident=True) for each in kernel.operands)
        self.model.kernels.append(kernel)
        return tuple(map(View.of, kernel.results))

    @contextmanager
    def step_by_step(self, rows: int) -> Iterator[None]:
        """Plan the calls of a loop step by step, in tiles of ``rows`` rows of one step."""
        whole = self.schedule
        order: Order = "row" if whole.order == "weight" else whole.order
        orders: dict[str, Order] = {
            name: "row" if own == "weight" else own for name, own in whole.orders.items()
        }
        self.schedule = replace(whole, tile_rows=rows, order=order, orders=orders, units=1)
        self.in_loop = True
        try:
            yield
        finally:
            self.schedule, self.in_loop = whole, False

    def name_of(self, call: Call) -> str:
        """Return a name for the kernel of a call: its module and its target."""
        what = call.target.split(".")[1].strip("_") if "." in call.target else call.target
        module = call.module.replace(".", "_")
        return self.model.name(f"{module}_{what}" if module else what)

    def known(self, view: object) -> np.ndarray | None:
        """Return the numbers of a tensor; None if they depend on data."""
        if isinstance(view, View) and isinstance(view.source, Stored):
            return view.array() if view.source.known else None
        return None

    def chain(
        self,
        call: Call,
        operands: Sequence[View],
        steps: Sequence[Step],
        *,
        rows_of: tuple[int, ...] | None = None,
    ) -> View:
        """Apply ``steps`` to tiles of broadcast operands.

        Args:
            call: the imported call.
            operands: steps read them by their numbers, from 0.
            steps: their numbers follow those of the operands. The last step computes the result.
            rows_of: for steps on whole rows, a shape that ends in these rows. Operands and the
                result may have other columns. None for elementwise steps.

        Returns:
            The result in the broadcast shape, or in ``rows_of`` with its own columns.
        """
        if any(isinstance(each.source, Opaque) for each in operands):
            name = self.name_of(call)
            return on_routed_rows(self.model, name, operands, steps, whole=rows_of is not None)
        name, dtype = self.name_of(call), steps[-1].dtype
        if rows_of is None:
            shape = np.broadcast_shapes(*(each.shape for each in operands))
            over = shape or (1,)
            layout = followed(operands, over, self.schedule, whole_rows=False)
            reading = [Operand(each.expanded(over), layout, broadcasts=(0, 1)) for each in operands]
            result = Computed(name, over, dtype, layout)
        else:
            lead = rows_of[:-1]
            views = [each.expanded((*lead, *(each.shape[-1:] or (1,)))) for each in operands]
            layouts = followed_whole(views, (len(lead),), self.schedule)
            reading = [
                Operand(each, layout, broadcasts=(0,))
                for each, layout in zip(views, layouts, strict=True)
            ]
            cols = int(shapes([(each.rows, each.cols) for each in layouts], steps)[-1][1])
            shape = (*lead, cols)
            result = Computed(name, shape, dtype, with_sizes(layouts[0], (len(lead),), (cols,)))
        (view,) = self.add(row_local(name, reading, steps, result))
        return view.reshaped(shape)

    def reduced(self, call: Call, x: View, dims: tuple[int, ...], step: Reduced | Variance) -> View:
        """Reduce all numbers along ``dims`` to one, in tiles that hold these dimensions whole.

        Returns:
            The result, with 1 in place of each of ``dims``.
        """
        (layout,) = followed_whole((x,), dims, self.schedule)
        left = with_sizes(layout, dims, [1] * len(dims))
        name = self.name_of(call)
        result = Computed(name, left.shape, step.dtype, left)
        reading = replace(step, grid=layout.tile, axes=dims)
        (view,) = self.add(row_local(name, (Operand(x, layout),), (reading,), result))
        return view

    def along(
        self,
        call: Call,
        operands: Sequence[View],
        dims: tuple[int, ...],
        function: OnAxes,
        sizes: tuple[int, ...],
        dtype: np.dtype,
    ) -> View:
        """Apply a function along ``dims`` of tensors, in tiles that hold these dimensions whole.

        The shapes of the operands differ in ``dims`` only. The result has ``sizes`` along them.
        """
        if any(isinstance(each.source, Opaque) for each in operands):
            self.unsupported("it is given rows of experts: expected a tensor whole")
        layouts = followed_whole(operands, dims, self.schedule)
        left = with_sizes(layouts[0], dims, sizes)
        name = self.name_of(call)
        result = Computed(name, left.shape, dtype, left)
        grids = tuple(each.tile for each in layouts)
        step = Along(tuple(range(len(operands))), dtype, function, grids, dims, sizes)
        reading = [Operand(*each) for each in zip(operands, layouts, strict=True)]
        (view,) = self.add(row_local(name, reading, (step,), result))
        return view

    def taken(self, call: Call, x: View, dim: int, places: Sequence[int]) -> View:
        """Return the given places of a dimension in their order.

        Only these places of a stored tensor are read.
        """
        places = tuple(map(int, places))
        first = places[0]
        if places == tuple(range(first, first + len(places))):
            return self.part(call, x, dim, first, len(places))
        if isinstance(x.source, Stored):
            shape = (*x.shape[:dim], len(places), *x.shape[dim + 1 :])
            stored = x.stored()
            taken = partial(np.take, indices=places, axis=dim)
            return View.of(stored.viewed(shape, taken))
        return self.along(call, (x,), (dim,), Taken(places), (len(places),), x.dtype)

    def once(self, call: Call, view: View) -> View:
        """Return a tensor that several calls read, loaded once if it is in off-chip memory."""
        if not isinstance(view.source, Stored):
            return view
        return self.chain(call, (view,), (Pointwise((0,), view.dtype, "copy"),))

    def settled(self, view: View) -> View:
        """Return a view as a separate tensor, which can be read in any order.

        A computed tensor becomes one tile that holds the elements of the view in order.
        """
        source = view.source
        if isinstance(source, Stored) and view.steps:
            data = view.array if source.tensor.has_data else None
            copy = Stored.of(source.name, view.shape, view.dtype, data, known=source.known)
            return View.of(copy)
        if not isinstance(source, Computed) or view.is_plain:
            return view
        places = np.arange(math.prod(source.shape)).reshape(source.shape)
        for step, _ in view.steps:
            places = step.seen(places)
        flat = View.of(source).reshaped((math.prod(source.shape),))
        name, shape = self.model.name(f"{source.name}_settled"), (places.size,)
        whole = [Layout.tiled(each, each) for each in (flat.shape, shape)]
        putting = Along(
            (0,), view.dtype, Taken(tuple(places.reshape(-1).tolist())), (flat.shape,), (0,), shape
        )
        result = Computed(name, shape, view.dtype, whole[1])
        (settled,) = self.add(row_local(name, (Operand(flat, whole[0]),), (putting,), result))
        return settled.reshaped(view.shape)

    def part(self, call: Call, x: View, dim: int, first: int, count: int) -> View:
        """Return ``count`` neighbouring places of a dimension, from ``first`` on.

        Columns that are not whole tiles are cut out of tiles that hold whole rows. Other parts are
        read directly.
        """
        whole = (first, count) == (0, x.shape[dim])
        if whole or dim != len(x.shape) - 1 or not isinstance(x.source, Computed):
            return x.sliced(dim, first, count)
        layout = x.layout
        if layout is not None and not (first % layout.tile[-1] or count % layout.tile[-1]):
            return x.sliced(dim, first, count)
        return self.chain(call, (x,), (Cut((0,), x.dtype, first, count),), rows_of=x.shape)

    def joined(self, call: Call, parts: Sequence[View], dim: int) -> View:
        """Concatenate tensors along a dimension."""
        if len(parts) == 1:
            return parts[0]
        size = sum(each.shape[dim] for each in parts)
        shape = (*parts[0].shape[:dim], size, *parts[0].shape[dim + 1 :])
        if dim == len(shape) - 1:
            step = Joined(tuple(range(len(parts))), call.result.dtype)
            return self.chain(call, parts, (step,), rows_of=shape)
        (view,) = self.add(Concatenate.of(self.name_of(call), parts, dim, self.schedule))
        return view

    @staticmethod
    def filled(name: str, shape: tuple[int, ...], dtype: np.dtype, number: float = 0) -> View:
        """Return a stored tensor of equal numbers."""
        return View.of(Stored.of(name, shape, dtype, lambda: np.full(shape, number, dtype)))

    @staticmethod
    def unsupported(needed: str) -> NoReturn:
        """Refuse the call that is being imported."""
        raise UnsupportedError(needed)


def _as_it_is(view: View) -> bool:
    """Whether a view of rows in an opaque form only reshapes dimensions after the first."""
    return all(isinstance(step, Reshaped) for step, _ in view.steps) and (
        view.shape[:1] == view.source.shape[:1]
    )

"""Programs of a single call, without a capture, that expect PyTorch's result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import torch
from hypothesis import strategies as st

import operators.torch.calls  # noqa: F401 - registers the importers
from fabric import Layout, Program, simulate
from operators.functions.steps import Pointwise
from operators.kernels.following import rows_layout
from operators.kernels.fusion import merge_chains
from operators.kernels.kernel import Operand
from operators.kernels.model import wire
from operators.kernels.off_chip import Store
from operators.kernels.row_local import row_local
from operators.kernels.schedule import Schedule, divisors
from operators.kernels.tensors import Computed, Stored, View
from operators.torch.call import Call, Spec
from operators.torch.capture import array_of, dtype_of
from operators.torch.from_torch import Wide
from operators.torch.importing import Importing
from operators.torch.planning import imported
from operators.torch.registry import whole

SCHEDULES = st.builds(
    Schedule, tile_rows=st.sampled_from([1, 2, 4, 16]), tile_cols=st.sampled_from([2, 4, 64])
)
DTYPES = st.sampled_from([torch.float32, torch.bfloat16])
SIZES = st.sampled_from([1, 2, 3, 4, 5])


def called(target: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    function = functools.reduce(getattr, target.split("."), torch.ops)
    assert callable(function)
    result = function(*torch.utils._pytree.tree_map_only(torch.Tensor, _laid_out, args), **kwargs)
    return list(result) if isinstance(result, tuple | list) else [result]


def _laid_out(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous()


def maybe_repeated(draw: st.DrawFn, tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.ndim:
        return tensor
    dim = draw(st.integers(-3 * tensor.ndim, tensor.ndim - 1))
    return tensor if dim < 0 else tensor.narrow(dim, 0, 1).expand(tensor.shape)


def _no_choice(*_: object) -> NoReturn:
    raise AssertionError("no call of these asks for a choice of experts")


class Single:
    def __init__(self, schedule: Schedule, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.importing = Importing(schedule, _no_choice)
        self.draw = draw
        self._count = 0

    def given(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(self.given, value))
        if not isinstance(value, torch.Tensor):
            return value
        repeated = [dim for dim, step in enumerate(value.stride()) if not step]
        if any(value.shape[dim] > 1 for dim in repeated):
            base = value
            for dim in repeated:
                base = base.narrow(dim, 0, 1)
            return self.given(base.contiguous()).expanded(value.shape)
        self._count += 1
        spec = f"t{self._count}", tuple(value.shape), dtype_of(value.dtype)
        known = not value.is_floating_point()
        if known or not value.ndim or not self.draw(st.booleans()):
            return View.of(Stored.of(*spec, lambda: array_of(value), known=known))
        return self._computed(value)

    def _computed(self, tensor: torch.Tensor) -> View:
        dims = tuple(self.draw(st.permutations(range(tensor.ndim))))
        turned = tensor.permute(dims)
        shape, dtype = tuple(turned.shape), dtype_of(tensor.dtype)
        layout = rows_layout(
            shape,
            self.draw(st.sampled_from([1, 2, 8])),
            self.draw(st.sampled_from(sorted(divisors(shape[-1])))),
        )
        order = tuple(self.draw(st.permutations(range(len(shape)))))
        layout = Layout.tiled(shape, layout.tile, order)
        layout = layout.nested([loop for loop in layout.loops if loop.trips > 1])
        name = f"c{self._count}"
        view = View.of(Stored.of(f"t{self._count}", shape, dtype, lambda: array_of(turned)))
        result = Computed(name, shape, dtype, layout)
        step = Pointwise((0,), dtype, "copy")
        kernel = row_local(name, [Operand(view, layout, broadcasts=(0, 1))], [step], result)
        (stored,) = self.importing.add(kernel)
        return stored.permuted([dims.index(dim) for dim in range(tensor.ndim)])

    def views(
        self, target: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[View | None, ...], list[torch.Tensor]]:
        expected = called(target, args, kwargs)
        specs = tuple(Spec(tuple(each.shape), dtype_of(each.dtype)) for each in expected)
        arguments = tuple(map(self.given, args))
        keywords = {name: self.given(value) for name, value in kwargs.items()}
        call = Call(target, "call", arguments, keywords, specs, len(specs) > 1, "", None, None)
        views = imported(self.importing, call)
        return views if isinstance(views, tuple) else (views,), expected

    def program(self, target: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Program:
        program = self.stored(*self.views(target, args, kwargs))

        def finer(name: str) -> Any:
            try:
                with Wide():
                    result = called(target, args, kwargs)[int(name.removeprefix("y"))]
            except (NotImplementedError, RuntimeError, TypeError):
                return None
            return result.numpy() if result.dtype is torch.float64 else array_of(result)

        for name, expectation in program.expected.items():
            program.expected[name] = expectation._replace(finer=functools.partial(finer, name))
        return program

    def stored(self, views: Sequence[View | None], expected: Sequence[torch.Tensor]) -> Program:
        model = self.importing.model
        wanted = {}
        for index, (returned, tensor) in enumerate(zip(views, expected, strict=False)):
            if returned is None:
                continue
            view = whole(self.importing, returned)
            assert view.shape == tuple(tensor.shape)
            assert view.dtype == dtype_of(tensor.dtype)
            name = f"y{index}"
            model.kernels.append(Store.of(name, view, self.importing.schedule))
            wanted[name] = array_of(tensor)
        model.drop_unread()
        merge_chains(model)
        with Program("call") as program:
            wire(program, model)
        expects: dict[str, Any] = {
            name: functools.partial(np.copy, each) for name, each in wanted.items()
        }
        program.expect(equal_nan=True, **expects)
        return program


def check(program: Program) -> None:
    report = simulate(program, mode="functional")
    assert report.verification is not None
    assert report.verified, "\n".join(report.verification.lines())
    assert simulate(program, mode="timing").cycles == report.cycles

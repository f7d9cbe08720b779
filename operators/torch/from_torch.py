"""from_torch: a program from a PyTorch module, with PyTorch's results as expected outputs.

PyTorch computes the expected outputs with two changes. Calls that round a 16-bit sum after each
summand compute in float64 and round once. kthvalue returns the first place among equal numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.utils._python_dispatch import TorchDispatchMode

from fabric import Program, ProgramError
from operators.kernels.fusion import merge_chains
from operators.kernels.model import Model, OutOfStepError, check_loops
from operators.kernels.off_chip import Store
from operators.kernels.progress import progress
from operators.kernels.realise import realised
from operators.kernels.schedule import Schedule as Schedule  # noqa: PLC0414 - for the stub
from operators.kernels.schedule import tuned
from operators.kernels.tensors import View
from operators.torch.capture import Captured, array_of, capture
from operators.torch.choices import Choices
from operators.torch.choices import routing as known_routing
from operators.torch.planning import planned
from operators.torch.registry import refusal

# mypy: disallow-subclassing-any=False


_ATEN: Final = torch.ops.aten

_ROUNDED_WITHIN: Final = {
    _ATEN.native_layer_norm.default,
    _ATEN.native_batch_norm.default,
    _ATEN._native_batch_norm_legit.no_stats,
    _ATEN._native_batch_norm_legit_no_training.default,
    _ATEN._adaptive_avg_pool3d.default,
    _ATEN.avg_pool3d.default,
}
"""For 16-bit results, PyTorch rounds more than once within these calls."""

_NARROW: Final = (torch.bfloat16, torch.float16)


class Reference(TorchDispatchMode):
    """Rounds the result of each call once, and takes the first of equal numbers."""

    supports_higher_order_operators = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _ROUNDED_WITHIN and args[0].dtype in _NARROW:
            return _rounded_once(func, args, kwargs)
        if func is _ATEN.kthvalue.default:
            return _kthvalue(*args, **kwargs)
        return func(*args, **kwargs)


class Wide(TorchDispatchMode):
    """Calls compute in float64. Calls that change a narrower tensor in place are refused."""

    supports_higher_order_operators = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        leaves, tree = torch.utils._pytree.tree_flatten((args, kwargs or {}))
        wide = [_widened(leaf) for leaf in leaves]
        if func._schema.is_mutable and any(
            isinstance(old, torch.Tensor) and old is not new
            for old, new in zip(leaves, wide, strict=True)
        ):
            raise NotImplementedError(f"{func} changes a tensor in place")
        args, kwargs = torch.utils._pytree.tree_unflatten(wide, tree)
        return func(*args, **kwargs)


def _widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    is_float = isinstance(value, torch.dtype) and value.is_floating_point
    return torch.float64 if is_float else value


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """Disable PyTorch's fused encoder layers, which write zeros at masked tokens."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _rounded_once(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def rounded(values: Any, to: torch.dtype) -> Any:
        return torch.utils._pytree.tree_map_only(
            torch.Tensor, lambda x: x.to(to) if x.is_floating_point() else x, values
        )

    wide_args, wide_kwargs = rounded((args, kwargs), torch.float64)
    return rounded(func(*wide_args, **wide_kwargs), args[0].dtype)


def _kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if not x.ndim:
        return _ATEN.kthvalue.default(x, k, dim, keepdim)
    number_and_place = (each.select(dim, k - 1) for each in torch.sort(x, dim=dim, stable=True))
    return tuple(each.unsqueeze(dim) if keepdim else each for each in number_and_place)


def from_torch(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    schedule: Schedule | None = None,
    routing: Sequence[ArrayLike] | None = None,
    name: str | None = None,
) -> Program:
    """Return a program that computes what ``module`` computes for arguments like these.

    Inputs of floating-point numbers are data. Inputs of integers and booleans (tokens, positions,
    masks) are constants of the program. A module on the meta device has no weights, and runs in
    timing mode. In functional mode the outputs are compared with PyTorch's: ``output``, or
    ``output_0``, ``output_1``, ... for several, in the order of PyTorch's ``tree_leaves``. Each
    has PyTorch's shape; a single number has the shape ``()``.

    Args:
        module: in evaluation mode.
        args: its positional arguments.
        kwargs: its keyword arguments.
        dynamic_shapes: lengths that stay symbols while PyTorch traces the module, as for
            torch.export: ``{"x": {0: torch.export.Dim("tokens")}}``. The trace is kept as long as
            the module. A later call with other lengths uses it if PyTorch's guards hold for them,
            and traces the module again if not. The program is the same as without
            ``dynamic_shapes``.
        schedule: tiles, orders and the tensors that stay on chip.
        routing: for each layer whose experts are chosen by data, in the order of the calls, the
            experts of each token, [tokens, hits]. Timing mode has no data and takes its sizes from
            ``routing``; functional mode chooses by its data. If None, the choice is PyTorch's for
            these arguments. On the meta device it is drawn at random, uniform and repeatable.
        name: of the program; the module's class if None.

    Raises:
        ProgramError: it is not a module, PyTorch cannot trace it, or a call cannot be imported; the
            message names the call, its module, its line, and what the import needs.
    """
    stated = None if routing is None else known_routing(routing)  # type: ignore[arg-type]  # converts
    outputs: dict[str, View] = {}

    def build(schedule: Schedule) -> Program:
        model, views = _model(captured, schedule, Choices(captured, stated))
        outputs.update(views)
        return realised(name or type(module).__name__, model, schedule)

    schedule = schedule or Schedule()
    kwargs = kwargs or {}
    try:
        captured = capture(module, args, kwargs, dynamic_shapes)
        try:
            program = tuned(schedule, build) if schedule.tuned else build(schedule)
        except OutOfStepError:
            captured = capture(module, args, kwargs, dynamic_shapes, rolls=False)
            program = tuned(schedule, build) if schedule.tuned else build(schedule)
    finally:
        progress("")
    _expect(program, module, args, kwargs, outputs)
    return program


def _model(
    captured: Captured, schedule: Schedule, choices: Choices
) -> tuple[Model, dict[str, View]]:
    importing, outputs, missing, _ = planned(captured, schedule, choices)
    if missing:
        raise ProgramError(refusal(missing), file=missing[0].file, line=missing[0].line)
    model = importing.model
    for output, view in outputs.items():
        model.kernels.append(Store.of(output, view, schedule))
    model.drop_unread()
    merge_chains(model)
    check_loops(model)
    return model, outputs


def _expect(
    program: Program,
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    outputs: Iterable[str],
) -> None:
    @cache
    def results(mode: type[TorchDispatchMode]) -> list[np.ndarray]:
        with torch.no_grad(), _without_fast_path(), mode():
            leaves = torch.utils._pytree.tree_leaves(module(*args, **kwargs))
        return [
            leaf.numpy(force=True) if leaf.dtype is torch.float64 else array_of(leaf)
            for leaf in leaves
            if isinstance(leaf, torch.Tensor)
        ]

    def reference(index: int) -> np.ndarray:
        return results(Reference)[index]

    def in_float64(index: int) -> np.ndarray | None:
        try:
            return results(Wide)[index]
        except (IndexError, NotImplementedError, RuntimeError, TypeError, ValueError):
            return None  # PyTorch has no float64 form of a call

    for index, name in enumerate(outputs):
        expected: dict[str, Any] = {name: partial(reference, index)}
        program.expect(equal_nan=True, **expected)
        program.expected[name] = program.expected[name]._replace(finer=partial(in_float64, index))

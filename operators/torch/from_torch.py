"""from_torch: a PyTorch module becomes a program."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from torch.fx import Node
from torch.fx.node import map_arg

import operators.torch.calls  # noqa: F401 - registers the importers
from fabric import Program, ProgramError
from operators.kernels.kernel import Operand
from operators.kernels.merging import merge_chains
from operators.kernels.row_local import followed
from operators.kernels.schedule import Schedule
from operators.kernels.storing import Store, matrix_shape
from operators.kernels.tensors import Stored, View
from operators.kernels.wiring import wire
from operators.torch.call import Call
from operators.torch.capture import Captured, capture, module_of, place_of, specs_of, target_of
from operators.torch.folding import Constants
from operators.torch.importing import Importing, UnsupportedError
from operators.torch.numbers import array_of, dtype_of
from operators.torch.registry import importer_of
from operators.torch.unsupported import Unsupported

__all__ = ["from_torch", "planned"]

_CHECKS: Final = frozenset({"aten._assert_tensor_metadata.default", "aten._assert_scalar.default"})
"""Calls that compute nothing."""


def from_torch(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    schedule: Schedule | None = None,
    name: str | None = None,
) -> Program:
    """Return a program that computes what ``module`` computes for arguments like these.

    Inputs of floating-point numbers are data; those of integers and booleans (tokens, positions,
    masks) are known when the program is wired. A module on the meta device has no weights, and
    runs in timing mode. What the program stores is compared with what PyTorch computes, in
    functional mode: ``output``, or ``output_0``, ``output_1``, ... where there are several.

    Args:
        module: in evaluation mode.
        args: that it is called with.
        kwargs: that it is called with, by name.
        schedule: tiles, orders and what stays on chip.
        name: of the program; the module's class where None.

    Raises:
        ProgramError: a call that cannot be imported; it says which, in which module and at which
            line, and what would be needed.
    """
    captured = capture(module, args, kwargs or {})
    importing, outputs, missing = planned(captured, schedule or Schedule())
    if missing:
        first = missing[0]
        others = f"; {len(missing) - 1} others" if len(missing) > 1 else ""
        raise ProgramError(f"{first}{others}", file=first.file, line=first.line)
    model = importing.model
    for output, view in outputs.items():
        shape = view.shape
        layout = followed((view,), shape, importing.schedule, whole_rows=False)
        model.kernels.append(Store(output, Operand(view, layout)))
    model.drop_unread()
    merge_chains(model)
    with Program(name or type(module).__name__) as program:
        wire(program, model)
    _expect(program, module, args, kwargs or {}, outputs)
    return program


def planned(
    captured: Captured, schedule: Schedule
) -> tuple[Importing, dict[str, View], list[Unsupported]]:
    """Import the calls of a captured module.

    Returns:
        The model, its outputs by name, and what cannot be imported, in the order of the calls.
    """
    importing = Importing(schedule)
    constants = Constants(captured)
    values: dict[Node, Any] = {}
    missing: list[Unsupported] = []
    for node in captured.data:
        tensor = captured.tensors[node]
        data = None if tensor.device.type == "meta" else (lambda tensor=tensor: array_of(tensor))
        spec = (node.name, tuple(tensor.shape), dtype_of(tensor.dtype), data)
        values[node] = View.of(Stored.of(*spec))

    def given(node: Node) -> Any:
        if node not in values and node in constants:
            values[node] = View.of(constants.stored(node, node.name))
        return values.get(node)

    for node in captured.calls:
        if target_of(node) in _CHECKS or constants.fold(node):
            continue
        if node.target is operator.getitem:
            source, index = node.args
            several = given(source)
            values[node] = None if several is None else several[index]
            continue
        if any(given(each) is None for each in node.all_input_nodes):
            continue  # behind a call that cannot be imported, or nothing that can be read
        call = Call(
            target_of(node),
            node.name,
            map_arg(node.args, given),
            map_arg(node.kwargs, given),
            specs_of(node),
            isinstance(node.meta["val"], tuple | list),
            module_of(node),
            *place_of(node),
        )
        importer = importer_of(call.target)
        try:
            if importer is None:
                raise UnsupportedError("expected a call that an importer is registered for")
            values[node] = importer(importing, call)
        except UnsupportedError as error:
            missing.append(Unsupported.of(call, str(error)))
    nodes = [each for each in captured.outputs if isinstance(each, Node)]
    names = ["output"] if len(nodes) == 1 else [f"output_{i}" for i in range(len(nodes))]
    outputs = {name: given(node) for name, node in zip(names, nodes, strict=True)}
    return importing, outputs, missing


def _expect(
    program: Program,
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    outputs: Mapping[str, View],
) -> None:
    """Expect what PyTorch computes, when a run asks for it."""
    held: list[list[np.ndarray]] = []

    def computed(index: int, view: View) -> np.ndarray:
        if not held:
            with torch.no_grad():
                given = torch.utils._pytree.tree_leaves(module(*args, **kwargs))
            held.append([array_of(each) for each in given if isinstance(each, torch.Tensor)])
        return held[0][index].reshape(matrix_shape(view.shape))

    for index, (name, view) in enumerate(outputs.items()):
        expected: dict[str, Any] = {name: partial(computed, index, view)}
        program.expect(**expected)

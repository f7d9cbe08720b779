"""from_torch: a PyTorch module becomes a program."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.fx import Node
from torch.fx.node import map_arg

import operators.torch.calls  # noqa: F401 - registers the importers
from fabric import Program, ProgramError
from operators.kernels.merging import merge_chains
from operators.kernels.model import Model
from operators.kernels.realise import realised
from operators.kernels.routed import Routed
from operators.kernels.schedule import Schedule
from operators.kernels.storing import Store, matrix_shape
from operators.kernels.tensors import Opaque, Stored, View
from operators.kernels.tuning import tuned
from operators.torch.call import Call
from operators.torch.capture import Captured, capture, module_of, place_of, specs_of, target_of
from operators.torch.choices import Choices
from operators.torch.folding import Constants
from operators.torch.importing import Importing, UnsupportedError
from operators.torch.numbers import array_of, dtype_of
from operators.torch.registry import Result, importer_of, takes_opaque, whole
from operators.torch.unsupported import Unsupported

__all__ = ["from_torch", "imported", "planned"]

_CHECKS: Final = frozenset({"aten._assert_tensor_metadata.default", "aten._assert_scalar.default"})
"""Calls that compute nothing."""


def from_torch(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    schedule: Schedule | None = None,
    routing: Sequence[ArrayLike] | None = None,
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
        routing: for each layer whose tokens go to experts that data choose, in the order of the
            calls: the experts of each token, [tokens, hits]. Timing mode has no data to choose by,
            and sizes are stated by it; functional mode chooses by its data. Where None, what
            PyTorch chooses for these arguments; on the meta device drawn, all experts equally
            likely and the same ones each time.
        name: of the program; the module's class where None.

    Raises:
        ProgramError: a call that cannot be imported; it says which, in which module and at which
            line, and what would be needed.
    """
    captured = capture(module, args, kwargs or {})
    outputs: dict[str, View] = {}

    def build(schedule: Schedule) -> Program:
        model, found = _model(captured, schedule, Choices(captured, routing))
        outputs.update(found)
        return realised(name or type(module).__name__, model, schedule)

    schedule = schedule or Schedule()
    program = tuned(schedule, build) if schedule.tuned else build(schedule)
    _expect(program, module, args, kwargs or {}, outputs)
    return program


def _model(
    captured: Captured, schedule: Schedule, choices: Choices
) -> tuple[Model, dict[str, View]]:
    """Return a captured module as kernels under ``schedule``, and its outputs by name."""
    importing, outputs, missing = planned(captured, schedule, choices)
    if missing:
        first = missing[0]
        others = f"; {len(missing) - 1} others" if len(missing) > 1 else ""
        raise ProgramError(f"{first}{others}", file=first.file, line=first.line)
    model = importing.model
    for output, view in outputs.items():
        model.kernels.append(Store.of(output, view, schedule))
    model.drop_unread()
    merge_chains(model)
    return model, outputs


def planned(
    captured: Captured, schedule: Schedule, choices: Choices
) -> tuple[Importing, dict[str, View], list[Unsupported]]:
    """Import the calls of a captured module.

    Returns:
        The model, its outputs by name, and what cannot be imported, in the order of the calls.
    """
    importing = Importing(schedule, choices.of)
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
        try:
            values[node] = imported(importing, call)
        except UnsupportedError as error:
            missing.append(Unsupported.of(call, str(error)))
    outputs, refused = _outputs(importing, captured, given)
    return importing, outputs, [*missing, *refused]


def _outputs(
    importing: Importing, captured: Captured, given: Callable[[Node], Any]
) -> tuple[dict[str, View], list[Unsupported]]:
    """Return what is stored by name, and what cannot be."""
    nodes = [each for each in captured.outputs if isinstance(each, Node)]
    names = ["output"] if len(nodes) == 1 else [f"output_{i}" for i in range(len(nodes))]
    outputs: dict[str, View] = {}
    refused: list[Unsupported] = []
    for name, node in zip(names, nodes, strict=True):
        view = given(node)
        if view is None:
            continue  # behind a call that cannot be imported
        try:
            outputs[name] = whole(importing, view)
        except UnsupportedError as error:
            what = f"what it gives is stored: {error}"
            refused.append(Unsupported(target_of(node), module_of(node), *place_of(node), what))
    return outputs, refused


def imported(importing: Importing, call: Call) -> Result:
    """Import a call; what it is given in opaque forms becomes whole unless its importer takes it.

    Raises:
        UnsupportedError: it cannot be imported.
    """
    leaves = torch.utils._pytree.tree_leaves((call.args, dict(call.kwargs)))
    forms = [
        type(each.source.form)
        for each in leaves
        if isinstance(each, View) and isinstance(each.source, Opaque)
    ]
    importer = importer_of(call.target, forms)
    if importer is None:
        raise UnsupportedError("expected a call that an importer is registered for")
    if not forms or Routed in forms or takes_opaque(call.target, forms):
        return importer(importing, call)

    def made(each: object) -> object:
        return whole(importing, each) if isinstance(each, View) else each

    args, kwargs = torch.utils._pytree.tree_map(made, (call.args, dict(call.kwargs)))
    return importer(importing, replace(call, args=args, kwargs=kwargs))


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

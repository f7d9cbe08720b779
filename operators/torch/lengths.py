"""Traces whose lengths are symbols: one trace serves all lengths for which its guards hold."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
from torch._dynamo.exc import UserErrorType
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError, ShapeEnv, free_symbols
from torch.fx.node import map_arg

from fabric import FabricError, ProgramError

_KEPT: Final[WeakKeyDictionary[torch.nn.Module, _Trace]] = WeakKeyDictionary()
"""The last trace of each module."""


class DynamicShapesError(ProgramError):
    """The arguments contradict ``dynamic_shapes``."""


@dataclass(frozen=True, eq=False)
class _Trace:
    exported: ExportedProgram
    key: tuple[Any, ...]

    def serves(self, leaves: Sequence[Any]) -> bool:
        """Whether the arguments have the traced types and numbers, and lengths that fit the guards.

        ``ignore_static=False`` checks the lengths and strides that PyTorch made constants, too.
        """
        values = [node.meta["val"] for node in _inputs(self.exported)]
        traced = [value for value in values if isinstance(value, torch.Tensor)]
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if [*map(_kind, values)] != [*map(_kind, leaves)]:
            return False
        if not traced:
            return True
        guards = traced[0].fake_mode.shape_env
        try:
            return bool(guards.evaluate_guards_for_args(traced, tensors, ignore_static=False))
        except ArithmeticError:  # a guard divides by 0, such as ``2 * s % (s - 1) == 0`` for s = 1
            return False


def _kind(leaf: Any) -> object:
    """Return the properties of an argument that a trace depends on, except lengths and strides."""
    return (leaf.dtype, leaf.ndim) if isinstance(leaf, torch.Tensor) else (type(leaf), repr(leaf))


def kept_trace(
    module: torch.nn.Module,
    leaves: Sequence[Any],
    structure: object,
    dynamic_shapes: object,
    trace: Callable[[], ExportedProgram],
) -> ExportedProgram | None:
    """Return a trace of ``module`` that serves ``leaves``: the last one, or a new one.

    The last trace is kept as long as the module. ``structure`` is the structure of the arguments,
    and ``dynamic_shapes`` names the lengths that are symbols, as for torch.export.

    Returns:
        None if PyTorch made every symbol constant, or cannot trace the module with symbols.

    Raises:
        DynamicShapesError: the arguments contradict ``dynamic_shapes``.
    """
    own = chain(
        module.named_parameters(remove_duplicate=False),
        module.named_buffers(remove_duplicate=False),
    )
    tensors = tuple((name, id(tensor)) for name, tensor in own)
    training = tuple(part.training for part in module.modules())
    key = repr(dynamic_shapes), structure, tensors, training
    kept = _KEPT.get(module)
    if kept is not None and kept.key == key and kept.serves(leaves):
        return kept.exported
    try:
        made = _Trace(trace(), key)
    except DynamicShapesError:
        raise
    except FabricError:
        return None
    values = (node.meta["val"] for node in _inputs(made.exported))
    if not free_symbols([value for value in values if isinstance(value, torch.Tensor)]):
        return None
    _KEPT[module] = made
    return made.exported


def contradicts(error: Exception) -> bool:
    """Whether torch.export refuses ``dynamic_shapes`` itself, or arguments that contradict it."""
    is_invalid = getattr(error, "error_type", None) is UserErrorType.INVALID_INPUT
    return is_invalid or isinstance(error, ConstraintViolationError)


@contextmanager
def numbers_as_text() -> Iterator[None]:
    """In the user's code, ``str`` of a symbol gives its number, and adds a guard for it."""
    numbers: dict[Any, Any] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
    originals = {kind: kind.__repr__ for kind in numbers}

    def text(symbol: Any) -> str:
        is_torch = sys._getframe(1).f_code.co_filename.startswith(torch.__path__[0])
        kind = type(symbol)
        return str(originals[kind](symbol) if is_torch else numbers[kind](symbol))

    try:
        for kind in numbers:
            kind.__repr__ = text
        yield
    finally:
        for kind, original in originals.items():
            kind.__repr__ = original


def at_lengths(exported: ExportedProgram, leaves: Sequence[Any]) -> Graph:
    """Return the graph of a trace with the lengths of ``leaves`` in place of symbols.

    The calls run on tensors without data, which give the shapes of their results.
    """
    mode = FakeTensorMode(static_shapes=True, shape_env=ShapeEnv())
    graph = Graph()
    copies: dict[Node, Any] = {}
    arguments = dict(zip(_inputs(exported), leaves, strict=True))
    tensors = {**exported.state_dict, **exported.constants}
    targets = {node: spec.target for node, spec in placeholders(exported, exported.graph)}

    def value_of(node: Node) -> Any:
        copy = copies[node]
        return copy.meta["val"] if isinstance(copy, Node) else copy

    with torch.no_grad(), mode:
        for node in exported.graph.nodes:
            if node.op == "output":
                graph.output(map_arg(node.args[0], copies.__getitem__))
                continue
            if node.op == "placeholder":
                value = arguments[node] if node in arguments else tensors.get(targets[node])
                if isinstance(value, torch.Tensor):
                    value = mode.from_tensor(value).to(node.meta["val"].device)
            else:
                args, kwargs = map_arg((node.args, dict(node.kwargs)), value_of)
                value = node.target(*args, **kwargs)
                results = torch.utils._pytree.tree_leaves(value)
                if not any(isinstance(result, torch.Tensor) for result in results):
                    copies[node] = value
                    continue
                if node.target is torch.ops.aten.slice.Tensor and value.shape == args[0].shape:
                    # PyTorch omits the slice of ``x[:, 0]`` if it knows the length.
                    copies[node] = copies[node.args[0]]
                    continue
            args, kwargs = map_arg((node.args, dict(node.kwargs)), copies.__getitem__)
            copies[node] = graph.create_node(node.op, node.target, args, kwargs, node.name)
            copies[node].meta = {**node.meta, "val": value}
    return graph


def placeholders(exported: ExportedProgram, graph: Graph) -> Iterator[tuple[Node, Any]]:
    """Yield the placeholders of a trace's graph, each with PyTorch's specification."""
    nodes = (node for node in graph.nodes if node.op == "placeholder")
    return zip(nodes, exported.graph_signature.input_specs, strict=True)


def _inputs(exported: ExportedProgram) -> Iterator[Node]:
    pairs = placeholders(exported, exported.graph)
    return (node for node, spec in pairs if spec.kind is InputKind.USER_INPUT)

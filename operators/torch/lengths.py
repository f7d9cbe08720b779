"""Traces whose lengths are symbols: one trace serves every length for which its guards hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.node import map_arg

__all__ = ["at_lengths", "is_of_one", "kept_trace"]

_ONE: Final = re.compile(r"specialized it to be a constant \([01]\)")

_KEPT: Final[WeakKeyDictionary[torch.nn.Module, _Trace]] = WeakKeyDictionary()
"""The last trace of each module."""


@dataclass(frozen=True, eq=False)
class _Trace:
    """A trace, and what it is of.

    Attributes:
        exported: as PyTorch has it.
        of: which lengths are symbols, and the module's own tensors.
    """

    exported: ExportedProgram
    of: tuple[Any, ...]

    @property
    def has_symbols(self) -> bool:
        """Whether it serves other lengths than those it was made with."""
        values = (node.meta["val"] for node, _ in _inputs(self.exported))
        tensors = (each for each in values if isinstance(each, torch.Tensor))
        return any(not isinstance(size, int) for each in tensors for size in each.shape)

    def serves(self, leaves: Sequence[Any]) -> bool:
        """Whether these arguments differ from those of the trace in lengths alone.

        All that PyTorch asked of the lengths while it traced has to hold for them, too.
        """
        nodes = [node for node, _ in _inputs(self.exported)]
        pairs = [(node.meta["val"], leaf) for node, leaf in zip(nodes, leaves, strict=True)]
        symbolic = [(traced, leaf) for traced, leaf in pairs if isinstance(traced, torch.Tensor)]
        others = [pair for pair in pairs if not isinstance(pair[0], torch.Tensor)]
        if any((type(traced), traced) != (type(leaf), leaf) for traced, leaf in others):
            return False
        if not all(_is_like(*pair) for pair in symbolic):
            return False
        guards = next((traced.fake_mode.shape_env for traced, _ in symbolic), None)
        return guards is None or bool(
            guards.evaluate_guards_for_args(
                [traced for traced, _ in symbolic], [leaf for _, leaf in symbolic]
            )
        )


def _is_like(traced: Any, leaf: Any) -> bool:
    """Whether a tensor has the type of a traced one, and its sizes where these are numbers."""
    return (
        isinstance(leaf, torch.Tensor)
        and (leaf.dtype, leaf.ndim) == (traced.dtype, traced.ndim)
        and all(
            not isinstance(size, int) or size == found
            for size, found in zip(traced.shape, leaf.shape, strict=True)
        )
    )


def kept_trace(
    module: torch.nn.Module,
    leaves: Sequence[Any],
    structure: object,
    dynamic_shapes: object,
    trace: Callable[[], ExportedProgram],
) -> ExportedProgram:
    """Return a trace of ``module`` that serves ``leaves``: the last one, or a new one.

    Args:
        module: whose last trace is kept as long as it is.
        leaves: the arguments.
        structure: that they are the leaves of.
        dynamic_shapes: which lengths are symbols, as torch.export has it.
        trace: makes a new one.
    """
    own = tuple(
        (name, id(each)) for name, each in sorted(module.state_dict(keep_vars=True).items())
    )
    training = tuple(each.training for each in module.modules())
    of = repr(dynamic_shapes), structure, own, training
    kept = _KEPT.get(module)
    if kept is not None and kept.of == of and kept.serves(leaves):
        return kept.exported
    made = _Trace(trace(), of)
    if made.has_symbols:
        _KEPT[module] = made
    return made.exported


def is_of_one(error: Exception) -> bool:
    """Whether torch.export refuses a symbol because its length is 0 or 1, which it keeps apart."""
    return bool(_ONE.search(str(error)))


def at_lengths(exported: ExportedProgram, leaves: Sequence[Any]) -> Graph:
    """Return the graph of a trace with the lengths of ``leaves`` in place of symbols.

    Every call is asked once more for the shape of its result; what computes lengths is worked out.
    """
    mode = FakeTensorMode(static_shapes=True, shape_env=ShapeEnv())
    graph = Graph()
    found: dict[Node, Any] = {}
    given = dict(zip((node for node, _ in _inputs(exported)), leaves, strict=True))
    held = {**exported.state_dict, **exported.constants}
    targets = {
        node: spec.target
        for node, spec in zip(_placeholders(exported), _specs(exported), strict=True)
    }

    def shown(node: Node) -> Any:
        value = found[node]
        return value.meta["val"] if isinstance(value, Node) else value

    with torch.no_grad(), mode:
        for node in exported.graph.nodes:
            if node.op == "output":
                graph.output(map_arg(node.args[0], found.__getitem__))
                continue
            if node.op == "placeholder":
                value = given[node] if node in given else held.get(targets[node])
                if isinstance(value, torch.Tensor):
                    value = mode.from_tensor(value).to(node.meta["val"].device)
            else:
                args, kwargs = map_arg((node.args, dict(node.kwargs)), shown)
                value = node.target(*args, **kwargs)
                if not _has_tensors(value):
                    found[node] = value
                    continue
            args, kwargs = map_arg((node.args, dict(node.kwargs)), found.__getitem__)
            made = graph.create_node(node.op, node.target, args, kwargs, node.name)
            made.meta = {**node.meta, "val": value}
            found[node] = made
    return graph


def _has_tensors(value: Any) -> bool:
    return any(isinstance(each, torch.Tensor) for each in torch.utils._pytree.tree_leaves(value))


def _placeholders(exported: ExportedProgram) -> Iterator[Node]:
    return (node for node in exported.graph.nodes if node.op == "placeholder")


def _specs(exported: ExportedProgram) -> Sequence[Any]:
    specs: Sequence[Any] = exported.graph_signature.input_specs
    return specs


def _inputs(exported: ExportedProgram) -> Iterator[tuple[Node, Any]]:
    """Yield what stands for the arguments, in their order."""
    pairs = zip(_placeholders(exported), _specs(exported), strict=True)
    return ((node, spec) for node, spec in pairs if spec.kind is InputKind.USER_INPUT)

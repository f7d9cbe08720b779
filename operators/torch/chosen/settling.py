"""Traces with data-dependent lengths, rewritten with constant lengths.

``x[mask]`` becomes ``x`` together with ``mask``. Elements that are not chosen keep their places. A
call that would read them reads a neutral number instead, such as 0 for a sum. Lengths that follow
from known arguments become constants.
"""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.traceback import preserve_node_meta, set_current_meta

from operators.torch.chosen.rules import ARITHMETIC, BEGINS, RULES, arithmetic, pointwise
from operators.torch.chosen.tensors import Chosen, has_lengths

_ATEN: Final = torch.ops.aten

CHECKS: Final = (
    _ATEN._assert_scalar.default,
    _ATEN._assert_async.default,
    _ATEN._assert_async.msg,
    _ATEN._assert_tensor_metadata.default,
    _ATEN.sym_constrain_range.default,
    _ATEN.sym_constrain_range_for_size.default,
)
"""Calls that only check their arguments."""


class NeedsLengthError(Exception):
    """A call needs a length that data decide."""

    def __init__(self, node: Node) -> None:
        super().__init__(node.name)
        self.node = node


def has_lengths_of_data(graph: torch.fx.Graph) -> bool:
    """Whether a trace has a size, or an integer, that is read from a tensor."""
    targets = (_ATEN.item.default, _ATEN._local_scalar_dense.default)
    return any(
        node.target in targets
        or any(
            not isinstance(size, int) and _is_of_data(size)
            for each in torch.utils._pytree.tree_leaves(node.meta.get("val"))
            if isinstance(each, torch.Tensor)
            for size in each.shape
        )
        for node in graph.nodes
        if node.op == "call_function"
    )


def _is_open(value: Any) -> bool:
    leaves = torch.utils._pytree.tree_leaves(value)
    tensors = (each for each in leaves if isinstance(each, torch.Tensor))
    return any(not isinstance(size, int) for each in tensors for size in each.shape)


def _is_of_data(size: Any) -> bool:
    return any(str(each).startswith("u") for each in size.node.expr.free_symbols)


class Settled(torch.nn.Module):
    def __init__(self, traced: GraphModule, given: Sequence[Any]) -> None:
        """Compute the lengths that follow from the known arguments among ``given``."""
        super().__init__()
        self.traced = traced
        known = _Knowing(traced)
        known.run(*given, enable_io_processing=False)
        self.known: Final = known.known
        self.places: Final = known.places

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        with preserve_node_meta():
            return _Settling(self).run(*leaves, enable_io_processing=False)


_UNKNOWN: Final = object()


class _Knowing(Interpreter):
    """Computes calls that depend only on integers and booleans among the arguments.

    Attributes:
        places: by call, the places that its known masks or known repeats select.
    """

    def __init__(self, traced: GraphModule) -> None:
        super().__init__(traced, garbage_collect_values=False)
        self.known: Final[dict[Node, Any]] = {}
        self.places: Final[dict[Node, Any]] = {}

    def run_node(self, n: Node) -> Any:
        if n.op == "output":
            return None
        if n.op in ("placeholder", "get_attr"):
            return self._known(super().run_node(n))
        if n.target in CHECKS:
            return None
        if any(self.env[each] is _UNKNOWN for each in n.all_input_nodes):
            self._name_places(n)
            return _UNKNOWN
        result = super().run_node(n)
        if n.all_input_nodes:
            self.known[n] = result
        return result

    @staticmethod
    def _known(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return _UNKNOWN if value.is_floating_point() or value.is_meta else value

    def _name_places(self, n: Node) -> None:
        """Keep the places that known masks or known repeats select."""
        if n.target in _MASKED:
            index = [self.env[part] if isinstance(part, Node) else part for part in n.args[1]]
            if all(isinstance(part, torch.Tensor | None) for part in index):
                self.places[n] = [place for part in index for place in _places(part)]
        elif n.target is _REPEATED:
            repeats = self.env[n.args[1]]
            if isinstance(repeats, torch.Tensor):
                self.places[n] = torch.repeat_interleave(repeats)


_REPEATED: Final = _ATEN.repeat_interleave.self_Tensor
_MASKED: Final = (_ATEN.index.Tensor, _ATEN.index_put.default)


def _places(part: Any) -> Sequence[Any]:
    if part is None or part.dtype not in (torch.bool, torch.uint8):
        return [part]
    places: Sequence[Any] = part.nonzero(as_tuple=True)
    return places


def _repeated(places: Any, x: Any, _: Any, dim: int | None = None) -> Any:
    if isinstance(x, Chosen):
        return None
    return x.flatten()[places] if dim is None else x.index_select(dim, places)


class _Settling(Interpreter):
    """Runs a trace with constant lengths in place of data-dependent lengths."""

    def __init__(self, settled: Settled) -> None:
        super().__init__(settled.traced, garbage_collect_values=False)
        self._known: Final = settled.known
        self._places: Final = settled.places

    def run_node(self, n: Node) -> Any:
        if n in self._known:
            return self._known[n]
        if n.op != "call_function":
            result = super().run_node(n)
            if n.op == "output" and has_lengths(result):
                raise NeedsLengthError(n)
            return result
        if n.target in CHECKS:
            return None
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        places = self._places.get(n)
        with set_current_meta(n):
            if places is not None and n.target is _REPEATED:
                result = _repeated(places, *args)
            else:
                known = args if places is None else (args[0], places, *args[2:])
                result = self._called(n, known, kwargs)
        if result is None or _is_open(result):
            raise NeedsLengthError(n)
        return result

    @staticmethod
    def _called(n: Node, args: Any, kwargs: Any) -> Any:
        name = str(n.target)
        rule = RULES.get(name)
        if rule is not None and name in BEGINS:
            result = rule(n, *args, **kwargs)
            if result is not None:
                return result
        if not has_lengths((args, kwargs)):
            return n.target(*args, **kwargs)
        if rule is not None:
            return rule(n, *args, **kwargs)
        if n.target in ARITHMETIC:
            return arithmetic(n, args)
        is_pointwise = torch.Tag.pointwise in getattr(n.target, "tags", ())
        return pointwise(n, args, kwargs) if is_pointwise else None

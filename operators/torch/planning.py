"""The calls of a captured module, imported one after the other.

Calls on integers and booleans (positions, masks, lengths) are computed while planning, since they
decide the plan. Calls on weights and buffers are computed when a run needs their numbers. Calls on
both weights and arguments of the module are imported, even if they read only integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch.fx import Node
from torch.fx.node import map_arg

import operators.torch.calls  # noqa: F401 - registers the importers
from fabric import Layout, ShapeError
from fabric.extend import off_from, refuse, tracks_errors
from operators.kernels.progress import progress
from operators.kernels.routed import Routed
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Opaque, Stored, View
from operators.torch.call import Call, Spec, UnsupportedError
from operators.torch.capture import (
    Captured,
    array_of,
    check_is_known,
    dtype_of,
    module_of,
    place_of,
    specs_of,
    target_of,
    written_of,
)
from operators.torch.choices import Choices
from operators.torch.chosen.settling import CHECKS
from operators.torch.importing import Importing
from operators.torch.loops.around import rows_in_loops
from operators.torch.loops.cells import STATES
from operators.torch.loops.rolling import is_empty
from operators.torch.registry import (
    Importer,
    Result,
    Unsupported,
    importer_of,
    run_registered,
    takes_opaque,
    whole,
)
from operators.torch.routed_rows import NoElements, Pairs

_OF_SHAPES: Final = frozenset(
    {
        *(f"aten.{name}_like.default" for name in ("empty", "full", "ones", "zeros")),
        *(f"aten.new_{name}.default" for name in ("empty", "full", "ones", "zeros")),
    }
)
"""Calls that read only the shape and the type of a tensor."""


class Constants:
    """Tensors that do not depend on data, by node.

    ``_make`` has for each tensor a function that returns it. ``_real`` is whether the tensor has
    numbers; tensors on the meta device have none. Numbers of ``_early`` nodes are used while
    planning. Nodes in ``_weights`` depend on weights, nodes in ``_inputs`` on the arguments.
    """

    def __init__(self, captured: Captured) -> None:
        self._make: Final[dict[Node, Callable[[], Any]]] = {
            node: partial(captured.tensors.__getitem__, node)
            for node, tensor in captured.tensors.items()
            if node not in captured.data or not tensor.numel()
        }
        self._real: Final = {node: not captured.tensors[node].is_meta for node in self._make}
        self._early: Final = {
            node for node in self._make if node not in captured.parameters and self._real[node]
        }
        self._folded: Final[set[Node]] = set()
        self._weights: Final = set(captured.parameters)
        self._inputs: Final = set(captured.inputs)

    def __contains__(self, node: Node) -> bool:
        return bool(node in self._make)

    def fold(self, node: Node) -> bool:
        """Fold a call if its arguments do not depend on data; return whether it is folded.

        A result without elements does not depend on data.
        """
        empty = _without_elements(node.meta.get("val"))
        if empty is not None:
            self._make[node] = lambda: empty
            self._real[node] = True
            self._early.add(node)
            return True
        reads = [] if target_of(node) in _OF_SHAPES else node.all_input_nodes
        if not self._make.keys() >= set(reads):
            return False
        reads_weights = not self._weights.isdisjoint(reads)
        reads_inputs = not self._inputs.isdisjoint(reads)
        if reads_weights and reads_inputs:
            return False
        if reads_weights:
            self._weights.add(node)
        if reads_inputs:
            self._inputs.add(node)
        self._real[node] = all(self._real[read] for read in reads)
        if self._real[node] and self._early.issuperset(reads):
            self._early.add(node)
        self._folded.add(node)
        self._make[node] = cache(lambda: self._called(node))
        return True

    def stored(self, node: Node) -> Stored:
        (spec,) = specs_of(node)
        return self._stored(node, spec, self._make[node])

    def pairs(self, node: Node) -> Stored:
        """Return complex numbers as pairs of real ones along a last dimension."""
        (spec,) = specs_of(node)
        make = self._make[node]
        pairs = Spec((*spec.shape, 2), np.dtype(np.float32))
        return self._stored(node, pairs, lambda: torch.view_as_real(make()))

    def single(self, node: Node) -> Stored:
        """Return the float64 number of a node as float32, rounded by PyTorch."""
        make = self._make[node]
        spec = Spec((), np.dtype(np.float32))
        return self._stored(node, spec, lambda: make().to(torch.float32))

    def _stored(self, node: Node, spec: Spec, make: Callable[[], torch.Tensor]) -> Stored:
        def data() -> np.ndarray:
            array = _unwritten(array_of(make()))
            if not tracks_errors() or node not in self._early or make is not self._make[node]:
                return array
            exact = self._exact(node, {})
            return off_from(array, exact.numpy()) if exact.dtype == torch.float64 else array

        read = data if self._real[node] else None
        return Stored.of(node.name, spec.shape, spec.dtype, read, known=node in self._early)

    def _exact(self, node: Node, made: dict[Node, Any]) -> Any:
        """Return a constant, computed in float64; ``made`` caches earlier constants."""
        if node not in made:
            if node in self._folded:
                made[node] = self._called(node, lambda read: self._exact(read, made))
            else:
                made[node] = _in_float64(self._make[node]())
        return made[node]

    def _called(self, node: Node, exact: Callable[[Node], Any] | None = None) -> Any:
        real = self._real[node]

        def argument(read: Node) -> Any:
            if target_of(node) in _OF_SHAPES:
                like = read.meta["val"]
                return torch.empty(like.shape, dtype=like.dtype, device="cpu" if real else "meta")
            value = self._make[read]() if exact is None else exact(read)
            return value if real or not isinstance(value, torch.Tensor) else value.to("meta")

        args = map_arg(node.args, argument)
        kwargs = dict(map_arg(node.kwargs, argument))
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu" if real else "meta")
        if exact is not None:
            args, kwargs = torch.utils._pytree.tree_map(_in_float64, (args, kwargs))
        assert callable(node.target)
        with torch.no_grad():
            return node.target(*args, **kwargs)


def _without_elements(value: Any) -> Any:
    """Return real tensors for traced tensors without elements; None if a tensor has elements."""
    leaves = torch.utils._pytree.tree_leaves(value)
    if not leaves or not all(map(is_empty, leaves)):
        return None
    return torch.utils._pytree.tree_map(lambda x: torch.empty(tuple(x.shape), dtype=x.dtype), value)


def _unwritten(array: np.ndarray) -> np.ndarray:
    """Make an array and its bases read-only, so that data of mapped files are not copied."""
    base: object = array
    while isinstance(base, np.ndarray):
        base.flags.writeable = False
        base = base.base
    return array


def _in_float64(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
        return value.double()
    return torch.float64 if value is torch.float32 else value


class Planned(NamedTuple):
    """A module as kernels; ``missing`` lists the unsupported calls in order."""

    importing: Importing
    outputs: dict[str, View]
    missing: list[Unsupported]
    calls: int


def planned(captured: Captured, schedule: Schedule, choices: Choices) -> Planned:
    rows = rows_in_loops(captured.calls, schedule.tile_rows)
    planning = _Planning(captured, Importing(schedule, choices.of), Constants(captured), rows)
    for node in captured.data:
        if node not in planning.constants:
            planning.take_in(node)
    calls = 0
    for number, node in enumerate(captured.calls, 1):
        progress(f"from_torch plans call {number:,} of {len(captured.calls):,}")
        if _draws(node):
            planning.refuse(node, "it draws random numbers: expected a module in evaluation mode")
            calls += 1
        elif node.target in CHECKS or _folds(planning, node):
            continue
        elif node.target is operator.getitem:
            planning.choose(node)
        else:
            planning.call(node)
            calls += 1
    return Planned(planning.importing, planning.outputs(), planning.missing, calls)


def _folds(planning: _Planning, node: Node) -> bool:
    """Whether a call is folded. The states of a loop depend on data, even from a constant start."""
    return target_of(node) != STATES and planning.constants.fold(node)


@dataclass(frozen=True)
class _Planning:
    """The results of the nodes that are planned so far.

    Attributes:
        rows: the rows of a tile, for each call within a loop.
        values: the result of each node: one view, several views, or None for a tensor that is
            never read.
        behind: nodes that depend on an unsupported call; their values are placeholders.
        missing: the unsupported calls.
    """

    captured: Captured
    importing: Importing
    constants: Constants
    rows: Mapping[Node, int]
    values: dict[Node, Any] = field(default_factory=dict)
    behind: set[Node] = field(default_factory=set)
    missing: list[Unsupported] = field(default_factory=list)

    def take_in(self, node: Node) -> None:
        tensor = self.captured.tensors[node]
        data = None if tensor.is_meta else lambda: array_of(tensor)
        try:
            dtype = dtype_of(tensor.dtype)
        except UnsupportedError as error:
            refuse(f"from_torch is given {node.name}: {error}")
        self.values[node] = View.of(Stored.of(node.name, tuple(tensor.shape), dtype, data))

    def given(self, node: Node) -> Any:
        if node not in self.values and node in self.constants:
            (spec,) = specs_of(node)
            form: object = None
            if 0 in spec.shape:
                form = NoElements()
            elif spec.dtype.kind == "c":
                form = Pairs(View.of(self.constants.pairs(node)))
            source = (
                self.constants.stored(node)
                if form is None
                else Opaque(node.name, spec.shape, spec.dtype, form)
            )
            self.values[node] = View.of(source)
        return self.values.get(node)

    def choose(self, node: Node) -> None:
        source, index = node.args
        assert isinstance(source, Node)
        several = self.given(source)
        self.values[node] = None if several is None else several[index]
        if source in self.behind:
            self.behind.add(node)

    def call(self, node: Node) -> None:
        """Import a call, or record it as unsupported.

        A call behind an unsupported call has unknown arguments. It is recorded only if its target
        has no importer, and if it returns tensors.
        """
        is_behind = not self.behind.isdisjoint(node.all_input_nodes)
        if is_behind:
            self.behind.add(node)
        try:
            check_is_known(node)
            arguments = {read: self._read(node, read) for read in node.all_input_nodes}
            call = _call(node, arguments)
            if None in arguments.values():
                raise UnsupportedError("it reads a result that is not computed")
            rows = self.rows.get(node)
            with nullcontext() if rows is None else self.importing.step_by_step(rows):
                result = imported(self.importing, call)
            _check_results(node, call, result)
            self.values[node] = result
        except (ShapeError, UnsupportedError) as error:
            is_size = not isinstance(node.meta["val"], torch.Tensor | tuple | list)
            if not is_behind or (importer_of(target_of(node)) is None and not is_size):
                self._miss(node, str(error))
            self._stand_in(node)

    def refuse(self, node: Node, needed: str) -> None:
        self._miss(node, needed)
        self._stand_in(node)

    def _stand_in(self, node: Node) -> None:
        self.behind.add(node)
        self.values[node] = _stand_in(node)

    def outputs(self) -> dict[str, View]:
        nodes = [each for each in self.captured.outputs if isinstance(each, Node)]
        names = ["output"] if len(nodes) == 1 else [f"output_{i}" for i in range(len(nodes))]
        views: dict[str, View] = {}
        for name, node in zip(names, nodes, strict=True):
            if node in self.behind:
                continue
            try:
                view = self.given(node)
                if 0 in view.shape:
                    raise UnsupportedError(
                        f"it gives a tensor {list(view.shape)}: expected one with elements"
                    )
                views[name] = self._storable(whole(self.importing, view))
            except UnsupportedError as error:
                self._miss(node, f"its result is stored: {error}")
        return views

    def _storable(self, view: View) -> View:
        """Return a view that can be stored: a copy if its tensor cannot be read in that order."""
        shaped = view.reshaped(view.shape or (1,))
        elements = Layout.tiled(shaped.shape, (1,) * len(shaped.shape))
        return view if shaped.pull(elements) is not None else self.importing.settled(view)

    def _miss(self, node: Node, needed: str) -> None:
        names = written_of(node), target_of(node), module_of(node)
        self.missing.append(Unsupported(*names, *place_of(node), needed))

    def _read(self, node: Node, argument: Node) -> Any:
        """Return the value of a call's argument.

        As in PyTorch, a float64 number beside a float32 tensor with dimensions becomes float32.
        """
        number = argument.meta.get("val")
        if (
            argument in self.constants
            and isinstance(number, torch.Tensor)
            and (number.dtype, number.ndim) == (torch.float64, 0)
            and any(map(_is_float32, node.all_input_nodes))
        ):
            return View.of(self.constants.single(argument))
        return self.given(argument)


def _is_float32(node: Node) -> bool:
    tensor = node.meta.get("val")
    return isinstance(tensor, torch.Tensor) and tensor.ndim > 0 and tensor.dtype == torch.float32


def _call(node: Node, read: Mapping[Node, Any]) -> Call:
    return Call(
        target_of(node),
        node.name,
        map_arg(node.args, read.__getitem__),
        map_arg(node.kwargs, read.__getitem__),
        specs_of(node),
        isinstance(node.meta["val"], tuple | list),
        module_of(node),
        *place_of(node),
    )


def _check_results(node: Node, call: Call, result: Result) -> None:
    if not isinstance(result, tuple):
        return
    for user in node.users:
        place = user.args[1]
        if user.users and result[place] is None and 0 not in call.results[place].shape:
            computed = [str(at) for at, view in enumerate(result) if view is not None]
            raise UnsupportedError(
                f"its result {place} is read, which is not computed: "
                f"expected readers of result {', '.join(computed)}"
            )


def imported(importing: Importing, call: Call) -> Result:
    """Import a call.

    Arguments in opaque forms are brought into a layout unless the importer takes them. If a view
    cannot be read in the importer's order, all views become separate tensors.

    Raises:
        ShapeError: the importer needs tiles that do not exist.
        UnsupportedError: the call cannot be imported.
    """
    leaves = torch.utils._pytree.tree_leaves((call.args, dict(call.kwargs)))
    sources = [leaf.source for leaf in leaves if isinstance(leaf, View)]
    forms = [type(source.form) for source in sources if isinstance(source, Opaque)]
    forms.sort(key=lambda form: form is not NoElements)
    importer = importer_of(call.target, forms)
    if importer is None:
        raise UnsupportedError(
            "expected a call that an importer is registered for; "
            "operators.torch.imports registers yours"
        )
    if forms and Routed not in forms and not takes_opaque(call.target, forms):
        call = _changed(call, partial(whole, importing))
    try:
        result = _run_importer(importing, importer, call)
    except ShapeError:
        result = _run_importer(importing, importer, _changed(call, importing.settled))
    views = result if isinstance(result, tuple) else (result,)
    for spec, view in zip(call.results, views, strict=False):
        if spec.dtype.kind == "c" and not _is_complex(view):
            raise UnsupportedError("it gives complex numbers: expected products or views of such")
    return result


def _is_complex(view: View | None) -> bool:
    source = None if view is None else view.source
    return isinstance(source, Opaque) and isinstance(source.form, Pairs)


def _changed(call: Call, change: Callable[[View], View]) -> Call:
    args, kwargs = torch.utils._pytree.tree_map_only(View, change, (call.args, dict(call.kwargs)))
    return replace(call, args=args, kwargs=kwargs)


def _run_importer(importing: Importing, importer: Importer, call: Call) -> Result:
    """Return an importer's result. A user's result must have PyTorch's shapes and types."""
    result = run_registered(f"the importer of {call.target}", importer, importing, call)
    if importer.__module__.startswith("operators."):
        return result
    views = result if isinstance(result, tuple) else (result,)
    if len(views) != len(call.results):
        raise UnsupportedError(
            f"the number of its importer's results is {len(views)}: expected {len(call.results)}"
        )
    for view, spec in zip(views, call.results, strict=True):
        if view is not None and (view.shape, view.dtype) != (spec.shape, spec.dtype):
            raise UnsupportedError(
                f"its importer gives a tensor {list(view.shape)} of {view.dtype}: expected "
                f"{list(spec.shape)} of {spec.dtype}"
            )
    return result


_WITHOUT_DRAWS: Final = {"p": 0, "dropout_p": 0, "train": False, "training": False}
"""Arguments of calls that may draw random numbers, with the values for which they do not."""


def _draws(node: Node) -> bool:
    """Whether a call draws random numbers. PyTorch tags the calls that may."""
    call = node.target
    if torch.Tag.nondeterministic_seeded not in getattr(call, "tags", ()):
        return False
    for place, argument in enumerate(call._schema.arguments):
        if argument.name in _WITHOUT_DRAWS:
            value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
            value = argument.default_value if value is None else value
            if value == _WITHOUT_DRAWS[argument.name]:
                return False
    return True


def _stand_in(node: Node) -> View | tuple[View, ...] | None:
    try:
        specs = specs_of(node)
    except UnsupportedError:
        return None
    if any(spec.dtype.kind == "c" for spec in specs):
        return None
    views = [View.of(Stored.of(node.name, spec.shape, spec.dtype, None)) for spec in specs]
    return tuple(views) if isinstance(node.meta["val"], tuple | list) else next(iter(views), None)

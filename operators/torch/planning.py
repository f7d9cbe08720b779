"""The calls of a captured module, imported one after the other.

Calls on integers and booleans (positions, masks, lengths) are computed while planning, since they
decide the plan. Numbers made of weights and buffers are computed when a run needs them. Calls that
depend on weights and on the module's arguments stay calls, even on integers: they are not folded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
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
"""Calls that ask a tensor for its shape and type only."""


class Constants:
    """Tensors that do not depend on data, by node.

    ``_make`` has a function for each tensor. Tensors of ``_real`` nodes have numbers, unlike those
    on the meta device; numbers of ``_early`` nodes are used while planning. Nodes in ``_weights``
    depend on weights, nodes in ``_inputs`` on arguments of the module.
    """

    def __init__(self, captured: Captured) -> None:
        self._make: Final[dict[Node, Callable[[], Any]]] = {
            node: _held(tensor)
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
        """Whether a node depends on no data."""
        return bool(node in self._make)

    def fold(self, node: Node) -> bool:
        """Fold a call if all its arguments are independent of data; return whether it was folded.

        Results without elements do not depend on data.
        """
        empty = _without_elements(node.meta.get("val"))
        if empty is not None:
            self._make[node] = lambda: empty
            self._real[node] = True
            self._early.add(node)
            return True
        reads = [] if target_of(node) in _OF_SHAPES else node.all_input_nodes
        if any(each not in self._make for each in reads):
            return False
        reads_weights = any(each in self._weights for each in reads)
        reads_inputs = any(each in self._inputs for each in reads)
        if reads_weights and reads_inputs:
            return False
        if reads_weights:
            self._weights.add(node)
        if reads_inputs:
            self._inputs.add(node)
        self._real[node] = all(self._real[each] for each in reads)
        if self._real[node] and all(each in self._early for each in reads):
            self._early.add(node)
        self._folded.add(node)
        self._make[node] = cache(lambda: self._called(node))
        return True

    def stored(self, node: Node, name: str) -> Stored:
        """Return the tensor of a node."""
        (spec,) = specs_of(node)
        return self._stored(node, name, spec, self._make[node])

    def pairs(self, node: Node) -> Stored:
        """Return complex numbers as pairs of real ones along a last dimension."""
        (spec,) = specs_of(node)
        make = self._make[node]
        pairs = Spec((*spec.shape, 2), np.dtype(np.float32))
        return self._stored(node, node.name, pairs, lambda: torch.view_as_real(make()))

    def single(self, node: Node) -> Stored:
        """Return the single float64 number of a node as float32, rounded by PyTorch."""
        make = self._make[node]
        spec = Spec((), np.dtype(np.float32))
        return self._stored(node, node.name, spec, lambda: make().to(torch.float32))

    def _stored(
        self, node: Node, name: str, spec: Spec, make: Callable[[], torch.Tensor]
    ) -> Stored:
        def data() -> np.ndarray:
            array = _unwritten(array_of(make()))
            if not tracks_errors() or node not in self._early or make is not self._make[node]:
                return array
            exact = self._exact(node, {})
            return off_from(array, exact.numpy()) if exact.dtype == torch.float64 else array

        real = self._real[node]
        known = node in self._early
        return Stored.of(name, spec.shape, spec.dtype, data if real else None, known=known)

    def _exact(self, node: Node, made: dict[Node, Any]) -> Any:
        """Return a constant, computed in float64; ``made`` caches earlier constants."""
        if node not in made:
            if node in self._folded:
                made[node] = self._called(node, lambda each: self._exact(each, made))
            else:
                made[node] = _in_float64(self._make[node]())
        return made[node]

    def _called(self, node: Node, exact: Callable[[Node], Any] | None = None) -> Any:
        real = self._real[node]

        def given(each: Node) -> Any:
            if target_of(node) in _OF_SHAPES:
                like = each.meta["val"]
                return torch.empty(like.shape, dtype=like.dtype, device="cpu" if real else "meta")
            value = self._make[each]() if exact is None else exact(each)
            return value if real or not isinstance(value, torch.Tensor) else value.to("meta")

        args = map_arg(node.args, given)
        kwargs = dict(map_arg(node.kwargs, given))
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu" if real else "meta")
        if exact is not None:
            args, kwargs = torch.utils._pytree.tree_map(_in_float64, (args, kwargs))
        assert callable(node.target)
        with torch.no_grad():
            return node.target(*args, **kwargs)


def _without_elements(value: Any) -> Any:
    """Return real tensors in the place of tensors without elements; None if one has elements."""
    leaves = torch.utils._pytree.tree_leaves(value)
    if not leaves or not all(map(is_empty, leaves)):
        return None
    return torch.utils._pytree.tree_map(
        lambda each: torch.empty(tuple(each.shape), dtype=each.dtype), value
    )


def _held(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    return lambda: tensor


def _unwritten(array: np.ndarray) -> np.ndarray:
    """Return a read-only view, so that data of mapped files are not copied."""
    seen: object = array
    while isinstance(seen, np.ndarray):
        seen.flags.writeable = False
        seen = seen.base
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
    """Import the calls of a captured module."""
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
    """Whether a call depends on no data. A value that a loop carries depends on data."""
    return target_of(node) != STATES and planning.constants.fold(node)


@dataclass(frozen=True)
class _Planning:
    """The state of planning: the nodes so far.

    Attributes:
        rows: of the tiles of calls within loops.
        values: the result of each node: a view, several, or None for a tensor without a reader.
        behind: nodes that depend on an unsupported call; their values are placeholders.
        missing: the unsupported calls.
    """

    captured: Captured
    importing: Importing
    constants: Constants
    rows: Mapping[Node, int] = field(default_factory=dict)
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
            tensor = node.meta.get("val")
            if is_empty(tensor):
                (spec,) = specs_of(node)
                view = View.of(Opaque(node.name, spec.shape, spec.dtype, NoElements()))
                self.values[node] = view
            elif isinstance(tensor, torch.Tensor) and tensor.dtype == torch.complex64:
                (spec,) = specs_of(node)
                form = Pairs(View.of(self.constants.pairs(node)))
                self.values[node] = View.of(Opaque(node.name, spec.shape, spec.dtype, form))
            else:
                self.values[node] = View.of(self.constants.stored(node, node.name))
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
        is_behind = any(each in self.behind for each in node.all_input_nodes)
        if is_behind:
            self.behind.add(node)
        try:
            check_is_known(node)
            read = {each: self._read(node, each) for each in node.all_input_nodes}
            call = _call(node, read)
            if any(each is None for each in read.values()):
                raise UnsupportedError("it reads a result that is not computed")
            rows = self.rows.get(node)
            with nullcontext() if rows is None else self.importing.step_by_step(rows):
                found = imported(self.importing, call)
            _check_results(node, call, found)
            self.values[node] = found
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
        found: dict[str, View] = {}
        for name, node in zip(names, nodes, strict=True):
            if node in self.behind:
                continue
            try:
                view = self.given(node)
                if 0 in view.shape:
                    raise UnsupportedError(
                        f"it gives a tensor {list(view.shape)}: expected one with elements"
                    )
                found[name] = self._storable(whole(self.importing, view))
            except UnsupportedError as error:
                self._miss(node, f"its result is stored: {error}")
        return found

    def _storable(self, view: View) -> View:
        """Return a view that can be stored, copied if no walk of its tensor reads it."""
        shown = view.reshaped(view.shape or (1,))
        single = Layout.tiled(shown.shape, (1,) * len(shown.shape))
        return view if shown.pull(single) is not None else self.importing.settled(view)

    def _miss(self, node: Node, needed: str) -> None:
        names = written_of(node), target_of(node), module_of(node)
        self.missing.append(Unsupported(*names, *place_of(node), needed))

    def _read(self, node: Node, argument: Node) -> Any:
        """Return the value of a call's argument.

        PyTorch treats a single float64 number beside a float32 tensor with dimensions as float32;
        so does this.
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
    """Return a call with the values of its arguments."""
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


def _check_results(node: Node, call: Call, found: Result) -> None:
    if not isinstance(found, tuple):
        return
    for user in node.users:
        place = user.args[1]
        if user.users and found[place] is None and 0 not in call.results[place].shape:
            computed = [str(at) for at, view in enumerate(found) if view is not None]
            raise UnsupportedError(
                f"its result {place} is read, which is not computed: "
                f"expected readers of result {', '.join(computed)}"
            )


def imported(importing: Importing, call: Call) -> Result:
    """Import a call; arguments in opaque forms become whole unless the importer takes them.

    Views that no walk of their tensor can read become separate tensors.

    Raises:
        ShapeError: its importer needs tiles that do not exist.
        UnsupportedError: it cannot be imported.
    """
    leaves = torch.utils._pytree.tree_leaves((call.args, dict(call.kwargs)))
    views = [each for each in leaves if isinstance(each, View)]
    forms = [type(each.source.form) for each in views if isinstance(each.source, Opaque)]
    forms.sort(key=lambda form: form is not NoElements)
    importer = importer_of(call.target, forms)
    if importer is None:
        raise UnsupportedError(
            "expected a call that an importer is registered for; "
            "operators.torch.imports registers yours"
        )
    if not forms or Routed in forms or takes_opaque(call.target, forms):
        given = call
    else:
        given = _changed(call, lambda each: whole(importing, each))
    try:
        found = _given(importing, importer, given)
    except ShapeError:
        settled = _changed(given, importing.settled)
        found = _given(importing, importer, settled)
    given_back = found if isinstance(found, tuple) else (found,)
    for spec, view in zip(call.results, given_back, strict=False):
        if spec.dtype.kind == "c" and not _is_complex(view):
            raise UnsupportedError("it gives complex numbers: expected products or views of such")
    return found


def _is_complex(view: View | None) -> bool:
    source = None if view is None else view.source
    return isinstance(source, Opaque) and isinstance(source.form, Pairs)


def _changed(call: Call, change: Callable[[View], View]) -> Call:
    def made(each: object) -> object:
        return change(each) if isinstance(each, View) else each

    args, kwargs = torch.utils._pytree.tree_map(made, (call.args, dict(call.kwargs)))
    return replace(call, args=args, kwargs=kwargs)


def _given(importing: Importing, importer: Importer, call: Call) -> Result:
    """Return an importer's result; a user's must match the shapes and types of PyTorch's."""
    found = run_registered(f"the importer of {call.target}", importer, importing, call)
    if importer.__module__.startswith("operators."):
        return found
    views = found if isinstance(found, tuple) else (found,)
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
    return found


_CHANCES: Final = {"p": 0, "dropout_p": 0, "train": False, "training": False}
"""Arguments of calls that may draw, and their values in calls that do not draw."""


def _draws(node: Node) -> bool:
    """Whether a call draws random numbers; torch tags the calls that may."""
    call = node.target
    if not isinstance(call, torch._ops.OpOverload):
        return False
    if torch.Tag.nondeterministic_seeded not in call.tags:
        return False
    for place, argument in enumerate(call._schema.arguments):
        given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.name in _CHANCES:
            value = given if given is not None else argument.default_value
            if value == _CHANCES[argument.name]:
                return False
    return True


def _stand_in(node: Node) -> View | tuple[View, ...] | None:
    try:
        specs = specs_of(node)
    except UnsupportedError:
        return None
    if any(each.dtype.kind == "c" for each in specs):
        return None
    views = [View.of(Stored.of(node.name, each.shape, each.dtype, None)) for each in specs]
    return tuple(views) if isinstance(node.meta["val"], tuple | list) else next(iter(views), None)

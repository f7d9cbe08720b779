"""Loops that were traced step by step, rolled into one body with a carried state.

A trace has the calls of ``for t in range(T)`` T times. They are rolled into one body on all steps,
as the layers in ``cells``, if every step has the same calls and reads only results of the previous
step, parts of tensors that advance with the steps, and tensors from before the loop.
"""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch.fx import Graph, GraphModule, Interpreter, Node
from torch.fx.node import map_arg
from torch.fx.traceback import preserve_node_meta, set_current_meta

from operators.torch.loops.cells import behind, enter, new_loop, states

_LEAST: Final = 8
"""Loops with fewer steps are not rolled."""

_LEAST_COUNTED: Final = 2
_MOST: Final = 1 << 16
"""The most steps of a loop that is counted."""

_SELECT: Final = "aten.select.int"
_LINEAR: Final = "aten.linear.default"
_STACK: Final = "aten.stack.default"
_UNBIND: Final = "aten.unbind.int"


@dataclass(frozen=True)
class _Moving:
    """The places of a tensor that the steps read, one after the other along a dimension."""

    tensor: Node
    dim: int
    first: int
    stride: int


@dataclass(frozen=True, eq=False)
class Repeat:
    """Calls that a trace repeats, one step after the other.

    Attributes:
        steps: the calls of each step, in the same order.
        carried: nodes before the loop that the first step reads in place of a call of the previous
            step, and the number of that call.
        moving: parts of tensors that advance with the steps, by the call or the argument of the
            first step that reads them.
        stacked: nodes behind the loop that join a call's results of all steps, and the call.
    """

    steps: tuple[tuple[Node, ...], ...]
    carried: dict[Node, dict[Node, int]] = field(default_factory=dict)
    moving: dict[Node, _Moving] = field(default_factory=dict)
    stacked: dict[Node, int] = field(default_factory=dict)


def has_loops(graph: Graph) -> bool:
    """Whether a trace may have loops that can be rolled."""
    own = torch.ops.higher_order.scan, torch.ops.higher_order.while_loop
    return any(node.target in own for node in graph.nodes) or bool(repeats_of(graph))


def repeats_of(graph: Graph) -> tuple[Repeat, ...]:
    """Return the loops of a trace; they do not overlap."""
    calls = [node for node in graph.nodes if node.op == "call_function"]
    found, first = [], 0
    for start, length, count in _runs(calls):
        if start < first:
            continue
        repeat = _checked(calls, start, length, count)
        if repeat is not None:
            found.append(repeat)
            first = start + length * count
    return tuple(found)


def _runs(calls: Sequence[Node]) -> Iterator[tuple[int, int, int]]:
    """Yield the runs of repeated calls: the first call, the calls of a step, and the steps."""
    numbers: dict[object, int] = {}
    kinds = np.array([numbers.setdefault(_kind(each), len(numbers)) for each in calls])
    found = []
    for length in range(1, len(kinds) // _LEAST + 1):
        same = np.concatenate([[False], kinds[length:] == kinds[:-length], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            count = (end - begin) // length + 1
            if count >= _LEAST:
                found += [
                    (begin + shift, length, (end - begin - shift) // length + 1)
                    for shift in range(length)
                ]
    # The longest run first, then the shortest steps, then the earliest.
    found = [each for each in found if each[2] >= _LEAST]
    yield from sorted(found, key=lambda each: (-each[1] * each[2], each[1], each[0]))


def is_empty(value: Any) -> bool:
    """Whether ``value`` is a tensor known to have no elements."""
    return isinstance(value, torch.Tensor) and any(
        isinstance(size, int) and size == 0 for size in value.shape
    )


def _kind(node: Node) -> object:
    """Return a key that is equal for calls that differ in the tensors and places they read only."""
    args = node.args
    if str(node.target) == _SELECT:
        args = args[:2]
    value = node.meta.get("val")
    if is_empty(value):
        # A call without elements is folded, so no loop has it.
        return node
    # Data-dependent sizes have a text but no equality.
    shape = (str(value.shape), value.dtype) if isinstance(value, torch.Tensor) else None
    plain = map_arg((args, dict(node.kwargs)), lambda _: "tensor")
    return str(node.target), repr(plain), shape


def _checked(calls: Sequence[Node], start: int, length: int, count: int) -> Repeat | None:
    """Return repeated calls as a loop; None if they do not form one."""
    steps = tuple(
        tuple(calls[start + step * length : start + (step + 1) * length]) for step in range(count)
    )
    repeat = Repeat(steps)
    place = {node: (step, at) for step, its in enumerate(steps) for at, node in enumerate(its)}
    for at in range(length):
        if str(steps[0][at].target) == _SELECT and _places(steps, at) > 1:
            if not _moves(repeat, place, at):
                return None
            continue
        nodes = [_nodes(each[at]) for each in steps]
        if len({len(each) for each in nodes}) != 1:
            return None
        for which in range(len(nodes[0])):
            if not _is_read(repeat, place, [each[which] for each in nodes], steps[0][at]):
                return None
    if not repeat.carried or not _is_given(repeat, place):
        return None
    return repeat


def _nodes(node: Node) -> list[Node]:
    leaves = torch.utils._pytree.tree_leaves((node.args, dict(node.kwargs)))
    return [each for each in leaves if isinstance(each, Node)]


def _places(steps: Sequence[Sequence[Node]], at: int) -> int:
    """Return the number of distinct constant places that a call selects in all steps."""
    return len({each[at].args[2] for each in steps if isinstance(each[at].args[2], int)})


def _moves(repeat: Repeat, place: Mapping[Node, tuple[int, int]], at: int) -> bool:
    """Whether a call selects one place after the other of a tensor in front of the loop."""
    nodes = [each[at] for each in repeat.steps]
    tensors = {node.args[0] for node in nodes}
    places = [node.args[2] for node in nodes]
    tensor = next(iter(tensors))
    if len(tensors) > 1 or tensor in place or not isinstance(tensor, Node):
        return False
    if not all(isinstance(each, int) for each in places):
        return False
    dim = int(nodes[0].args[1])
    size = tensor.meta["val"].shape[dim]
    seen = [each % size for each in places]
    strides = {after - before for before, after in pairwise(seen)}
    if len(strides) > 1 or next(iter(strides)) not in (1, -1):
        return False
    repeat.moving[nodes[0]] = _Moving(tensor, dim, seen[0], next(iter(strides)))
    return True


def _is_read(
    repeat: Repeat, place: Mapping[Node, tuple[int, int]], read: Sequence[Node], by: Node
) -> bool:
    """Whether all steps read alike: one tensor, the previous step's result, or advancing parts."""
    first, *others = read
    where = [place.get(each) for each in others]
    if first in place:
        expected = place[first][1]
        return all(each == (step + 1, expected) for step, each in enumerate(where))
    if all(each is None for each in where):
        if all(each is first for each in others):
            return True
        moved = _unbound(read)
        if moved is not None:
            repeat.moving[first] = moved
        return moved is not None
    found = where[0]
    if found is None or any(each != (step, found[1]) for step, each in enumerate(where)):
        return False
    value, given = first.meta.get("val"), repeat.steps[0][found[1]].meta.get("val")
    before = repeat.carried.setdefault(by, {})
    return _are_alike(value, given) and before.setdefault(first, found[1]) == found[1]


def _are_alike(one: Any, other: Any) -> bool:
    return (
        isinstance(one, torch.Tensor)
        and isinstance(other, torch.Tensor)
        and (one.shape, one.dtype) == (other.shape, other.dtype)
        and one.is_floating_point()
    )


def _unbound(read: Sequence[Node]) -> _Moving | None:
    """Return the places that are read of a tensor unbound before the loop."""
    if any(each.target is not operator.getitem for each in read):
        return None
    sources = {each.args[0] for each in read}
    source = next(iter(sources))
    if len(sources) > 1 or not isinstance(source, Node) or str(source.target) != _UNBIND:
        return None
    places = [each.args[1] for each in read]
    first = places[0]
    if not isinstance(first, int) or places != list(range(first, first + len(read))):
        return None
    tensor, dim = source.args[0], source.args[1] if len(source.args) > 1 else 0
    assert isinstance(tensor, Node)
    assert isinstance(dim, int)
    return _Moving(tensor, dim, first, 1)


def _is_given(repeat: Repeat, place: Mapping[Node, tuple[int, int]]) -> bool:
    """Whether readers behind the loop read all steps together, or the last step."""
    for node, (step, at) in place.items():
        for user in node.users:
            if user in place:
                if place[user][0] not in (step, step + 1):
                    return False
            elif str(user.target) == _STACK and _joins(user, [its[at] for its in repeat.steps]):
                repeat.stacked[user] = at
            elif step != len(repeat.steps) - 1:
                return False
    return True


def _joins(node: Node, given: list[Node]) -> bool:
    """Whether a node joins all results, from the first on or from the last."""
    parts = node.args[0]
    assert isinstance(parts, list | tuple)
    return list(parts) in (given, given[::-1])


class Rolled(torch.nn.Module):
    """A traced module with its loops rolled into bodies."""

    def __init__(self, traced: GraphModule) -> None:
        super().__init__()
        self.traced = traced
        self.repeats: Final = repeats_of(traced.graph)
        self.counted: Final = {
            node: loop
            for node in traced.graph.nodes
            if node.target is torch.ops.higher_order.while_loop
            and (loop := _counted_of(traced, node)) is not None
        }

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        with preserve_node_meta():
            return _Rolling(self).run(*leaves, enable_io_processing=False)


class _Rolling(Interpreter):
    """Runs a trace; every loop runs as a whole at its first call."""

    def __init__(self, rolled: Rolled) -> None:
        super().__init__(rolled.traced, garbage_collect_values=False)
        self._loops: Final = {repeat.steps[0][0]: repeat for repeat in rolled.repeats}
        self._counted: Final = rolled.counted
        self._within: Final = {
            node for repeat in rolled.repeats for step in repeat.steps for node in step
        }
        self._stacked: Final[dict[Node, Any]] = {}

    def run_node(self, n: Node) -> Any:
        repeat = self._loops.get(n)
        if repeat is not None:
            self._roll(repeat)
        if n in self._stacked:
            return self._stacked[n]
        if n.target is torch.ops.higher_order.scan:
            return self._scan(*self.fetch_args_kwargs_from_env(n)[0])
        if n in self._counted:
            return self._while(n, self._counted[n])
        if n in self._within:
            return self.env.get(n)
        return super().run_node(n)

    @staticmethod
    def _scan(step: GraphModule, first: Sequence[Any], xs: Sequence[Any], others: Any) -> Any:
        """Return the states behind the last step, and the results of all steps."""
        return _at_once(step, list(first), list(xs), tuple(others), xs[0].shape[0])

    def _while(self, node: Node, loop: _Counted) -> Any:
        """Return the carried tensors of a loop with a known number of steps."""
        (_, step, first, others), _ = self.fetch_args_kwargs_from_env(node)
        count, counts, last = loop
        going = [number for number in range(len(first)) if number not in counts]

        def body(*given: Any) -> Any:
            states_, rest = given[: len(going)], given[len(going) :]
            values = dict(zip(going, states_, strict=True))
            values |= dict(zip(counts, rest[: len(counts)], strict=True))
            found = step(*(values[at] for at in range(len(first))), *rest[len(counts) :])
            return tuple(found[at] for at in going)

        begun_states = [first[at] for at in going]
        ends = _at_once(
            body, begun_states, list(counts.values()), tuple(others), count, is_known=True
        )
        result = dict(zip(going, ends, strict=True)) | last
        return tuple(result[at] for at in range(len(first)))

    def _roll(self, repeat: Repeat) -> None:
        loop, count = new_loop(), len(repeat.steps)
        carried = list(
            {(node, at): None for its in repeat.carried.values() for node, at in its.items()}
        )
        body = _Body(self.env, repeat, loop)
        for number, key in enumerate(carried):
            body.before[key] = states(self.env[key[0]], count, loop, number)
        for node in repeat.steps[0]:
            with set_current_meta(node):
                body.call(node)
        given = [body.of_all_steps(node) for node in repeat.steps[0]]
        ends = {at: behind(given[at], loop, number) for number, (_, at) in enumerate(carried)}
        for at, node in enumerate(repeat.steps[-1]):
            found = ends.get(at)
            if found is None and any(user not in self._within for user in node.users):
                found = given[at][-1]
            self.env[node] = found
        for node, at in repeat.stacked.items():
            dim = node.args[1] if len(node.args) > 1 else 0
            backwards = node.args[0][0] is repeat.steps[-1][at]
            found = given[at].flip((0,)) if backwards else given[at]
            self._stacked[node] = found.movedim(0, dim)


class _Body:
    """The calls of one step, applied to all steps together along a first dimension.

    Tensors that depend on no state are computed for all steps before the loop. They enter it step
    by step if a call that depends on a state reads them.

    Attributes:
        before: the states before each step, by the node that the first step reads and the call that
            later steps read.
    """

    def __init__(self, env: Mapping[Node, Any], repeat: Repeat, loop: int) -> None:
        self.before: Final[dict[tuple[Node, int], Any]] = {}
        self._env: Final = env
        self._repeat: Final = repeat
        self._loop: Final = loop
        self._of_all: Final[dict[Node, Any]] = {}
        self._of_one: Final[dict[Node, Any]] = {}
        self._going: Final[set[Node]] = set()
        self._entered: Final[dict[Node, Any]] = {}

    def call(self, node: Node) -> None:
        repeat = self._repeat
        if node in repeat.moving:
            self._of_all[node] = self._moved(node)
            return
        carried = repeat.carried.get(node, {})
        read = node.all_input_nodes
        if any(each in carried or each in self._going for each in read):
            self._going.add(node)
        values: list[Any] = []
        places: dict[Node, int] = {}
        for each in read:
            value = self._read(node, each, carried)
            if value is not None:
                places[each] = len(values)
                values.append(value)
        if not places:
            args, kwargs = map_arg((node.args, dict(node.kwargs)), self._alone)
            self._of_one[node] = node.target(*args, **kwargs)
            return

        def called(*steps: Any) -> Any:
            def given(other: Node) -> Any:
                return steps[places[other]] if other in places else self._alone(other)

            args, kwargs = map_arg((node.args, dict(node.kwargs)), given)
            return node.target(*args, **kwargs)

        of_rows = str(node.target) == _LINEAR and places.keys() == {node.args[0]}
        if node.target is operator.getitem or of_rows:
            # Rows of all steps are rows.
            self._of_all[node] = called(*values)
        else:
            self._of_all[node] = torch.vmap(called)(*values)

    def of_all_steps(self, node: Node) -> Any:
        """Return a call's results of all steps; None if they are not tensors."""
        if node in self._of_all:
            found = self._of_all[node]
            return found if isinstance(found, torch.Tensor) else None
        found = self._of_one[node]
        return found.expand(len(self._repeat.steps), *found.shape).clone()

    def _moved(self, node: Node) -> Any:
        its, count = self._repeat.moving[node], len(self._repeat.steps)
        found = self._env[its.tensor].movedim(its.dim, 0)
        if its.stride < 0:
            return found.narrow(0, its.first - count + 1, count).flip((0,))
        return found.narrow(0, its.first, count)

    def _read(self, node: Node, other: Node, carried: Mapping[Node, int]) -> Any:
        """Return the results that a call reads in all steps; None if all steps read the same."""
        if other in carried:
            return self.before[other, carried[other]]
        if other in self._repeat.moving and other not in self._of_all:
            self._of_all[other] = self._moved(other)
        value = self._of_all.get(other)
        if value is None or other in self._going or node not in self._going:
            return value
        if other not in self._entered:
            self._entered[other] = enter(value, len(self._repeat.steps), self._loop)
        return self._entered[other]

    def _alone(self, other: Node) -> Any:
        return self._of_one[other] if other in self._of_one else self._env[other]


def _at_once(
    step: Any,
    first: list[Any],
    xs: list[Any],
    others: tuple[Any, ...],
    count: int,
    *,
    is_known: bool = False,
) -> Any:
    """Return last states and all results of a step that takes one place of each of ``xs``.

    ``is_known``: ``xs`` depend on no data, and need not enter the loop step by step.
    """
    loop = new_loop()
    before = [states(each, count, loop, number) for number, each in enumerate(first)]
    entered = xs if is_known else [enter(x, count, loop) for x in xs]
    dims = (*(0 for _ in (*before, *entered)), *(None for _ in others))
    given = torch.vmap(step, dims)(*before, *entered, *others)
    ends = [behind(given[number], loop, number) for number in range(len(first))]
    return (*ends, *given[len(first) :])


def _known(node: Node) -> torch.Tensor | None:
    """Return the constant of a node without inputs: an integer before a loop."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.is_floating_point() or value.numel() != 1:
        return None
    if node.op == "get_attr":
        found = node.graph.owning_module
        for name in str(node.target).split("."):
            found = getattr(found, name)
        return found if type(found) in (torch.Tensor, torch.nn.Buffer) else None
    if node.op != "call_function" or not callable(node.target):
        return None
    read = {each: _known(each) for each in node.all_input_nodes}
    if any(each is None for each in read.values()):
        return None
    args, kwargs = map_arg((node.args, dict(node.kwargs)), read.__getitem__)
    found = node.target(*args, **kwargs)
    return found if isinstance(found, torch.Tensor) else None


class _Counted(NamedTuple):
    """A loop with a number of steps that known integers decide.

    Attributes:
        counts: the carried integers before each step, by number.
        last: the carried integers behind the last step.
    """

    steps: int
    counts: dict[int, torch.Tensor]
    last: dict[int, torch.Tensor]


def _counted_of(traced: GraphModule, node: Node) -> _Counted | None:
    """Return the number of steps of a loop and its integers; None if data decide the steps."""
    goes_on, step, first = node.args[:3]
    assert isinstance(goes_on, Node)
    assert isinstance(step, Node)
    assert isinstance(first, list | tuple)
    condition, body = getattr(traced, str(goes_on.target)), getattr(traced, str(step.target))
    begun = {at: _known(each) for at, each in enumerate(first) if isinstance(each, Node)}
    numbers = {at: each for at, each in begun.items() if each is not None}
    before: list[dict[int, torch.Tensor]] = []
    while len(before) <= _MOST:
        answer = _worked_out(condition, numbers)
        if answer is None or answer[0] is None:
            return None
        if not bool(answer[0]):
            break
        before.append(numbers)
        after = _worked_out(body, numbers)
        if after is None:
            return None
        numbers = {at: after[at] for at in numbers if after[at] is not None}
        if numbers.keys() != before[-1].keys():
            return None
    if not _LEAST_COUNTED <= len(before) <= _MOST:
        return None
    counts = {at: torch.stack([each[at] for each in before]) for at in numbers}
    return _Counted(len(before), counts, numbers)


def _worked_out(graph: GraphModule, numbers: Mapping[int, torch.Tensor]) -> list[Any] | None:
    """Return a graph's results as far as known numbers decide them; None if they decide nothing."""
    values: dict[Node, Any] = {}
    place = 0
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            if place in numbers:
                values[node] = numbers[place]
            place += 1
        elif node.op == "call_function" and all(each in values for each in node.all_input_nodes):
            args, kwargs = map_arg((node.args, dict(node.kwargs)), values.__getitem__)
            values[node] = node.target(*args, **kwargs)
        elif node.op == "output":
            given = node.args[0]
            given = given if isinstance(given, list | tuple) else (given,)
            found = [values.get(each) if isinstance(each, Node) else each for each in given]
            return found if any(each is not None for each in found) else None
    return None

"""Loops that were traced step by step, rolled into one body with a carried state.

A trace has the calls of ``for t in range(T)`` T times. They become one body that computes all steps
in one tensor, as for the layers in ``cells``. Every step must have the same calls. It may read
results of the previous step, parts of tensors that advance with the steps, and tensors from before
the loop.
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
"""Repeated calls with fewer steps are not rolled."""

_LEAST_COUNTED: Final = 2
_MOST_COUNTED: Final = 1 << 16
"""A ``while_loop`` is rolled if it has from ``_LEAST_COUNTED`` to ``_MOST_COUNTED`` steps."""

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
    """Calls that a trace repeats step by step.

    Attributes:
        steps: the calls of each step, in the same order.
        carried: for each call of the first step, the nodes before the loop that it reads, each with
            the number of the call whose result replaces the node in later steps.
        moving: parts of tensors that advance with the steps, by the call or the argument of the
            first step.
        stacked: nodes behind the loop that join the results of all steps, each with the number of
            the joined call.
    """

    steps: tuple[tuple[Node, ...], ...]
    carried: dict[Node, dict[Node, int]] = field(default_factory=dict)
    moving: dict[Node, _Moving] = field(default_factory=dict)
    stacked: dict[Node, int] = field(default_factory=dict)


def has_loops(graph: Graph) -> bool:
    """Whether a trace may have loops that can be rolled."""
    loops = torch.ops.higher_order.scan, torch.ops.higher_order.while_loop
    return any(node.target in loops for node in graph.nodes) or bool(repeats_of(graph))


def repeats_of(graph: Graph) -> tuple[Repeat, ...]:
    calls = [node for node in graph.nodes if node.op == "call_function"]
    repeats, first = [], 0
    for start, length, count in _runs(calls):
        if start < first:
            continue
        repeat = _checked(calls, start, length, count)
        if repeat is not None:
            repeats.append(repeat)
            first = start + length * count
    return tuple(repeats)


def _runs(calls: Sequence[Node]) -> Iterator[tuple[int, int, int]]:
    """Yield runs of repeated calls: the first call, the calls of a step, and the steps.

    The longest run is first. Among equally long runs, shorter steps come first, then earlier runs.
    """
    numbers: dict[object, int] = {}
    kinds = np.array([numbers.setdefault(_kind(call), len(numbers)) for call in calls])
    runs = []
    for length in range(1, len(kinds) // _LEAST + 1):
        same = np.concatenate([[False], kinds[length:] == kinds[:-length], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            for start in range(begin, begin + length):
                count = (end - start) // length + 1
                if count >= _LEAST:
                    runs.append((start, length, count))
    yield from sorted(runs, key=lambda run: (-run[1] * run[2], run[1], run[0]))


def is_empty(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and any(
        isinstance(size, int) and size == 0 for size in value.shape
    )


def _kind(node: Node) -> object:
    """Return a key that is equal for calls that differ only in the tensors and places they read."""
    args = node.args
    if str(node.target) == _SELECT:
        args = args[:2]
    value = node.meta.get("val")
    if is_empty(value):
        # A call without elements is folded, so it equals no other call.
        return node
    # Data-dependent sizes cannot be compared, but their texts can.
    shape = (str(value.shape), value.dtype) if isinstance(value, torch.Tensor) else None
    plain = map_arg((args, dict(node.kwargs)), lambda _: "tensor")
    return str(node.target), repr(plain), shape


def _checked(calls: Sequence[Node], start: int, length: int, count: int) -> Repeat | None:
    """Return repeated calls as a loop; None if they do not form one."""
    steps = tuple(
        tuple(calls[start + step * length : start + (step + 1) * length]) for step in range(count)
    )
    repeat = Repeat(steps)
    place = {node: (step, at) for step, own in enumerate(steps) for at, node in enumerate(own)}
    for at in range(length):
        if str(steps[0][at].target) == _SELECT and _places(steps, at) > 1:
            if not _moves(repeat, place, at):
                return None
            continue
        reads = [_nodes(step[at]) for step in steps]
        if len(set(map(len, reads))) != 1:
            return None
        for argument in zip(*reads, strict=True):
            if not _reads_alike(repeat, place, argument, steps[0][at]):
                return None
    if not repeat.carried or not _is_read_after(repeat, place):
        return None
    return repeat


def _nodes(node: Node) -> list[Node]:
    leaves = torch.utils._pytree.tree_leaves((node.args, dict(node.kwargs)))
    return [each for each in leaves if isinstance(each, Node)]


def _places(steps: Sequence[Sequence[Node]], at: int) -> int:
    """Return the number of distinct constant places that a call selects in all steps."""
    return len({step[at].args[2] for step in steps if isinstance(step[at].args[2], int)})


def _moves(repeat: Repeat, place: Mapping[Node, tuple[int, int]], at: int) -> bool:
    """Whether a call selects neighbouring places, step by step, of a tensor before the loop."""
    nodes = [step[at] for step in repeat.steps]
    tensors = {node.args[0] for node in nodes}
    places = [node.args[2] for node in nodes]
    tensor = next(iter(tensors))
    if len(tensors) > 1 or tensor in place or not isinstance(tensor, Node):
        return False
    if not all(isinstance(index, int) for index in places):
        return False
    dim = int(nodes[0].args[1])
    size = tensor.meta["val"].shape[dim]
    places = [index % size for index in places]
    strides = {after - before for before, after in pairwise(places)}
    if strides not in ({1}, {-1}):
        return False
    repeat.moving[nodes[0]] = _Moving(tensor, dim, places[0], *strides)
    return True


def _reads_alike(
    repeat: Repeat, place: Mapping[Node, tuple[int, int]], read: Sequence[Node], by: Node
) -> bool:
    """Whether all steps read alike: one tensor, the previous step's result, or advancing parts.

    ``read`` has the node that each step reads, and ``by`` is the reading call of the first step.
    """
    first, *others = read
    where = [place.get(node) for node in others]
    if first in place:
        expected = place[first][1]
        return all(at == (step, expected) for step, at in enumerate(where, 1))
    if all(at is None for at in where):
        if all(node is first for node in others):
            return True
        moved = _unbound(read)
        if moved is not None:
            repeat.moving[first] = moved
        return moved is not None
    if where[0] is None:
        return False
    number = where[0][1]
    if any(at != (step, number) for step, at in enumerate(where)):
        return False
    before, after = first.meta.get("val"), repeat.steps[0][number].meta.get("val")
    carried = repeat.carried.setdefault(by, {})
    return _are_alike(before, after) and carried.setdefault(first, number) == number


def _are_alike(one: Any, other: Any) -> bool:
    return (
        isinstance(one, torch.Tensor)
        and isinstance(other, torch.Tensor)
        and (one.shape, one.dtype) == (other.shape, other.dtype)
        and one.is_floating_point()
    )


def _unbound(read: Sequence[Node]) -> _Moving | None:
    """Return the places of a tensor that the steps read, if it was unbound before the loop."""
    if any(node.target is not operator.getitem for node in read):
        return None
    sources = {node.args[0] for node in read}
    source = next(iter(sources))
    if len(sources) > 1 or not isinstance(source, Node) or str(source.target) != _UNBIND:
        return None
    places = [node.args[1] for node in read]
    first = places[0]
    if not isinstance(first, int) or places != list(range(first, first + len(read))):
        return None
    tensor, dim = source.args[0], source.args[1] if len(source.args) > 1 else 0
    assert isinstance(tensor, Node)
    assert isinstance(dim, int)
    return _Moving(tensor, dim, first, 1)


def _is_read_after(repeat: Repeat, place: Mapping[Node, tuple[int, int]]) -> bool:
    """Whether each reader behind the loop reads all steps together, or the last step."""
    for node, (step, at) in place.items():
        for user in node.users:
            if user in place:
                if place[user][0] not in (step, step + 1):
                    return False
            elif str(user.target) == _STACK and _joins(user, [own[at] for own in repeat.steps]):
                repeat.stacked[user] = at
            elif step != len(repeat.steps) - 1:
                return False
    return True


def _joins(node: Node, results: list[Node]) -> bool:
    """Whether a node joins all results, in their order or backwards."""
    parts = node.args[0]
    assert isinstance(parts, list | tuple)
    return list(parts) in (results, results[::-1])


class Rolled(torch.nn.Module):
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
        return _at_once(step, list(first), list(xs), tuple(others), xs[0].shape[0])

    def _while(self, node: Node, loop: _Counted) -> Any:
        (_, step, first, others), _ = self.fetch_args_kwargs_from_env(node)
        count, counts, last = loop
        carried = [number for number in range(len(first)) if number not in counts]

        def body(*arguments: Any) -> Any:
            states_, rest = arguments[: len(carried)], arguments[len(carried) :]
            values = dict(zip(carried, states_, strict=True))
            values |= dict(zip(counts, rest[: len(counts)], strict=True))
            results = step(*(values[at] for at in range(len(first))), *rest[len(counts) :])
            return tuple(results[at] for at in carried)

        begun = [first[at] for at in carried]
        ends = _at_once(body, begun, list(counts.values()), tuple(others), count, is_known=True)
        result = dict(zip(carried, ends, strict=True)) | last
        return tuple(result[at] for at in range(len(first)))

    def _roll(self, repeat: Repeat) -> None:
        loop, count = new_loop(), len(repeat.steps)
        carried = list(
            {(node, at): None for read in repeat.carried.values() for node, at in read.items()}
        )
        body = _Body(self.env, repeat, loop)
        for number, key in enumerate(carried):
            body.before[key] = states(self.env[key[0]], count, loop, number)
        for node in repeat.steps[0]:
            with set_current_meta(node):
                body.call(node)
        results = [body.of_all_steps(node) for node in repeat.steps[0]]
        ends = {at: behind(results[at], loop, number) for number, (_, at) in enumerate(carried)}
        for at, node in enumerate(repeat.steps[-1]):
            last = ends.get(at)
            if last is None and any(user not in self._within for user in node.users):
                last = results[at][-1]
            self.env[node] = last
        for node, at in repeat.stacked.items():
            dim = node.args[1] if len(node.args) > 1 else 0
            backwards = node.args[0][0] is repeat.steps[-1][at]
            joined = results[at].flip((0,)) if backwards else results[at]
            self._stacked[node] = joined.movedim(0, dim)


class _Body:
    """The calls of one step, applied to all steps together along a first dimension.

    Tensors that depend on no state are computed for all steps before the loop. They enter the loop
    step by step if a call that depends on a state reads them.

    Attributes:
        before: the states before each step, by the node that the first step reads and the number of
            the call that later steps read.
    """

    def __init__(self, env: Mapping[Node, Any], repeat: Repeat, loop: int) -> None:
        self.before: Final[dict[tuple[Node, int], Any]] = {}
        self._env: Final = env
        self._repeat: Final = repeat
        self._loop: Final = loop
        self._of_all: Final[dict[Node, Any]] = {}
        self._of_one: Final[dict[Node, Any]] = {}
        self._stateful: Final[set[Node]] = set()
        self._entered: Final[dict[Node, Any]] = {}

    def call(self, node: Node) -> None:
        repeat = self._repeat
        if node in repeat.moving:
            self._of_all[node] = self._moved(node)
            return
        carried = repeat.carried.get(node, {})
        read = node.all_input_nodes
        if any(argument in carried or argument in self._stateful for argument in read):
            self._stateful.add(node)
        values = {
            argument: value
            for argument in read
            if (value := self._read(node, argument, carried)) is not None
        }

        def called(*of_steps: Any) -> Any:
            own = dict(zip(values, of_steps, strict=True))

            def value_of(argument: Node) -> Any:
                return own[argument] if argument in own else self._alone(argument)

            args, kwargs = map_arg((node.args, dict(node.kwargs)), value_of)
            return node.target(*args, **kwargs)

        of_rows = str(node.target) == _LINEAR and values.keys() == {node.args[0]}
        if not values:
            self._of_one[node] = called()
        elif node.target is operator.getitem or of_rows:
            # The rows of all steps are one matrix.
            self._of_all[node] = called(*values.values())
        else:
            self._of_all[node] = torch.vmap(called)(*values.values())

    def of_all_steps(self, node: Node) -> Any:
        if node in self._of_all:
            results = self._of_all[node]
            return results if isinstance(results, torch.Tensor) else None
        result = self._of_one[node]
        return result.expand(len(self._repeat.steps), *result.shape).clone()

    def _moved(self, node: Node) -> Any:
        moving, count = self._repeat.moving[node], len(self._repeat.steps)
        places = self._env[moving.tensor].movedim(moving.dim, 0)
        if moving.stride < 0:
            return places.narrow(0, moving.first - count + 1, count).flip((0,))
        return places.narrow(0, moving.first, count)

    def _read(self, node: Node, other: Node, carried: Mapping[Node, int]) -> Any:
        """Return the results that a call reads in all steps; None if all steps read the same."""
        if other in carried:
            return self.before[other, carried[other]]
        if other in self._repeat.moving and other not in self._of_all:
            self._of_all[other] = self._moved(other)
        value = self._of_all.get(other)
        if value is None or other in self._stateful or node not in self._stateful:
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
    """Return the last states, and the results of all steps.

    A step takes one place of each of ``xs``. ``xs`` that depend on no data (``is_known``) need not
    enter the loop step by step.
    """
    loop = new_loop()
    before = [states(state, count, loop, number) for number, state in enumerate(first)]
    entered = xs if is_known else [enter(x, count, loop) for x in xs]
    dims = (*(0 for _ in (*before, *entered)), *(None for _ in others))
    results = torch.vmap(step, dims)(*before, *entered, *others)
    ends = [behind(results[number], loop, number) for number in range(len(first))]
    return (*ends, *results[len(first) :])


def _known(node: Node) -> torch.Tensor | None:
    """Return the integer of a node before a loop as a tensor; None if it is not constant."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.is_floating_point() or value.numel() != 1:
        return None
    if node.op == "get_attr":
        attribute = operator.attrgetter(str(node.target))(node.graph.owning_module)
        return attribute if type(attribute) in (torch.Tensor, torch.nn.Buffer) else None
    if node.op != "call_function" or not callable(node.target):
        return None
    arguments = {read: _known(read) for read in node.all_input_nodes}
    if any(argument is None for argument in arguments.values()):
        return None
    args, kwargs = map_arg((node.args, dict(node.kwargs)), arguments.__getitem__)
    result = node.target(*args, **kwargs)
    return result if isinstance(result, torch.Tensor) else None


class _Counted(NamedTuple):
    """A loop whose number of steps follows from known integers.

    Attributes:
        counts: the carried integers before each step, by the number of the carried tensor.
        last: the carried integers behind the last step.
    """

    steps: int
    counts: dict[int, torch.Tensor]
    last: dict[int, torch.Tensor]


def _counted_of(traced: GraphModule, node: Node) -> _Counted | None:
    """Return the number of steps of a loop and its integers; None if data decide the steps."""
    condition_node, body_node, first = node.args[:3]
    assert isinstance(condition_node, Node)
    assert isinstance(body_node, Node)
    assert isinstance(first, list | tuple)
    condition = getattr(traced, str(condition_node.target))
    body = getattr(traced, str(body_node.target))
    begun = {at: _known(state) for at, state in enumerate(first) if isinstance(state, Node)}
    numbers = {at: number for at, number in begun.items() if number is not None}
    before: list[dict[int, torch.Tensor]] = []
    while numbers and len(before) <= _MOST_COUNTED:
        (goes_on,) = _computed(condition, numbers)
        if goes_on is None:
            return None
        if not bool(goes_on):
            break
        before.append(numbers)
        after = _computed(body, numbers)
        numbers = {at: after[at] for at in numbers if after[at] is not None}
        if numbers.keys() != before[-1].keys():
            return None
    if not _LEAST_COUNTED <= len(before) <= _MOST_COUNTED:
        return None
    counts = {at: torch.stack([step[at] for step in before]) for at in numbers}
    return _Counted(len(before), counts, numbers)


def _computed(graph: GraphModule, numbers: Mapping[int, torch.Tensor]) -> list[Any]:
    """Return the results of a graph for known arguments; None for a result that needs others."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    values: dict[Node, Any] = {placeholders[at]: number for at, number in numbers.items()}
    for node in graph.graph.nodes:
        if node.op == "call_function" and values.keys() >= set(node.all_input_nodes):
            args, kwargs = map_arg((node.args, dict(node.kwargs)), values.__getitem__)
            values[node] = node.target(*args, **kwargs)
    (result,) = graph.graph.find_nodes(op="output")
    results = result.args[0] if isinstance(result.args[0], list | tuple) else result.args
    return [values.get(each) if isinstance(each, Node) else each for each in results]

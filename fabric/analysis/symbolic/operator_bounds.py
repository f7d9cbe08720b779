"""The least work of each operator of a program, for the sizes that are certain.

Certain sizes are bound by the program (``Program.bind``). A run warns if it measures another size.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

# Any: a number or a size.
from typing import Any, Final, NamedTuple

from fabric.analysis.symbolic.metrics import flops_per_cycle_of
from fabric.analysis.symbolic.substitution import Size, Sizes, Substitution, dims_of, followed
from fabric.graph.values.dims import (
    Dim,
    Totals,
    free_symbols,
    is_ragged,
    is_static,
    is_total,
    parts_of,
)
from fabric.graph.values.expression import Expression, Polynomial, Symbol
from fabric.graph.values.stream_type import StreamType, ValueType
from fabric.graph.wiring.costs import NEEDS, Rates, Work
from fabric.graph.wiring.elaborate import Edge, Plan
from fabric.graph.wiring.inserted import Broadcast
from fabric.graph.wiring.mistakes import work_of
from fabric.graph.wiring.operator import Operator, behaving_as
from fabric.graph.wiring.stream import Feedback, Stream
from fabric.messages.place import is_ours
from fabric.timing.compiled.likeness import Likeness


def certain_sizes(plan: Plan) -> dict[Symbol, Size]:
    """Return the sizes that the program binds and a run can measure, and sizes that follow.

    A run measures a symbol by the elements of a channel if all other dimensions have sizes and
    are not 0. Products of ragged symbols are left out: the mean of a product is not the product of
    means.
    """
    program = plan.program
    sizes: dict[Symbol, Size] = {}
    types = {id(edge.type): edge.type for edge in plan.edges}.values()
    shapes = {stream.shape for stream in types if not all(map(is_static, stream.shape))}
    while more := {
        symbol: program.sizes[symbol]
        for shape in shapes
        if (symbol := _measured_symbol(shape, sizes)) in program.sizes
    }:
        sizes |= more
    result = followed(sizes, program)
    doubtful = {symbol for symbol, dim in program.absorbed.items() if _ragged_degree(dim) > 1}
    for symbol, dim in program.absorbed.items():
        if free_symbols(dim) & doubtful:
            doubtful.add(symbol)
    for symbol, parts in program.mixtures.items():
        if any(free_symbols(dim) & doubtful for part in parts for dim in part):
            doubtful.add(symbol)
    return {symbol: size for symbol, size in result.items() if symbol not in doubtful}


class Facts(NamedTuple):
    """The certain properties of a stream."""

    type: StreamType
    elements: int | None  # their total number; None if not certain
    is_regular: bool  # it has elements, and no group is empty
    has_sizes: bool  # all sizes in the type of its elements are certain


class Certain:
    """Types of streams with the sizes that are certain.

    A mean over ragged groups gives the elements of a stream with one ragged dimension. It is not
    the size of a tile or a buffer: these are routed one by one and differ in size, so symbols for
    their sizes stay.
    """

    def __init__(self, plan: Plan, sizes: Sizes) -> None:
        inner = {
            symbol
            for value in {stream.value for node in plan.nodes for stream in node.outputs}
            for symbol in _value_symbols(value)
            if is_ragged(symbol)
        }
        for symbol, dim in plan.program.absorbed.items():
            if free_symbols(dim) & inner:
                inner.add(symbol)
        kept = {symbol: size for symbol, size in sizes.items() if symbol not in inner}
        numbers = {symbol: size for symbol, size in kept.items() if not is_ragged(symbol)}
        self._numbers: Final = Substitution(numbers)
        self._means: Final = Substitution(kept)
        self.substitution: Final = self._numbers if numbers == sizes else Substitution(sizes)
        self.totals: Final = self._certain_totals(plan)
        self._by_id: Final[dict[int, Facts]] = {}
        self._facts: Final[dict[tuple[bool, StreamType], Facts]] = {}
        self._seen: Final[list[StreamType]] = []

    def facts(self, of: StreamType) -> Facts:
        """Return the certain properties of a stream of type ``of``; one object for equal types."""
        facts = self._by_id.get(id(of))
        if facts is None:
            sized = self._numbers.stream(of)
            facts = self._by_id.get(id(sized)) or self._facts_of(sized)
            self._by_id[id(of)] = self._by_id[id(sized)] = facts
            # Keep the object, so that its id is not reused.
            self._seen.append(of)
        return facts

    def _certain_totals(self, plan: Plan) -> dict[Expression, int]:
        """Return the program's totals with parts that a run counts."""
        stated = plan.program.totals
        carried = {edge.type.count for edge in plan.edges} if stated else set()
        certain: dict[Expression, int] = {}
        for total, size in stated.items():
            parts = parts_of(total)
            sized = self.substitution.dim(total)
            if (
                isinstance(sized, Expression)
                and is_total(sized)
                and carried.issuperset(parts)
                and all(_ragged_degree(part) <= 1 for part in parts)
            ):
                certain[sized] = size
        return certain

    def _facts_of(self, sized: StreamType) -> Facts:
        regular = all(isinstance(dim, int) and dim for dim in sized.shape)
        if not regular and sum(map(_ragged_degree, sized.shape)) == 1:
            sized = StreamType(tuple(map(self._means.dim, sized.shape)), sized.value)
        facts = self._facts.get((regular, sized))
        if facts is None:
            count = sized.count
            elements = count if isinstance(count, int) else None
            has_sizes = next(_value_symbols(sized.value), None) is None
            facts = self._facts[regular, sized] = Facts(sized, elements, regular, has_sizes)
        return facts


def _measured_symbol(shape: tuple[Dim, ...], sizes: dict[Symbol, Size]) -> Symbol | None:
    unknown = [dim for dim in shape if not free_symbols(dim) <= sizes.keys()]
    if len(unknown) != 1 or not isinstance(unknown[0], Symbol):
        return None
    at = Substitution(sizes)
    return unknown[0] if all(at.dim(dim) for dim in shape if dim is not unknown[0]) else None


def _ragged_degree(dim: Dim) -> int:
    if isinstance(dim, Polynomial):
        return max(sum(_ragged_degree(base) * power for base, power in term) for term in dim.terms)
    if isinstance(dim, Symbol) or not is_ragged(dim):
        return int(is_ragged(dim))
    return 2  # the mean of rounded sizes does not follow from other means


def _value_symbols(value: ValueType) -> Iterator[Symbol]:
    for dim in dims_of(value):
        yield from free_symbols(dim)


class Graph(NamedTuple):
    """The operators in the order of their streams; ``into`` has None for inputs from feedbacks."""

    order: list[int]
    into: list[list[Edge | None]]
    out_of: list[list[Edge]]


def graph_of(plan: Plan) -> Graph:
    into: list[list[Edge | None]] = [[None] * len(node.inputs) for node in plan.nodes]
    out_of: list[list[Edge]] = [[] for _ in plan.nodes]
    unordered = [0] * len(plan.nodes)  # inputs from operators that are not in ``order`` yet
    for edge in plan.edges:
        if isinstance(edge.consumer.inputs[edge.input], Feedback):
            continue
        into[edge.consumer.index][edge.input] = edge
        out_of[edge.producer.index].append(edge)
        unordered[edge.consumer.index] += 1
    order = [number for number, edges in enumerate(unordered) if not edges]
    for number in order:
        for edge in out_of[number]:
            reader = edge.consumer.index
            unordered[reader] -= 1
            if not unordered[reader]:
                order.append(reader)
    return Graph(order, into, out_of)


class Least(NamedTuple):
    """The least work of one operator, in the terms of ``Work``; unknown work is 0."""

    known: bool = False
    starts_with: NEEDS = "none"  # inputs that its first element needs; none if a group may be empty
    cycles: int = 0
    first_cycles: int = 0
    last_cycles: int = 0
    delay_cycles: int = 0
    pace_cycles: int = 0
    open_cycles: Dim = 0  # its cycles as an expression of sizes that are not certain
    takes: int = 0  # elements of its first input for each element that it sends to one output
    pads: bool = False
    elements: tuple[int | None, ...] = ()  # of each output; None if not certain
    closing: tuple[int, ...] = ()  # inputs with at least one element
    may_close: tuple[int, ...] = ()  # inputs that have or may have elements
    late: tuple[int, ...] = ()
    sees: tuple[int, ...] = ()
    holds: bool = False
    deals: bool = False
    sends_one: bool = False  # one element to each output
    requests: Dim | None = None
    burst_requests: int = 0
    burst_cycles: int = 0  # from issuing a burst to its completion
    computes: bool = False  # its costs state the exact operations of its compute unit
    in_memory: bool = False


def leasts(plan: Plan, graph: Graph, certain: Certain, likeness: Likeness) -> list[Least]:
    """Return the least work of each operator of ``plan``, in node order.

    The work of an operator is known if it and all operators in front of it state their ``work``.
    A feedback's type is a promise and not inferred, so only types that promise no number are used.
    """
    declared = _Declared(plan, likeness, certain.totals)
    open_promises = _open_promises(plan)
    assumed = _assumed(plan, graph, certain)
    kinds = {type(node.operator) for node in plan.nodes}
    states_work = {kind: _states_work(kind) for kind in kinds}
    least = [Least()] * len(plan.nodes)
    for number in graph.order:
        node, into = plan.nodes[number], graph.into[number]
        in_front = [
            least[edge.producer.index] if edge is not None else Least(known=stream in open_promises)
            for edge, stream in zip(into, node.inputs, strict=True)
        ]
        known = all(front.known for front in in_front)
        if known and states_work[type(node.operator)]:
            in_memory = tuple([front.in_memory for front in in_front])
            inputs = [
                (edge and assumed.get((edge.producer.index, edge.output)))
                or certain.facts(stream.type)
                for edge, stream in zip(into, node.inputs, strict=True)
            ]
            outputs = [
                assumed.get((number, port)) or certain.facts(stream.type)
                for port, stream in enumerate(node.outputs)
            ]
            least[number] = declared.least(node.operator, tuple(inputs), tuple(outputs), in_memory)
    return least


def _assumed(plan: Plan, graph: Graph, certain: Certain) -> dict[tuple[int, int], Facts]:
    """Return the facts of outputs with an assumed shape, by producer and output.

    A shape that is assumed for one copy of a Broadcast holds for its input and all copies.
    """
    assumed: dict[tuple[int, int], Facts] = {}
    for number in reversed(graph.order):
        node = plan.nodes[number]
        for edge in graph.out_of[number]:
            place, reader = (number, edge.output), edge.consumer
            if certain.facts(node.outputs[edge.output].type).elements is not None:
                continue
            facts = certain.facts(reader.inputs[edge.input].type)
            if facts.elements is not None:
                assumed[place] = facts
            elif type(reader.operator) is Broadcast:
                copies = [(reader.index, port) for port in range(len(reader.outputs))]
                known = next((assumed[copy] for copy in copies if copy in assumed), None)
                if known is not None:
                    assumed.update(dict.fromkeys([place, *copies], known))
    return assumed


def _open_promises(plan: Plan) -> set[Stream]:
    """Return the feedbacks that promise only an element type and a number of dimensions.

    Each dimension has its own symbol, which the run measures: no operator before the first reader
    and no other feedback has it. Each element of the feedback has the type of the connected stream,
    by induction: it is made from elements of that type.
    """
    promises: set[Stream] = set()
    if not any(isinstance(stream, Feedback) for node in plan.nodes for stream in node.inputs):
        return promises
    used: set[Symbol] = set()
    for node in plan.nodes:
        for stream in node.inputs:
            if isinstance(stream, Feedback) and stream not in promises:
                sizes = [dim for dim in stream.shape if isinstance(dim, Symbol)]
                is_open = len({*sizes} - used) == len(stream.shape)
                if is_open and not any(True for _ in _value_symbols(stream.value)):
                    promises.add(stream)
                used.update(sizes)
        for stream in (*node.inputs, *node.outputs):
            used.update(*map(free_symbols, stream.shape))
            used.update(_value_symbols(stream.value))
    return promises


class _Declared:
    """Computes the work of operators; operators of equal parameters and types share a result."""

    def __init__(self, plan: Plan, likeness: Likeness, totals: Totals) -> None:
        self._program: Final = plan.program
        self._totals: Final = totals
        self._likeness: Final = likeness
        self._cache: Final[dict[Hashable, Least]] = {}

    def least(
        self,
        operator: Operator,
        inputs: tuple[Facts, ...],
        outputs: tuple[Facts, ...],
        in_memory: tuple[bool, ...],
    ) -> Least:
        # Equal facts are one object.
        ids = (*map(id, inputs), None, *map(id, outputs))
        key = (*self._likeness.made_of(operator), *ids, in_memory)
        if key in self._cache:
            return self._cache[key]
        hardware = self._program.hardware
        rates = Rates(
            flops_per_cycle_of(operator, self._program),
            hardware.on_chip.bytes_per_cycle,
            hardware.hbm,
            operator.off_chip,
            in_memory,
            self._totals,
        )
        types = tuple(facts.type for facts in inputs), tuple(facts.type for facts in outputs)
        work = work_of(operator, *types, rates)
        ours = self._likeness.is_ours(operator)
        least = Least()
        if work is not None and (ours or all(facts.has_sizes for facts in outputs)):
            regular = _is_regular(work, inputs)
            first = _number(work.first_cycles)
            may_close = _nonempty(work.closing, inputs)
            least = Least(
                known=True,
                starts_with=work.needs if inputs and regular else "none",
                cycles=max(_number(work.cycles), 0),
                first_cycles=first if regular else min(first, 0),
                last_cycles=_number(work.last_cycles),
                delay_cycles=max(_number(work.delay_cycles), 0),
                pace_cycles=max(_number(work.pace_cycles), 0),
                open_cycles=0 if isinstance(work.cycles, int) else work.cycles,
                takes=max(int(work.passes), _number(work.gathers) if regular else 0),
                pads=work.pads,
                elements=tuple(facts.elements for facts in outputs),
                closing=tuple(port for port in may_close if inputs[port].elements is not None),
                may_close=may_close,
                late=_nonempty(work.late, outputs),
                sees=_ports(work.sees, inputs),
                holds=work.holds,
                deals=work.deals,
                sends_one=_sends_one(work, outputs),
                **_bursts(work, rates),
                computes=ours and _computes(operator, inputs),
                in_memory=work.in_memory,
            )
        if ours:
            self._cache[key] = least
        return least


def _states_work(kind: type[Operator]) -> bool:
    """Return whether the stated work of ``kind`` describes the behaviour of the class.

    An inherited statement holds if behaviour and types are unchanged, or if ``work`` is overridden
    in the same class as ``infer`` and ``run``, or below it.
    """
    stated_in = _definer(kind, "work")
    if is_ours(stated_in):
        return is_ours(behaving_as(kind)) and not kind.is_users
    return all(issubclass(stated_in, _definer(kind, name)) for name in ("infer", "run"))


def _nonempty(ports: Collection[int] | None, facts: Sequence[Facts]) -> tuple[int, ...]:
    return tuple(port for port in _ports(ports, facts) if facts[port].elements != 0)


def _is_regular(work: Work, inputs: Sequence[Facts]) -> bool:
    """Return whether all inputs from which the first element may come are regular."""
    nonempty = [facts for facts in inputs if work.needs == "all" or facts.type.shape[0] != 0]
    return all(facts.is_regular for facts in (nonempty or inputs))


def _ports(ports: Collection[int] | None, facts: Sequence[Facts]) -> tuple[int, ...]:
    return tuple(range(len(facts)) if ports is None else ports)


def _bursts(work: Work, rates: Rates) -> dict[str, Any]:
    if work.tile is None:
        return {}
    requests = rates.requests(work.tile)
    return {
        "requests": None if requests is None else work.bursts * requests,
        "burst_requests": requests or 0,
        "burst_cycles": rates.burst(work.tile),
    }


def _sends_one(work: Work, outputs: Sequence[Facts]) -> bool:
    if not outputs or work.late is not None or work.deals:
        return False
    return all(facts.elements == 1 for facts in outputs)


def _computes(operator: Operator, inputs: Sequence[Facts]) -> bool:
    return is_ours(_definer(type(operator), "costs")) and all(
        facts.elements is not None and facts.has_sizes for facts in inputs
    )


def _definer(kind: type[Operator], name: str) -> type:
    return next(base for base in kind.__mro__ if name in vars(base))


def _number(dim: Dim) -> int:
    return dim if isinstance(dim, int) else 0

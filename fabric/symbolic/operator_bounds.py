"""The least that each operator of a program does, with the sizes that are certain."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

# Any: a number or a size.
from typing import Any, Final, NamedTuple

from fabric.compiled.likeness import Likeness
from fabric.symbolic.certain import Certain, Facts, symbols_of
from fabric.symbolic.graph import Graph
from fabric.telling.place import is_ours
from fabric.values.dims import Dim, Symbol, Totals, free_symbols
from fabric.wiring.costs import NEEDS, Rates, Work
from fabric.wiring.elaborate import Broadcast, Plan
from fabric.wiring.mistakes import work_of
from fabric.wiring.operator import ComputeOperator, Operator, behaving_as
from fabric.wiring.stream import Feedback, Stream

__all__ = ["Least", "leasts"]


class Least(NamedTuple):
    """What one operator does at least; see ``Work``. What is not known is 0, or no port.

    Attributes:
        known: how many elements it sends follows from its types.
        starts_with: what its first element takes; ``none`` where an empty group may come first.
        cycles, first_cycles, last_cycles, delay_cycles, pace_cycles: as in ``Work``.
        open_cycles: what its cycles are by sizes that are not certain; 0 where these are.
        takes: how many elements of its first input it takes for each that it sends to one output.
        pads: as in ``Work``.
        elements: of each output; None where that is not certain.
        closing: inputs with at least one element.
        may_close: those and the inputs that may have some.
        late: as in ``Work``.
        sees: inputs, as in ``Work``.
        holds, deals: as in ``Work``.
        sends_one: to each of its outputs one element, and no more.
        requests: of all its bursts together, by sizes that may not be certain; None where nothing
            is known.
        burst_requests, burst_cycles: of one burst, and from handing it over to seeing it complete;
            0 where that is not certain.
        computes: its costs say for certain how many operations its compute unit does.
        in_memory: as in ``Work``.
    """

    known: bool = False
    starts_with: NEEDS = "none"
    cycles: int = 0
    first_cycles: int = 0
    last_cycles: int = 0
    delay_cycles: int = 0
    pace_cycles: int = 0
    open_cycles: Dim = 0
    takes: int = 0
    pads: bool = False
    elements: tuple[int | None, ...] = ()
    closing: tuple[int, ...] = ()
    may_close: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    sees: tuple[int, ...] = ()
    holds: bool = False
    deals: bool = False
    sends_one: bool = False
    requests: Dim | None = None
    burst_requests: int = 0
    burst_cycles: int = 0
    computes: bool = False
    in_memory: bool = False

    @property
    def dealt(self) -> int:
        """The outputs that elements are dealt out to, as bits."""
        return sum(1 << port for port in self.late)


def leasts(plan: Plan, graph: Graph, certain: Certain, likeness: Likeness) -> list[Least]:
    """Return what each operator of ``plan`` does at least, in node order.

    How many elements streams have is believed of operators that state their ``work``, as long as
    all in front of them do. What comes back from behind was promised, not inferred: that is
    believed where it promises no number.
    """
    declared = _Declared(plan, likeness, certain.totals)
    open_promises = _open_promises(plan)
    assumed = _assumed(plan, graph, certain)
    found = [Least()] * len(plan.nodes)
    for number in graph.order:
        node, into = plan.nodes[number], graph.into[number]
        in_front = [
            found[each.producer.index] if each is not None else Least(known=stream in open_promises)
            for each, stream in zip(into, node.inputs, strict=True)
        ]
        known = all(each.known for each in in_front)
        if known and declared.states(node.operator):
            in_memory = tuple([each.in_memory for each in in_front])
            inputs = [
                (edge and assumed.get((edge.producer.index, edge.output)))
                or certain.facts(each.type)
                for edge, each in zip(into, node.inputs, strict=True)
            ]
            outputs = [
                assumed.get((number, port)) or certain.facts(each.type)
                for port, each in enumerate(node.outputs)
            ]
            found[number] = declared.least(node.operator, tuple(inputs), tuple(outputs), in_memory)
    return found


def _assumed(plan: Plan, graph: Graph, certain: Certain) -> dict[tuple[int, int], Facts]:
    """Return what the program assumes of streams whose elements are not counted by their own types.

    It says so where a stream is read; where that is behind a Broadcast, it says so of each copy.

    Returns:
        By the number of the operator in front and its output.
    """
    found: dict[tuple[int, int], Facts] = {}
    for number in reversed(graph.order):
        node = plan.nodes[number]
        for edge in graph.out_of[number]:
            place, reader = (number, edge.output), edge.consumer
            if certain.facts(node.outputs[edge.output].type).elements is not None:
                continue
            facts = certain.facts(reader.inputs[edge.input].type)
            if facts.elements is not None:
                found[place] = facts
            elif type(reader.operator) is Broadcast:
                copies = [(reader.index, port) for port in range(len(reader.outputs))]
                behind = next((found[copy] for copy in copies if copy in found), None)
                if behind is not None:
                    found.update(dict.fromkeys([place, *copies], behind))
    return found


def _open_promises(plan: Plan) -> set[Stream]:
    """Return the feedbacks of which only the element type and the number of dimensions are said.

    Each dimension has a symbol of its own, which stands for what the run measures: no operator in
    front of the first reader has it, and no other feedback. The element type is that of the stream
    it is connected to, and so of each element that ever comes back: the first one of another type
    would have been made of none such.
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
                if is_open and not any(True for _ in symbols_of(stream.value)):
                    promises.add(stream)
                used.update(sizes)
        for stream in (*node.inputs, *node.outputs):
            used.update(*map(free_symbols, stream.shape))
            used.update(symbols_of(stream.value))
    return promises


class _Declared:
    """Asks operators for their work, those that are alike once."""

    def __init__(self, plan: Plan, likeness: Likeness, totals: Totals) -> None:
        self._program: Final = plan.program
        self._totals: Final = totals
        self._likeness: Final = likeness
        self._states: Final[dict[type[Operator], bool]] = {}
        self._known: Final[dict[Hashable, Least]] = {}

    def states(self, operator: Operator) -> bool:
        """Whether what ``operator`` says of its work is said of what it does.

        What a class inherits is said of the class it comes from. It holds where that is one of
        ours whose behaviour and types are unchanged, or where nothing else was overridden since.
        """
        kind = type(operator)
        found = self._states.get(kind)
        if found is None:
            ours = is_ours(behaving_as(kind)) and not kind.is_users
            found = self._states[kind] = (ours and is_ours(_definer(kind, "work"))) or (
                not is_ours(_definer(kind, "work"))
                and all(
                    issubclass(_definer(kind, "work"), _definer(kind, name))
                    for name in ("infer", "run")
                )
            )
        return found

    def least(
        self,
        operator: Operator,
        inputs: tuple[Facts, ...],
        outputs: tuple[Facts, ...],
        in_memory: tuple[bool, ...],
    ) -> Least:
        """Return what ``operator`` does at least, with inputs that are in memory."""
        # Facts of streams that are alike are one object.
        types = (*map(id, inputs), None, *map(id, outputs))
        key = (*self._likeness.made_of(operator), *types, in_memory)
        found = self._known.get(key)
        if found is None:
            found = self._asked(operator, inputs, outputs, in_memory)
            if self._likeness.is_ours(operator):
                self._known[key] = found
        return found

    def _asked(
        self,
        operator: Operator,
        inputs: tuple[Facts, ...],
        outputs: tuple[Facts, ...],
        in_memory: tuple[bool, ...],
    ) -> Least:
        rates = self._rates(operator, in_memory)
        types = tuple(each.type for each in inputs), tuple(each.type for each in outputs)
        work = work_of(operator, *types, rates)
        ours = self._likeness.is_ours(operator)
        if work is None or not (ours or all(each.has_sizes for each in outputs)):
            return Least()
        regular = _is_regular(work, inputs)
        first = _number(work.first_cycles)
        return Least(
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
            elements=tuple(each.elements for each in outputs),
            closing=tuple(
                port for port in _ports(work.closing, inputs) if inputs[port].elements is not None
            ),
            may_close=_ports(work.closing, inputs),
            late=_ports(work.late, outputs),
            sees=_those(work.sees, inputs),
            holds=work.holds,
            deals=work.deals,
            sends_one=_sends_one(work, outputs),
            **_bursts(work, rates),
            computes=ours and _computes(operator, inputs),
            in_memory=work.in_memory,
        )

    def _rates(self, operator: Operator, in_memory: tuple[bool, ...]) -> Rates:
        program = self._program
        flops_per_cycle = 0
        if isinstance(operator, ComputeOperator) and operator.has_arithmetic:
            flops_per_cycle = operator.flops_per_cycle or program.flops_per_cycle
        hardware = program.hardware
        bytes_per_cycle = hardware.on_chip.bytes_per_cycle
        memory = hardware.hbm
        return Rates(
            flops_per_cycle, bytes_per_cycle, memory, operator.off_chip, in_memory, self._totals
        )


def _ports(said: Collection[int] | None, facts: Sequence[Facts]) -> tuple[int, ...]:
    """Return the ports that are ``said``, all where nothing is, but for those without elements."""
    return tuple(port for port in _those(said, facts) if facts[port].elements != 0)


def _is_regular(work: Work, inputs: Sequence[Facts]) -> bool:
    """Whether all inputs are; what has no elements is not the first one of several."""
    there = [each for each in inputs if work.needs == "all" or each.type.shape[0] != 0]
    return all(each.is_regular for each in (there or inputs))


def _those(said: Collection[int] | None, facts: Sequence[Facts]) -> tuple[int, ...]:
    return tuple(range(len(facts)) if said is None else said)


def _bursts(work: Work, rates: Rates) -> dict[str, Any]:
    """Return the fields of ``Least`` that say what is moved off chip."""
    if work.tile is None:
        return {}
    requests = rates.requests(work.tile)
    return {
        "requests": None if requests is None else work.bursts * requests,
        "burst_requests": requests or 0,
        "burst_cycles": rates.burst(work.tile),
    }


def _sends_one(work: Work, outputs: Sequence[Facts]) -> bool:
    """Whether each output gets one element, and that at the end."""
    if not outputs or work.late is not None or work.deals:
        return False
    return all(each.elements == 1 for each in outputs)


def _computes(operator: Operator, inputs: Sequence[Facts]) -> bool:
    """Whether what one of our operators costs is known of all that it takes."""
    return is_ours(_definer(type(operator), "costs")) and all(
        each.elements is not None and each.has_sizes for each in inputs
    )


def _definer(kind: type[Operator], name: str) -> type:
    return next(each for each in kind.__mro__ if name in vars(each))


def _number(dim: Dim) -> int:
    return dim if isinstance(dim, int) else 0

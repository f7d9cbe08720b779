"""The least that each operator of a program does, with the sizes that are certain."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from fabric.compiled.likeness import Likeness
from fabric.symbolic.certain import Certain, Facts
from fabric.symbolic.graph import Graph
from fabric.telling.place import is_ours
from fabric.values.dims import Dim
from fabric.wiring.behaviour import behaving_as
from fabric.wiring.elaborate import Plan
from fabric.wiring.mistakes import work_of
from fabric.wiring.operator import ComputeOperator, Node, Operator
from fabric.wiring.work import NEEDS, Rates, Work

__all__ = ["Least", "leasts"]


class Least(NamedTuple):
    """What one operator does at least; see ``Work``. What is not known is 0, or no port.

    Attributes:
        known: how many elements it sends follows from its types.
        starts_with: what its first element takes; ``none`` where an empty group may come first.
        cycles, first_cycles, last_cycles: as in ``Work``.
        closing: inputs with at least one element.
        late: as in ``Work``.
        sees: inputs, as in ``Work``.
        deals: as in ``Work``.
        requests: of all its bursts together; None where that is not certain.
        computes: its costs say for certain how many operations its compute unit does.
        in_memory: as in ``Work``.
    """

    known: bool = False
    starts_with: NEEDS = "none"
    cycles: int = 0
    first_cycles: int = 0
    last_cycles: int = 0
    closing: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    sees: tuple[int, ...] = ()
    deals: bool = False
    requests: int | None = None
    computes: bool = False
    in_memory: bool = False


def leasts(plan: Plan, graph: Graph, certain: Certain, likeness: Likeness) -> list[Least]:
    """Return what each operator of ``plan`` does at least, in node order.

    How many elements streams have is believed of operators that state their ``work``, as long as
    all in front of them do. What comes back from behind was promised, not inferred.
    """
    declared = _Declared(plan, certain, likeness)
    found = [Least()] * len(plan.nodes)
    for number in graph.order:
        node, into = plan.nodes[number], graph.into[number]
        in_front = [found[each] for each in into if each >= 0]
        known = len(in_front) == len(into) and all(each.known for each in in_front)
        if known and declared.states(node.operator):
            in_memory = tuple([each.in_memory for each in in_front])
            found[number] = declared.least(node, in_memory)
    return found


class _Declared:
    """Asks operators for their work, those that are alike once."""

    def __init__(self, plan: Plan, certain: Certain, likeness: Likeness) -> None:
        self._program: Final = plan.program
        self._certain: Final = certain
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

    def least(self, node: Node, in_memory: tuple[bool, ...]) -> Least:
        """Return what ``node`` does at least, with inputs that are in memory."""
        facts, operator = self._certain.facts, node.operator
        inputs = tuple([facts(each.type) for each in node.inputs])
        outputs = tuple([facts(each.type) for each in node.outputs])
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
        regular = all(each.is_regular for each in inputs)
        first = _number(work.first_cycles)
        closing = range(len(inputs)) if work.closing is None else work.closing
        late = range(len(outputs)) if work.late is None else work.late
        sees = range(len(inputs)) if work.sees is None else work.sees
        return Least(
            known=True,
            starts_with=work.needs if inputs and regular else "none",
            cycles=max(_number(work.cycles), 0),
            first_cycles=first if regular else min(first, 0),
            last_cycles=_number(work.last_cycles),
            closing=tuple(port for port in closing if inputs[port].elements),
            late=tuple(port for port in late if outputs[port].elements != 0),
            sees=tuple(sees),
            deals=work.deals,
            requests=_requests(work, rates),
            computes=ours
            and is_ours(_definer(type(operator), "costs"))
            and all(each.elements is not None and each.has_sizes for each in inputs),
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
        return Rates(flops_per_cycle, bytes_per_cycle, memory, operator.off_chip, in_memory)


def _requests(work: Work, rates: Rates) -> int | None:
    if work.tile is None or not isinstance(work.bursts, int):
        return None
    each = rates.requests(work.tile)
    return None if each is None else work.bursts * each


def _definer(kind: type[Operator], name: str) -> type:
    return next(each for each in kind.__mro__ if name in vars(each))


def _number(dim: Dim) -> int:
    return dim if isinstance(dim, int) else 0

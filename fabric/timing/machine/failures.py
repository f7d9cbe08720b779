"""What went wrong in the operators of a run or in its memory: who, what, in which line, when."""

from __future__ import annotations

from collections.abc import Iterable

from fabric.graph.wiring.operator import Node, Operator, behaving_as
from fabric.messages.telling.errors import FabricError, OperatorError, Refusal, said
from fabric.messages.telling.place import Place, defining_place, is_ours, raising_place
from fabric.timing.engine.ports import Ports
from fabric.timing.engine.unit import Unit

__all__ = ["Failures", "users_among"]


class Failures:
    """Keeps the errors of operators, and of a user's memory and observers.

    Attributes:
        circling: units that charged on and on, and the line in which each was stopped.
    """

    def __init__(self) -> None:
        self.circling: list[tuple[Unit, Place | None]] = []
        self._kept: list[tuple[int, int, FabricError]] = []

    def keep(self, error: BaseException, node: Node, ports: Ports) -> None:
        """Keep what the operator of ``node``, or a function it was given, raised."""
        if not isinstance(error, FabricError):
            error = blamed(error, node.operator, ports)
        elif error.file is None:
            error.file, error.line = node.place
        self._kept.append((ports.unit.now, node.index, error))

    def keep_at(self, cycle: int, error: FabricError) -> None:
        """Keep what a user's memory or observer did, before what operators did at ``cycle``."""
        self._kept.append((cycle, -1, error))

    @property
    def nodes(self) -> set[int]:
        """The nodes that have failed."""
        return {index for _, index, _ in self._kept}

    @property
    def first(self) -> FabricError | None:
        """The error at the earliest cycle, the lowest node first."""
        return min(self._kept, key=lambda kept: kept[:2])[2] if self._kept else None

    @property
    def first_cycle(self) -> int | None:
        """The earliest cycle at which an operator has failed."""
        return min((cycle for cycle, _, _ in self._kept), default=None)


def blamed(error: BaseException, operator: Operator, ports: Ports) -> OperatorError:
    """Return the error for what ``operator``, or a function it was given, raised."""
    place = raising_place(error) or _function_place(operator)
    if not isinstance(error, Refusal):
        return ports.failure(said(error), place)
    return ports.failure(str(error), error.place or place, counted=error.counted)


def users_among(operators: Iterable[Operator]) -> frozenset[int]:
    """Return the numbers of the ``operators`` that have a user's code.

    A program has thousands of operators, of a few classes with functions of a few.
    """
    known: dict[tuple[type, ...], bool] = {}
    found = set()
    for number, operator in enumerate(operators):
        kinds = (type(operator), *map(type, vars(operator).values()))
        users = known.get(kinds)
        if users is None:
            known[kinds] = users = has_user_code(operator)
        if users:
            found.add(number)
    return frozenset(found)


def has_user_code(operator: Operator) -> bool:
    """Whether what ``operator`` does, or a function it was given, is a user's."""
    return not is_ours(behaving_as(type(operator))) or _function_place(operator) is not None


def _function_place(operator: Operator) -> Place | None:
    """Return where the user's function that ``operator`` was given is defined, if there is one."""
    for given in vars(operator).values():
        for method in ("apply", "update"):
            place = defining_place(getattr(given, method, None))
            if place is not None:
                return place
    return None

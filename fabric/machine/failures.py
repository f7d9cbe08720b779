"""What went wrong in the operators of a run, or in its memory, and when."""

from __future__ import annotations

from fabric.engine.ports import Ports
from fabric.engine.unit import Unit
from fabric.machine.operator_error import blamed
from fabric.telling.errors import FabricError
from fabric.telling.place import Place
from fabric.wiring.operator import Node

__all__ = ["Failures"]


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

"""Where to go in a run that is held: a cycle, an element or what comes next, as users call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from fabric.graph.arguments.described import refuse
from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import close_to

if TYPE_CHECKING:
    from fabric.timing.machine.machine import Machine
    from fabric.timing.stepping.ledger import Ledger

__all__ = [
    "AtCycle",
    "AtElement",
    "AtNext",
    "Goal",
    "channel_number",
    "element_goal",
    "unit_number",
]


class Goal(Protocol):
    """Where to go."""

    def cycle(self, ledger: Ledger, now: int) -> int | None:
        """Return the cycle it is in, by what is known; a later one than ``now``, or none so far."""
        ...


class AtCycle(NamedTuple):
    """A cycle.

    Attributes:
        at: it.
    """

    at: int

    def cycle(self, ledger: Ledger, now: int) -> int | None:  # noqa: ARG002 - others do
        """See ``Goal``."""
        return self.at


class AtElement(NamedTuple):
    """The cycle in which a value is dequeued by its operator, or sent.

    Attributes:
        channel: its number.
        element: the how many-th value, from 1 on.
        sent: when it is sent; else when it is dequeued.
    """

    channel: int
    element: int
    sent: bool

    def cycle(self, ledger: Ledger, now: int) -> int | None:  # noqa: ARG002 - others do
        """See ``Goal``."""
        found = ledger.sent_cycle if self.sent else ledger.taken_cycle
        return found(self.channel, self.element)


class AtNext(NamedTuple):
    """The next cycle in which an element is sent or dequeued, or the off-chip memory answers."""

    def cycle(self, ledger: Ledger, now: int) -> int | None:
        """See ``Goal``."""
        return ledger.next_cycle(now)


_DIGITS: Final = 10
"""No input has a number of so many."""


def unit_number(machine: Machine, name: str) -> int:
    """Return the number of the unit called ``name``.

    Raises:
        ConfigurationError: there is none.
    """
    names = [unit.name for unit in machine.units]
    if name not in names:
        refuse(f"no unit is called {name!r}: expected {close_to(names, name)}", ConfigurationError)
    return names.index(name)


def channel_number(machine: Machine, name: str) -> int:
    """Return the number of the channel called ``name``: ``OPERATOR.INPUT``, or as in reports.

    Raises:
        ConfigurationError: there is none.
    """
    edges = machine.plan.edges
    found = [number for number, edge in enumerate(edges) if name in (edge.key, edge.name)]
    if not found:
        keys = [edge.key for edge in edges]
        refuse(
            f"no channel is called {name!r}: expected OPERATOR.INPUT, {close_to(keys, name)}",
            ConfigurationError,
        )
    return found[0]


def element_goal(machine: Machine, unit: str, element: int) -> AtElement:
    """Return where a unit takes ``element`` values from an input, or sends them.

    Args:
        machine: that runs.
        unit: its name, for its first input, or its name and an input: ``matmul_1.1``.
        element: how many.

    Raises:
        ConfigurationError: there is no such unit or input, or it has no streams.
    """
    edges = list(enumerate(machine.plan.edges))
    name, _, given = unit.rpartition(".")
    wanted = int(given) if name and given.isdecimal() and len(given) < _DIGITS else None
    if any(each.name == unit for each in machine.units):
        wanted = None
    index = unit_number(machine, unit if wanted is None else name)
    read = {edge.input: number for number, edge in edges if edge.consumer.index == index}
    if wanted is not None and wanted not in read:
        inputs = f"one of {', '.join(map(str, sorted(read)))}" if read else "a unit with inputs"
        refuse(f"until: {name} has no input {wanted}: expected {inputs}", ConfigurationError)
    if read:
        return AtElement(read[min(read) if wanted is None else wanted], element, sent=False)
    written = [(edge.output, number) for number, edge in edges if edge.producer.index == index]
    if not written:
        refuse(f"until: {unit} has no streams: expected a unit with one", ConfigurationError)
    return AtElement(min(written)[1], element, sent=True)

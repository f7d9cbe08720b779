"""Units, channels and elements of a machine, as users call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.arguments.described import refuse
from fabric.stepping.goals import AtElement
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import close_to

if TYPE_CHECKING:
    from fabric.machine.machine import Machine

__all__ = ["channel_number", "element_goal", "unit_number"]


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
    """Return where the unit takes ``element`` values from its first input, or sends them.

    Raises:
        ConfigurationError: there is no such unit, or it has no streams.
    """
    index = unit_number(machine, unit)
    edges = list(enumerate(machine.plan.edges))
    read = [(edge.input, number) for number, edge in edges if edge.consumer.index == index]
    if read:
        return AtElement(min(read)[1], element, sent=False)
    written = [(edge.output, number) for number, edge in edges if edge.producer.index == index]
    if not written:
        refuse(f"until: {unit} has no streams: expected a unit with one", ConfigurationError)
    return AtElement(min(written)[1], element, sent=True)

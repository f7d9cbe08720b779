"""What arithmetic outside of hardware decides: numbers and selectors, as the fabric has them.

Tiles stay outside, and so does what is computed of them. Where a result steers other operators, the
hardware is told that result, as it is told when off-chip memory answers.
"""

from __future__ import annotations

from collections.abc import Callable

# Any: operators and values of all kinds are looked at.
from typing import Any, Final

from typing_extensions import override

from fabric import Program, Selector
from fabric.extend import Element, Empty, Observer, Watched, number_in
from operators.flat_map import FlatMap
from operators.rtl.bindings import is_told
from operators.rtl.channel import CONTROL_BITS, packed

__all__ = ["Outside"]


class Outside(Observer):
    """Keeps what the hardware of a program is told, while the program runs.

    Attributes:
        is_needed: whether it is told anything.
    """

    def __init__(self, program: Program) -> None:
        """Look for the operators whose results come from outside."""
        told = {
            node.name: node.operator
            for node in program.nodes
            if is_told(node.operator, node.output_types)
        }
        self._told: Final = told
        self._channels: Final[dict[int, list[Callable[[Element], None]]]] = {}
        self._numbers: Final[dict[str, list[int]]] = {name: [] for name in told}
        self.is_needed: Final = bool(told)

    def tokens(self, unit: str) -> list[int] | None:
        """Return what the hardware of ``unit`` is told, as bits of tokens; None for nothing."""
        numbers = self._numbers.get(unit)
        if numbers is None:
            return None
        return [packed(control=number % (1 << CONTROL_BITS)) for number in numbers]

    @override
    def watch(self, channel: Watched) -> Callable[..., object] | None:
        keeping = []
        for unit, is_reader in ((channel.producer, False), (channel.consumer, True)):
            operator = self._told.get(unit.name)
            # How many parts there are follows from what a FlatMap takes, all else from what leaves.
            if operator is not None and isinstance(operator, FlatMap) == is_reader:
                keeping.append(self._keeping(unit.name, operator))
        if not keeping:
            return None
        self._channels[channel.number] = keeping
        return lambda element, *_: self._keep(keeping, element)

    @override
    def left_over(self, channel: Watched, element: Element, *_: object) -> None:
        self._keep(self._channels.get(channel.number, []), element)

    def _keeping(self, unit: str, operator: Any) -> Callable[[Element], None]:
        numbers = self._numbers[unit]
        if isinstance(operator, FlatMap):
            return lambda element: numbers.append(len(operator.split.apply(element[0])))  # type: ignore[arg-type]
        return lambda element: numbers.append(_number(element[0]))

    @staticmethod
    def _keep(keeping: list[Callable[[Element], None]], element: Element) -> None:
        if not isinstance(element[0], Empty):
            for keep in keeping:
                keep(element)


def _number(value: Any) -> int:
    """Return a number, or the ways that a selector points to as bits."""
    if isinstance(value, Selector):
        return sum(1 << hit for hit in set(value.hits))
    return number_in(value)

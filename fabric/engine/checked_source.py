"""The end of a channel that a checked operator reads: in turn, without changing what others see.

A channel gets another class, with the same attributes; whose elements a ``peek`` has shown is
noted at the unit.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from fabric.engine.channel import Channel
from fabric.telling.errors import Refusal
from fabric.values.fit import freeze
from fabric.values.value import Element

__all__ = ["check_reads"]

Reading: TypeAlias = Any
"""A channel whose consumer is a ``CheckedUnit``, and its class: known when it is made."""


def check_reads(channel: Channel) -> None:
    """Check what is done at the reading end of ``channel``, whose consumer is a ``CheckedUnit``."""
    kind = channel.__class__
    if kind not in _checked:
        _checked[kind] = _with_checks(kind)
    channel.__class__ = _checked[kind]


_checked: Final[dict[type, Reading]] = {}
"""By class of channels, the one with checks."""


def _with_checks(kind: Reading) -> Reading:
    def receive(self: Reading) -> object:
        calls = self.consumer.calls
        calls.begin("receive")
        return calls.hold(received(self))

    async def received(self: Reading) -> Element | None:
        unit = self.consumer
        unit.calls.awaited()
        element: Element | None = await kind.receive(self)
        unit.shown.discard(self)
        if element is not None:
            freeze(element[0])
        return element

    def peek(self: Reading) -> object:
        calls = self.consumer.calls
        calls.begin("peek")
        return calls.hold(peeked(self))

    async def peeked(self: Reading) -> Element | None:
        unit = self.consumer
        unit.calls.awaited()
        element: Element | None = await kind.peek(self)
        if element is not None:
            unit.shown.add(self)
            freeze(element[0])
        return element

    def take(self: Reading) -> Element:
        unit = self.consumer
        unit.calls.check_task()
        if self not in unit.shown:
            raise Refusal(f"{self.name} is taken from unseen: expected `await peek()` before")
        unit.shown.discard(self)
        element: Element = kind.take(self)
        return element

    def hear(self: Reading) -> Element:
        self.consumer.calls.check_task()
        # What is there by now hangs on the host, but for who has waited for the cycle.
        raise Refusal(f"{self.name} is heard of: expected `await peek()` and take()")

    body = {"__slots__": (), "hear": hear, "peek": peek, "receive": receive, "take": take}
    return type(f"Read{kind.__name__}", (kind,), body)

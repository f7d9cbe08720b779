"""What a memory has counted, as plain data and back: a user's memory or a file may say anything."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fabric.engine.off_chip import MemoryCounters
from fabric.telling.errors import Refusal
from fabric.telling.plain import JsonObject, plain

__all__ = ["as_document", "counters_in"]

_NUMBERS = 1 << 63
"""No count is as large."""


def as_document(counters: MemoryCounters) -> JsonObject:
    """Return ``counters`` in JSON's own types; numpy's numbers become numbers."""
    document: JsonObject = msgspec.to_builtins(counters, enc_hook=plain)
    return document


def counters_in(document: object, units: int) -> MemoryCounters:
    """Return the counters that ``as_document`` has made a document of.

    Args:
        document: any.
        units: of the program; clients are some of them.

    Raises:
        Refusal: it is none.
    """
    try:
        found = msgspec.convert(document, MemoryCounters)
    except msgspec.ValidationError as error:
        raise Refusal(f"counters: {error}") from None
    for where, number in _numbers(document, ""):
        if not 0 <= number < _NUMBERS:
            raise Refusal(f"counters: {where} is {number}: expected 0 to {_NUMBERS - 1}")
    for client in found.clients:
        if client.unit >= units:
            raise Refusal(f"counters: a client is unit {client.unit}: expected one below {units}")
    if found.periods and not found.period_cycles:
        raise Refusal("counters: period_cycles is 0: expected at least 1")
    return found


def _numbers(document: object, where: str) -> Iterator[tuple[str, int]]:
    """Yield all numbers, and where they are."""
    if isinstance(document, int):
        yield where, document
    elif isinstance(document, dict):
        for name, each in document.items():
            yield from _numbers(each, f"{where}.{name}".lstrip("."))
    elif isinstance(document, list | tuple):
        for place, each in enumerate(document):
            yield from _numbers(each, f"{where}[{place}]")

"""Unusual errors that users' operators raise: the body and the message."""

from __future__ import annotations

from typing import Any

from typing_extensions import override


class _WordlessError(Exception):
    @override
    def __str__(self) -> str:
        raise RuntimeError("no words")


class _UnprintableError(ValueError):
    @override
    def __str__(self) -> str:
        return None  # type: ignore[return-value]  # noqa: PLE0307 - the mistake


async def _wordless(_ports: Any) -> None:
    raise _WordlessError("lost")  # here


async def _unprintable(_ports: Any) -> None:
    raise _UnprintableError("lost")  # here


async def _without_words(_ports: Any) -> None:
    raise ValueError  # here


async def _several_lines(_ports: Any) -> None:
    raise ValueError("one\ntwo\x1b[2J")  # here


async def _interrupts(_ports: Any) -> None:
    raise KeyboardInterrupt  # here


async def _never_ends(_ports: Any) -> None:
    def deeper() -> None:
        deeper()  # here

    deeper()


async def _several(_ports: Any) -> None:
    raise BaseExceptionGroup("two", [ValueError("first"), KeyboardInterrupt()])  # here


RAISED = {
    "no text": (_wordless, "_WordlessError, and its text raised RuntimeError"),
    "text that is none": (_unprintable, "_UnprintableError, and its text raised TypeError"),
    "nothing said": (_without_words, "ValueError"),
    "several lines": (_several_lines, "ValueError: one\ntwo\x1b[2J"),
    "KeyboardInterrupt": (_interrupts, "KeyboardInterrupt"),
    "recursion": (_never_ends, "RecursionError: maximum recursion depth exceeded"),
    "several": (_several, "ValueError: first"),
}

"""An output that nobody reads, and the awaitable of a send that does not wait."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fabric.values.value import Element

__all__ = ["DONE", "Discard"]


@types.coroutine
def _nothing() -> Generator[None, None, None]:
    """Wait for nothing: once it has ended it can be awaited again and again, and is at once."""
    yield from ()


DONE: Final = _nothing()
"""What ``send`` returns where it did not have to wait."""

with contextlib.suppress(StopIteration):
    DONE.send(None)


class Discard:
    """Stands where nobody reads a secondary output: what is sent there is not produced."""

    def send(self, *_: object) -> Awaitable[None]:
        """Do nothing."""
        return DONE

    send_at = reserve = send_bare = send

    def put(self, element: Element) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

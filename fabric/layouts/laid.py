"""What is known of the order in which a stream carries its tiles."""

from __future__ import annotations

from typing import NamedTuple

from fabric.layouts.layout import Layout

__all__ = ["Laid"]


class Laid(NamedTuple):
    """The layout of a stream, or why there is none.

    Attributes:
        layout: of its tiles; None where it is not known.
        reason: why it is not, in words.
    """

    layout: Layout | None
    reason: str = ""

    @property
    def known(self) -> Layout | str:
        """The layout, or the reason."""
        return self.reason if self.layout is None else self.layout

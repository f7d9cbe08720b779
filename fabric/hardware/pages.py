"""Pages of on-chip memory: in how many an allocation lies, and how many a capacity has."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Pages"]


class Pages(NamedTuple):
    """Memory units that give room in whole pages.

    The pages of an allocation may lie in any memory units, and no page lies in two of them. An
    allocation shares no page with another one.

    Attributes:
        page_bytes: of each page.
        unit_bytes: of a memory unit, at least ``page_bytes``.
    """

    page_bytes: int
    unit_bytes: int

    def of(self, size_bytes: int) -> int:
        """Return how many pages an allocation takes."""
        return -(-size_bytes // self.page_bytes)

    def within(self, capacity_bytes: int) -> int:
        """Return how many pages there are in memory units, of which the last may be smaller."""
        units, rest_bytes = divmod(capacity_bytes, self.unit_bytes)
        return units * (self.unit_bytes // self.page_bytes) + rest_bytes // self.page_bytes

    def capacity_bytes(self, pages: int) -> int:
        """Return the least capacity with so many pages."""
        units, rest = divmod(pages, self.unit_bytes // self.page_bytes)
        if units and not rest:
            # What is behind the last page of the last unit is not needed.
            units, rest = units - 1, self.unit_bytes // self.page_bytes
        return units * self.unit_bytes + rest * self.page_bytes

    @property
    def number_bits(self) -> int:
        """The bits of a page's number in its memory unit."""
        return (-(-self.unit_bytes // self.page_bytes) - 1).bit_length()

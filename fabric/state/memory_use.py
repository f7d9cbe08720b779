"""What operators asked of the memories over a whole run: the engine counts it, no trace has it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MemoryUse"]


class MemoryUse(NamedTuple):
    """What went to and from the memories, up to the end of a run.

    Attributes:
        loaded_bytes, stored_bytes: of tiles, off chip; a trace has whole requests only.
        on_chip_peak_bytes: the most held on chip in any cycle; a trace has waits for room only.
        on_chip_peak_pages: the most pages held in any cycle; None where there are none.
        on_chip_peak_empty_bytes: the most bytes empty in held pages in any cycle; likewise.
        spilled_bytes, fetched_bytes: of tiles of buffers that found no room on chip.
    """

    loaded_bytes: int
    stored_bytes: int
    on_chip_peak_bytes: int
    on_chip_peak_pages: int | None
    on_chip_peak_empty_bytes: int | None
    spilled_bytes: int
    fetched_bytes: int

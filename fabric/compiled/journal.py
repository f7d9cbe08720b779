"""Which transitions stages took in a run that is recorded; all that they did follows from that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fabric.compiled import columns as c
from fabric.compiled.arrays import Arrays, Stage
from fabric.compiled.codes import Codes
from fabric.compiled.tables import Array, Tables

__all__ = ["Journal"]


class Journal:
    """What the loop has written while a run went on, and what it means.

    Attributes:
        stages: operators that the rows are about.
        tables: what transitions are.
        codes: of the elements in them.
        chose: stages that went on with whichever input came first; known when all have ended.
    """

    def __init__(self, stages: Sequence[Stage], tables: Tables, codes: Codes) -> None:
        """Begin with nothing."""
        self.stages: Final = stages
        self.tables: Final = tables
        self.codes: Final = codes
        self.chose: Array = np.zeros(0, np.int64)
        self._rows: Final[list[Array]] = []

    def keep(self, arrays: Arrays) -> None:
        """Keep what the loop has written and let it begin anew."""
        count = int(arrays.control[c.JOURNAL])
        self._rows.append(arrays.journal[:count].copy())
        arrays.control[c.JOURNAL] = 0
        self.chose = np.flatnonzero(arrays.rows[:, c.CHOSE])

    def taken(self) -> tuple[Array, Array]:
        """Return stages in their order, and the transitions that each took in its own."""
        rows = np.concatenate([np.zeros(0, np.int64), *self._rows])
        # Small numbers are sorted without comparing them.
        stages = (rows >> c.STAGE_SHIFT).astype(np.min_scalar_type(len(self.stages)))
        sequence = np.argsort(stages, kind="stable")
        rows = rows[sequence]
        return rows >> c.STAGE_SHIFT, rows & ((1 << c.STAGE_SHIFT) - 1)

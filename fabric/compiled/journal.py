"""Which transitions stages took in a run that is recorded; all that they did follows from that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
        self._small: Final = np.min_scalar_type(len(stages))
        self._stages: Final[list[NDArray[Any]]] = [np.zeros(0, self._small)]
        self._taken: Final[list[NDArray[np.int32]]] = [np.zeros(0, np.int32)]

    def keep(self, arrays: Arrays) -> None:
        """Keep what the loop has written and let it begin anew."""
        rows = arrays.journal[: arrays.control[c.JOURNAL]]
        self._stages.append((rows >> c.STAGE_SHIFT).astype(self._small))
        self._taken.append(rows.astype(np.int32))
        arrays.control[c.JOURNAL] = 0
        self.chose = np.flatnonzero(arrays.rows[:, c.CHOSE])

    def taken(self) -> tuple[Array, NDArray[np.int32]]:
        """Return how many transitions each stage took, and those of one after those of another."""
        stages = np.concatenate(self._stages)
        # Small numbers are sorted without comparing them.
        sequence = np.argsort(stages, kind="stable")
        counts = np.bincount(stages, minlength=len(self.stages))
        return counts, np.concatenate(self._taken)[sequence]

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
        standing: where each stage was when this was written; see ``columns``.
    """

    def __init__(self, arrays: Arrays) -> None:
        self.stages: Final[Sequence[Stage]] = arrays.stages
        self.tables: Final[Tables] = arrays.tables
        self.codes: Final[Codes] = arrays.codes
        self.standing: Array = arrays.rows.copy()
        self._small: Final = np.min_scalar_type(len(self.stages))
        self._stages: list[NDArray[Any]] = []
        self._taken: list[NDArray[np.int32]] = []

    def keep(self, arrays: Arrays) -> None:
        """Keep what the loop has written and let it begin anew."""
        rows = arrays.journal[: arrays.control[c.JOURNAL]]
        self._stages.append((rows >> c.STAGE_SHIFT).astype(self._small))
        self._taken.append(rows.astype(np.int32))
        arrays.control[c.JOURNAL] = 0
        self.standing = arrays.rows.copy()

    def rows(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return stages and the transitions that they took, in the order of the loop."""
        stages = np.concatenate([np.zeros(0, self._small), *self._stages])
        return stages, np.concatenate([np.zeros(0, np.int32), *self._taken])

    def forget(self) -> None:
        """Forget the rows so far; where stages stand stays."""
        self._stages, self._taken = [], []

    @property
    def chose(self) -> Array:
        """Stages that went on with whichever input came first."""
        return np.flatnonzero(self.standing[:, c.CHOSE])

"""Orders in which trio runs the tasks of a batch, forced: results must not depend on them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
import trio._core._run as trio_run
from typing_extensions import override

__all__ = ["SCHEDULES", "forced_schedule"]

SCHEDULES: Final = ("first in, first out", "last in, first out", "shuffled 1", "shuffled 2")


class _Constant(random.Random):
    """Tosses coins that always fall on the same side."""

    def __init__(self, value: float) -> None:
        super().__init__(0)
        self._value = value

    @override
    def random(self) -> float:
        return self._value


@contextmanager
def forced_schedule(name: str) -> Iterator[None]:
    """Let trio run its batches in the order ``name``, one of ``SCHEDULES``.

    trio reverses a batch with probability 1/2, or shuffles it where tests ask for determinism.
    """
    coins = {SCHEDULES[0]: _Constant(0.0), SCHEDULES[1]: _Constant(1.0)}
    shuffled = name not in coins
    source = random.Random(name) if shuffled else coins[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING", shuffled)
        patch.setattr(trio_run, "_r", source)
        yield

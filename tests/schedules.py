"""Forced schedules: the test decides the order in which ready tasks run.

trio shuffles the tasks of a batch. Inside ``schedule`` their order is fixed, so that a test can
check that a report does not depend on it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, MutableSequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

from trio._core import _run as trio_run

from fabric.timing.engine import conductor
from tests.profiles import of_profile

SCHEDULES = of_profile(quick=("reversed", 1), deep=("natural", "reversed", 1, 2, 3))
"""Names of orders, and seeds of shuffled orders."""


class _Order:
    """Replaces trio's random generator. trio runs a batch from its end."""

    def __init__(self, name: str | int) -> None:
        self._name = name
        self._random = random.Random(name)

    def shuffle(self, batch: MutableSequence[Any]) -> None:
        if self._name == "natural":
            batch.reverse()
        elif self._name != "reversed":
            self._random.shuffle(batch)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)


class _Ready(deque[Any]):
    def __init__(self, name: str | int) -> None:
        super().__init__()
        self._name = name
        self._random = random.Random(name)

    def popleft(self) -> Any:
        if self._name == "reversed":
            return self.pop()
        if self._name != "natural":
            self.rotate(self._random.randrange(len(self)))
        return super().popleft()


@contextmanager
def schedule(name: str | int) -> Iterator[None]:
    """Run ready tasks oldest first (``natural``), ``reversed``, or in an order drawn from a seed.

    The order applies to the tasks in each of trio's batches, and to the units of the conductor.
    """
    with (
        mock.patch.object(conductor, "deque", partial(_Ready, name)),
        mock.patch.object(trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True),
        mock.patch.object(trio_run, "_r", _Order(name)),
    ):
        yield

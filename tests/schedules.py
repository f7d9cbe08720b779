"""Forced schedules: the order in which trio runs what is ready, chosen by the test.

trio shuffles the tasks of a batch on purpose. Inside ``schedule`` their order is the one asked for,
so that a test can say that a report does not depend on it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, MutableSequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from trio._core import _run as trio_run

__all__ = ["SCHEDULES", "schedule"]

SCHEDULES = ("natural", "reversed", 1, 2, 3)
"""Names of orders, and seeds of shuffled ones."""


class _Order:
    """Stands in for trio's source of randomness; a batch is run from its end."""

    def __init__(self, name: str | int) -> None:
        self._name = name
        self._random = random.Random(name)

    def shuffle(self, batch: MutableSequence[Any]) -> None:
        """Put a batch, which comes oldest task first, in this order."""
        if self._name == "natural":
            batch.reverse()
        elif self._name != "reversed":
            self._random.shuffle(batch)

    def uniform(self, low: float, high: float) -> float:
        """Return a number for trio's own clock."""
        return self._random.uniform(low, high)


@contextmanager
def schedule(name: str | int) -> Iterator[None]:
    """Run the tasks of every batch oldest first (``natural``), ``reversed``, or by a seed."""
    with (
        mock.patch.object(trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True),
        mock.patch.object(trio_run, "_r", _Order(name)),
    ):
        yield

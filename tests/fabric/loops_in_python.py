"""Compiled loops in Python, over arrays that refuse every index below 0 or beyond the last one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from fabric.timing.engine.machine_code import Counters, MachineCode


class Guarded:
    """An array of integers with no index but its own."""

    def __init__(self, array: Counters) -> None:
        self.size = array.size
        self._array = array

    def __getitem__(self, index: int) -> int:
        assert 0 <= index < self.size
        return int(self._array[index])

    def __setitem__(self, index: int, value: int) -> None:
        assert 0 <= index < self.size
        # What has more than 64 bits is cut off.
        self._array[index] = (int(value) + (1 << 63)) % (1 << 64) - (1 << 63)


def _over(loop: MachineCode, **arrays: Counters) -> Callable[..., tuple[int, ...]]:
    guarded = {name: Guarded(array) for name, array in arrays.items()}
    integers = [name for name in _names(loop) if name not in arrays]

    def call(*given: int) -> tuple[int, ...]:
        return loop.function(**guarded, **dict(zip(integers, given, strict=True)))

    return call


def _names(loop: MachineCode) -> Sequence[str]:
    code = loop.function.__code__
    return code.co_varnames[: code.co_argcount]


def in_python() -> AbstractContextManager[Any]:
    return mock.patch.object(MachineCode, "over", _over)

"""Runs compiled loops in Python, on arrays that refuse indices below 0 or beyond the last one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters, Row, Table


class Guarded:
    """An array of integers that refuses negative indices."""

    def __init__(self, array: Counters) -> None:
        self.size = array.size
        self._array = array

    def __getitem__(self, index: int) -> int:
        assert 0 <= index < self.size
        return int(self._array[index])

    def __setitem__(self, index: int, value: int) -> None:
        assert 0 <= index < self.size
        # Keep the lowest 64 bits.
        self._array[index] = (int(value) + (1 << 63)) % (1 << 64) - (1 << 63)


def _guarded(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*map(_guarded, value))
    if isinstance(value, Row):
        return type(value)(_guarded(memoryview(value._cells).obj), value._first)
    if isinstance(value, Table):
        table = Table(value.row, value.cells)
        table.memory = _guarded(value.cells)
        return table
    return Guarded(value)


def _over(loop: MachineCode, *worlds: object, **arrays: object) -> Callable[..., tuple[int, ...]]:
    code = loop.function.__code__
    names = code.co_varnames[: code.co_argcount]
    fixed = dict(zip(names, map(_guarded, worlds), strict=False))
    fixed |= {name: _guarded(array) for name, array in arrays.items()}
    integers = [name for name in names if name not in fixed]

    def call(*numbers: int) -> tuple[int, ...]:
        return loop.function(**fixed, **dict(zip(integers, numbers, strict=True)))

    return call


def in_python() -> AbstractContextManager[Any]:
    return mock.patch.object(MachineCode, "over", _over)

"""Python's garbage collector while a program is wired, and while it runs.

A program is many objects that stay: walking through all of them again and again takes a tenth of a
short run. Freezing them would be simpler, and leak: what is frozen and thawed again skips the
young generations, and the count that makes the collector look at the oldest one starts anew each
time, so that a process of many runs keeps every machine it has built. What a command has imported
is frozen, once.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import ExtensionFileLoader
from typing import Final

_NEVER: Final = 1 << 30

_SILENT: Final = sys.stdlib_module_names | {"greenlet", "ml_dtypes", "msgspec", "numpy"}
"""Packages with extension modules that do not complain."""

_lock: Final = threading.Lock()
_before: Final[list[tuple[int, int, int]]] = []
"""The thresholds before, once for each run under way."""


def everything_stays() -> None:
    """Take all there is for what lasts as long as the process.

    Python looks for garbage in it when the process ends, in all modules one after the other: a
    quarter of the time of a short command. There are extension modules that count what is left of
    theirs then, and complain: where there is one that is not known, nothing is taken for anything.
    """
    specs = (getattr(module, "__spec__", None) for module in tuple(sys.modules.values()))
    extensions = {
        spec.name.partition(".")[0]
        for spec in specs
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader)
    }
    if extensions <= _SILENT:
        gc.freeze()


@cache
def imports_stay() -> None:
    """Take what has been imported for what lasts, the first time a command of this process runs."""
    everything_stays()


@contextmanager
def only_young_garbage() -> Iterator[None]:
    """Leave the oldest generation alone; what became garbage meanwhile is found afterwards."""
    with _lock:
        _before.append(_before[0] if _before else gc.get_threshold())
        gc.set_threshold(*_before[0][:2], _NEVER)
    try:
        yield
    finally:
        with _lock:
            thresholds = _before.pop()
            if not _before:
                gc.set_threshold(*thresholds)

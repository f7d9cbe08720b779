"""Limits Python's garbage collector while a program is wired, and while it runs.

Collecting the objects of a program takes a tenth of a short run. ``gc.freeze`` in each run would
leak memory: unfreezing restarts the count of the oldest generation, so that it is never collected.
Therefore only the imports of a command are frozen, once.
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
"""Packages with extension modules that do not complain about objects that remain at exit."""

_lock: Final = threading.Lock()
_before: Final[list[tuple[int, int, int]]] = []
"""The original thresholds, one entry for each open context."""


def everything_stays() -> None:
    """Exempt all objects from collection until the process ends.

    This saves a quarter of the time of a short command. Some extension modules complain about
    objects that remain at exit, so nothing is exempted if an unknown extension module is loaded.
    """
    specs = (getattr(module, "__spec__", None) for module in tuple(sys.modules.values()))
    extensions = {
        spec.name.partition(".")[0]
        for spec in specs
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader)
    }
    if extensions <= _SILENT:
        gc.freeze()


imports_stay: Final = cache(everything_stays)
"""Exempts imported objects at the first command of this process; later calls do nothing."""


@contextmanager
def only_young_garbage() -> Iterator[None]:
    """Postpone collections of the oldest generation until the block ends."""
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

"""Calls of libraries that swallow the KeyboardInterrupt of a signal handler."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, TypeVar

Answer = TypeVar("Answer")

_AGAIN_SECONDS: Final = 0.01


def shielded(call: Callable[[], Answer], cancel: Callable[[], object] = bool) -> Answer:
    """Return ``call()``, made by another thread, since handlers run in the main thread only.

    DuckDB and pygraphviz catch errors of handlers. ``cancel`` makes the library end soon; it is
    repeated, since a call that has not begun ignores it.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call)
        try:
            return answer.result()
        except BaseException:
            while not answer.done():
                cancel()
                wait([answer], _AGAIN_SECONDS)
            raise

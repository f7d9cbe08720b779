"""Coroutines that a user's operator made and never awaited: what they should have done is missing.

Python warns of them when they are dropped, which is in the line that forgot them. While a run goes
on, that warning is an error of the run.
"""

from __future__ import annotations

import contextlib
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ["unawaited"]

_MESSAGE: Final = r"coroutine '(.*)' was never awaited"
_lock: Final = threading.Lock()
_told: Final[dict[int, Callable[[str], bool]]] = {}
"""By thread, whom to tell; runs in several threads share one hook, as Python has only one."""
_shown: Final[list[Callable[..., None]]] = []
"""What showed warnings before, while there is a hook."""


@contextlib.contextmanager
def unawaited(tell: Callable[[str], bool]) -> Iterator[None]:
    """Call ``tell`` with the name of each coroutine that this thread drops without awaiting it.

    It says whether it took note; where it did not, the warning is shown as ever.
    """
    thread = threading.get_ident()
    with _lock:
        if not _told:
            _shown.append(warnings.showwarning)
            warnings.filterwarnings("always", _MESSAGE, RuntimeWarning)
            warnings.showwarning = _show
        _told[thread] = tell
    try:
        yield
    finally:
        with _lock:
            del _told[thread]
            if not _told:
                show = _shown.pop()
                if warnings.showwarning is _show:
                    warnings.showwarning = show


def _show(message: Warning | str, category: type[Warning], *where: Any, **named: Any) -> None:
    tell = _told.get(threading.get_ident())
    found = re.match(_MESSAGE, str(message))
    if found is not None and tell is not None and tell(found[1]):
        return
    (_shown[-1] if _shown else warnings.showwarning)(message, category, *where, **named)

"""The machine that Streaming Tensor Programs run on; it knows no operator.

What people need who write programs, run them and look at what came of it is here; what authors of
operators and other extensions need besides is in ``fabric.extend``. The names are those of
``__init__.pyi``. Each is loaded when it is first used, so that the command line answers without
waiting for trio, numpy or sympy.
"""

from __future__ import annotations

# Any: the shell of a notebook, which need not be there.
from typing import Any

import lazy_loader

from fabric.messages.telling.sheet import Form, draws

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def _drawn(thing: object, form: Form) -> str | None:
    from fabric.notebook.showing import html, picture, text

    return {"html": html, "svg": picture, "text": text}[form](thing)


draws(_drawn)


def load_ipython_extension(ipython: Any) -> None:
    """Make ``%%fabric`` known; what ``%load_ext fabric`` calls."""
    from fabric.magic import load

    load(ipython)

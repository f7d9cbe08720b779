"""Programs, runs and results of the fabric on which Streaming Tensor Programs run.

``fabric.extend`` has the names for authors of operators, functions, memories and other extensions.
Each name of ``__init__.pyi`` is loaded when it is first used, so that the command line answers
without waiting for trio, numpy or sympy.
"""

from __future__ import annotations

import sys

_is_main = sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)] in ("fabric", "-mfabric")
if _is_main and not sys.flags.safe_path:
    # The current folder comes last: its files, such as random.py or typing.py, hide no library.
    sys.path.append(sys.path.pop(0))

# Any: IPython may not be installed.
from typing import Any

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%fabric`` in a notebook; IPython calls it for ``%load_ext fabric``."""
    from fabric.magic import load

    load(ipython)

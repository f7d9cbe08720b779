"""The machine that Streaming Tensor Programs run on; it knows no operator.

What people need who write programs, run them and look at what came of it is here; what authors of
operators and other extensions need besides is in ``fabric.extend``. The names are those of
``__init__.pyi``. Each is loaded when it is first used, so that the command line answers without
waiting for trio, numpy or sympy.
"""

from __future__ import annotations

import sys

# Any: the shell of a notebook, which need not be there.
from typing import Any

_is_main = sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)] in ("fabric", "-mfabric")
if _is_main and not sys.flags.safe_path:
    # The current folder comes last: its files, such as random.py, hide no library.
    sys.path.append(sys.path.pop(0))

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def load_ipython_extension(ipython: Any) -> None:
    """Make ``%%fabric`` known; what ``%load_ext fabric`` calls."""
    from fabric.magic import load

    load(ipython)

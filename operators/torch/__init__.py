"""PyTorch models as programs: captured, planned as kernels, and wired as STeP operators.

It needs the extra ``torch``. No other room imports it. ``__init__.pyi`` lists its names.
"""

from __future__ import annotations

import importlib
from typing import Any

import lazy_loader

from fabric.extend import check_extra

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import all importers before a name, so that a user's importer replaces one of them."""
    if name in __all__:
        check_extra("operators.torch", "torch", "torch")
        importlib.import_module("operators.torch.calls")
    return _load(name)

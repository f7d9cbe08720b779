"""PyTorch models as programs: captured, planned as kernels, and wired as STeP operators.

Needs the extra ``torch``; other rooms do not import this one. ``__init__.pyi`` lists its names.
"""

from __future__ import annotations

import importlib
from typing import Any

import lazy_loader

from fabric.extend import check_extra

_found, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Return one of the names, with all calls registered: a user's own registration comes later.

    Raises:
        ConfigurationError: the extra is not installed.
    """
    if name in __all__:
        check_extra("operators.torch", "torch", "torch")
        importlib.import_module("operators.torch.calls")
    return _found(name)

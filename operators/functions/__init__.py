"""Hardware functions for Map, Accum, Scan and FlatMap, with their cost.

``__init__.pyi`` lists the names; each is loaded on its first use.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

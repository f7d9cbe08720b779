"""Further names for authors of operators, functions, memories, exports and importers.

``extend.pyi`` lists the names. Each is loaded at its first use.
"""

from __future__ import annotations

import lazy_loader

# The stub's imports are relative to the package.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub("fabric", __file__)

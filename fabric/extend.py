"""What authors of operators, functions, memories, exports and importers need besides ``fabric``.

The names are those of ``extend.pyi``. Each is loaded when it is first used.
"""

from __future__ import annotations

import lazy_loader

# Its modules are those of the package.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub("fabric", __file__)

"""STeP's operators, each family in one module, and the hardware functions they apply.

What several of them share is in ``streams`` and ``tiles``. The names are those of ``__init__.pyi``;
each is loaded when it is first used, since a program uses a third of them.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

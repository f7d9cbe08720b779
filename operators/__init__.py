"""STeP's operators, one family per module, and the hardware functions that they apply.

``streams`` and ``tiles`` have the code that several operators share. ``__init__.pyi`` lists the
names; each is loaded on its first use, since a program uses a third of the operators.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

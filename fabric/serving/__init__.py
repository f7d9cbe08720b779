"""What a server of a language model gives its users: a stream of requests meets a scheduler.

The names are those of ``__init__.pyi``; each is loaded when it is first used.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

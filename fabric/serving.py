"""What a server of a language model gives its users: a stream of requests meets a scheduler.

The names are those of ``serving.pyi``; each is loaded when it is first used.
"""

from __future__ import annotations

import lazy_loader

# Its modules are those of the package.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub("fabric", __file__)

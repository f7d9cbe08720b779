"""The machine that Streaming Tensor Programs run on; it knows no operator.

The names are those of ``__init__.pyi``. Each is loaded when it is first used, so that the command
line answers without waiting for trio, numpy or sympy.
"""

from __future__ import annotations

import lazy_loader

from fabric.telling.shown import Form, draws

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def _drawn(thing: object, form: Form) -> str | None:
    from fabric.notebook.showing import html, picture

    return html(thing) if form == "html" else picture(thing)


draws(_drawn)

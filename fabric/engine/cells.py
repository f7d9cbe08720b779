"""Arrays of integers as compiled loops know them: an address and a size, indexed from 0 on.

Numba's own arrays take an index below 0 from the end, as Python does. A loop never does, and asking
for it at every access takes a third of its time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

# Any: numba and llvmlite have no types.
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, make_attribute_wrapper, models, overload, register_model

__all__ = ["cells"]


class Cells(types.Type):  # type: ignore[misc]
    """The type of integers [size] of 64 bits."""


_CELLS = Cells(name="Cells")
_POINTER: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]
_MEMBERS = [("data", _POINTER), ("size", types.int64)]


@register_model(Cells)  # type: ignore[misc]
class _Model(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Cells) -> None:
        super().__init__(manager, kind, _MEMBERS)


for _member, _ in _MEMBERS:
    make_attribute_wrapper(Cells, _member, _member)


@intrinsic  # type: ignore[misc]
def cells(context: Any, data: Any, size: Any) -> tuple[Any, Callable[..., Any]]:
    """Return ``size`` integers from the address ``data`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = cgutils.create_struct_proxy(signature.return_type)(context, builder)
        made.data, made.size = arguments
        return made._getvalue()

    return _CELLS(data, size), generate


@overload(operator.getitem, strict=False)  # type: ignore[misc]
def _get(of: Any, index: Any) -> Callable[..., Any] | None:
    if isinstance(of, Cells) and isinstance(index, types.Integer):
        return lambda of, index: of.data[index]
    return None


@overload(operator.setitem, strict=False)  # type: ignore[misc]
def _set(of: Any, index: Any, value: Any) -> Callable[..., Any] | None:
    if isinstance(of, Cells) and isinstance(index, types.Integer):

        def store(of: Any, index: Any, value: Any) -> None:
            of.data[index] = value

        return store
    return None

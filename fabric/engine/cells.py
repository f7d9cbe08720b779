"""Arrays of integers as compiled loops know them: an address and a size, indexed from 0 on.

Numba's own arrays take an index below 0 from the end, as Python does. A loop never does, and asking
at every access whether it does takes a third of its time.
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


class Cells(types.Type):
    """The type of integers [size] of 64 bits."""


_CELLS = Cells("Cells")
_POINTER: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]
_MEMBERS = [("data", _POINTER), ("size", types.int64)]


@register_model(Cells)
class _Model(models.StructModel):
    def __init__(self, manager: Any, kind: Cells) -> None:
        super().__init__(manager, kind, _MEMBERS)  # type: ignore[no-untyped-call]


for _member, _ in _MEMBERS:
    make_attribute_wrapper(Cells, _member, _member)


@intrinsic
def cells(_: Any, data: Any, size: Any) -> tuple[Any, Callable[..., Any]]:
    """Return ``size`` integers from the address ``data`` on, which is an integer, too."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        proxy: Any = cgutils.create_struct_proxy(signature.return_type)  # type: ignore[no-untyped-call]
        made = proxy(context, builder)
        address, made.size = arguments
        made.data = builder.inttoptr(address, made.data.type)
        return made._getvalue()

    return _CELLS(data, size), generate


# The implementation says no types: numba compares its signature with this one.
@overload(operator.getitem, strict=False)
def _get(of: Any, index: Any) -> Callable[..., Any] | None:
    if isinstance(of, Cells) and isinstance(index, types.Integer):
        return lambda of, index: of.data[index]
    return None


@overload(operator.setitem, strict=False)
def _set(of: Any, index: Any, value: Any) -> Callable[..., Any] | None:
    if isinstance(of, Cells) and isinstance(index, types.Integer) and value is types.int64:

        def store(of: Any, index: Any, value: Any) -> None:
            of.data[index] = value

        return store
    return None

"""From a Python function to machine code that needs neither numba nor Python; by numba and LLVM.

Importing it takes half a second: it is imported where no machine code has been kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from types import FunctionType

# Any: numba and llvmlite have no types.
from typing import Any

import numba
from llvmlite import binding as llvm
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, make_attribute_wrapper, models, overload, register_model

# Neither Python nor C calls a function of a loop by itself: what would let them takes a fifth of
# the time to compile.
_OPTIONS: Any = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(
    function: Callable[..., Any], is_array: Mapping[str, bool], uses: Iterable[str], target: Any
) -> bytes:
    """Return an object file with a C function named like ``function``.

    ``function`` takes integers and arrays, and returns a tuple of integers. The C function takes a
    pointer to addresses and sizes of the arrays, followed by room for the results, and the
    integers.
    """
    pointer: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]
    integers: Any = [types.int64 for array in is_array.values() if not array]
    # Without Python's rule for a division by zero nothing in a loop over integers raises.
    loop = _jitted(function, {function.__module__, *uses}, {})
    entry = numba.cfunc(types.void(pointer, *integers), error_model="numpy")(_entry(loop, is_array))
    module = llvm.parse_assembly(entry.inspect_llvm())
    # What raises and allocates is left out once it is seen that the loop never does.
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != entry.native_name:
            value.linkage = llvm.Linkage.internal
    passes = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    needed = [each.name for each in module.functions if each.is_declaration]
    missing = [name for name in needed if not name.startswith("llvm.")]
    assert not missing, f"{function.__name__} raises or allocates: it needs {', '.join(missing)}"
    module.get_function(entry.native_name).name = function.__name__
    code: bytes = target.emit_object(module)
    return code


def _jitted(function: Callable[..., Any], modules: set[str], done: dict[object, Any]) -> Any:
    """Return ``function`` as numba knows it, and with it the functions of ``modules`` it calls."""
    if function not in done:
        assert isinstance(function, FunctionType)
        names = dict(function.__globals__)
        for name in function.__code__.co_names:
            called = names.get(name)
            if isinstance(called, FunctionType) and called.__module__ in modules:
                names[name] = _jitted(called, modules, done)
        anew = FunctionType(function.__code__, names, function.__name__)
        done[function] = numba.njit(**_OPTIONS)(anew)
    return done[function]


def _entry(loop: Callable[..., Any], is_array: Mapping[str, bool]) -> Callable[..., None]:
    """Return the C function in front of ``loop``, which numba can compile."""
    places = count(0, 2)
    values = {
        name: f"cells(frame[{(place := next(places))}], frame[{place + 1}])" if array else name
        for name, array in is_array.items()
    }
    integers = [name for name, array in is_array.items() if not array]
    text = (
        f"def entry({', '.join(['frame', *integers])}):\n"
        f"    found = loop({', '.join(values.values())})\n"
        "    for place in range(len(found)):\n"
        f"        frame[{next(places)} + place] = found[place]\n"
    )
    names: dict[str, Any] = {"cells": cells, "loop": loop}
    exec(text, names)
    entry: Callable[..., None] = names["entry"]
    return entry


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

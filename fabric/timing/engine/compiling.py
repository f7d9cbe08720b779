"""Compiles functions with numba and LLVM, to machine code that needs neither numba nor Python.

A world, a table and an array of integers are pointers into a frame, which has the address and the
size of every table. A row is a pointer to its first column. ``world.channels[3].sent += 1`` loads
an address, which no loop changes, and then loads and stores an integer at a fixed offset.

Importing this module takes half a second, so it is imported only if no machine code was kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dis import get_instructions
from functools import cache
from types import FunctionType

# Any: numba and llvmlite have no types.
from typing import Any

import numba
from llvmlite import binding as llvm
from llvmlite import ir
from numba import types
from numba.core import imputils
from numba.core.typing import templates
from numba.extending import intrinsic, models, register_model

from fabric.timing.engine.tables import parts, row_of, width

# Loops need no wrappers for calls from Python and C, and no rewrites. Wrappers would take a fifth
# of the time to compile, and rewrites a tenth.
_OPTIONS: Any = dict.fromkeys(("no_cpython_wrapper", "no_cfunc_wrapper", "no_rewrites"), True)


def compiled(function: Callable[..., Any], kinds: Mapping[str, Any], target: Any) -> bytes:
    """Return an object file with a C function named like ``function``.

    ``function`` takes parameters of ``kinds``, and returns a tuple of integers. The C function
    takes a pointer to a frame, and the integers. The frame has the address and the size of each
    table, and then room for the results.
    """
    pointer: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]
    integers: Any = [types.int64 for kind in kinds.values() if kind is int]
    # With numpy's error model, a division by zero does not raise. So loops over integers never do.
    assert isinstance(function, FunctionType)
    loop = _jitted(function)
    config: Any = numba.config
    level = config.OPT
    try:
        # All functions are optimized together below, which takes less time than one by one.
        config.OPT = type(level)(0)
        signature = types.void(pointer, *integers)
        entry = numba.cfunc(signature, error_model="numpy")(_entry(loop, kinds))
    finally:
        config.OPT = level
    module = llvm.parse_assembly(entry.inspect_llvm())
    # LLVM removes internal functions that raise or allocate, because the loop never calls them.
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != entry.native_name:
            value.linkage = llvm.Linkage.internal
    # Level 1 finds constant results. Level 3 then inlines functions by their size.
    for speed_level in (1, 3):
        options = llvm.create_pipeline_tuning_options(speed_level=speed_level)
        passes = llvm.create_pass_builder(target, options)
        passes.getModulePassManager().run(module, passes)
    needed = [value.name for value in module.functions if value.is_declaration]
    missing = [name for name in needed if not name.startswith("llvm.")]
    assert not missing, f"{function.__name__} raises or allocates: it needs {', '.join(missing)}"
    module.get_function(entry.native_name).name = function.__name__
    return bytes(target.emit_object(module))


@cache
def _jitted(function: FunctionType) -> Any:
    """Return ``function`` with numba's decorator, and decorate the functions that it calls."""
    names = dict(function.__globals__)
    # ``co_names`` has attributes, too, and a column may be named like a function.
    for name in {step.argval for step in get_instructions(function) if "GLOBAL" in step.opname}:
        if isinstance(names.get(name), FunctionType):
            names[name] = _jitted(names[name])
    copy = FunctionType(function.__code__, names, function.__name__)
    return numba.njit(error_model="numpy", **_OPTIONS)(copy)


def _entry(loop: Callable[..., Any], kinds: Mapping[str, Any]) -> Callable[..., None]:
    """Return the function that numba compiles: it reads the frame and calls ``loop``."""
    names: dict[str, Any] = {"loop": loop}
    arguments, place = [], 0
    for name, kind in kinds.items():
        if kind is int:
            arguments.append(name)
        else:
            names[f"in_{name}"] = _in_frame(kind, place)
            arguments.append(f"in_{name}(frame)")
            place += width(kind)
    integers = [name for name, kind in kinds.items() if kind is int]
    text = (
        f"def entry({', '.join(['frame', *integers])}):\n"
        f"    results = loop({', '.join(arguments)})\n"
        "    for place in range(len(results)):\n"
        f"        frame[{place} + place] = results[place]\n"
    )
    exec(text, names)
    entry: Callable[..., None] = names["entry"]
    return entry


def _in_frame(kind: Any, place: int) -> Any:
    """Return a function from a frame to the part of this ``kind`` at ``place`` in the frame."""

    @intrinsic
    def get(_: Any, frame: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
            return _part(builder, arguments[0], place, kind)

        return Part(kind)(frame), generate

    return get


class Part(types.Type):
    """The type of a world, a table, an array or a row."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.row = row_of(kind)
        self.is_row = self.row is kind
        self.is_table = not self.is_row and not parts(kind)
        super().__init__(str(kind))

    def attribute(self, name: str) -> Any:
        """Return the type of an attribute; None if unknown."""
        if self.is_row and self.row is not None:
            return types.int64 if name in self.row.__annotations__ else None
        if self.is_table:
            return types.int64 if name == "size" else None
        return Part(parts(self.kind)[name])


# Any: their functions have no types.
_TEMPLATES: Any = templates
_LOWERING: Any = imputils

_POINTER = ir.IntType(64).as_pointer()


@register_model(Part)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Part) -> None:
        super().__init__(manager, kind, _POINTER)  # type: ignore[no-untyped-call]


def _integer(value: int) -> Any:
    return ir.Constant(ir.IntType(64), value)


def _at(builder: Any, pointer: Any, place: int) -> Any:
    return builder.gep(pointer, [_integer(place)])


def _place(row: Any, column: str) -> int:
    return list(row.__annotations__).index(column)


def _fixed(builder: Any, pointer: Any) -> Any:
    """Load an address or a size from a frame. They never change, so LLVM may load them once."""
    loaded = builder.load(pointer)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def _address(builder: Any, pointer: Any) -> Any:
    return _fixed(builder, builder.bitcast(pointer, _POINTER.as_pointer()))


def _part(builder: Any, frame: Any, place: int, kind: Any) -> Any:
    """Return the pointer to the part of ``kind`` at ``place`` in a frame."""
    pointer = _at(builder, frame, place)
    return _address(builder, pointer) if Part(kind).is_row else pointer


@templates.infer_getattr
class _Attributes(templates.AttributeTemplate):
    key = Part

    def generic_resolve(self, part: Part, name: str) -> Any:  # type: ignore[override]
        return part.attribute(name)


def _get(_: Any, builder: Any, part: Part, pointer: Any, name: str) -> Any:
    if part.is_row and part.row is not None:
        return builder.load(_at(builder, pointer, _place(part.row, name)))
    if part.is_table:
        columns = 1 if part.row is None else len(part.row.__annotations__)
        return builder.udiv(_fixed(builder, _at(builder, pointer, 1)), _integer(columns))
    fields = parts(part.kind)
    before = list(fields)[: list(fields).index(name)]
    return _part(builder, pointer, sum(width(fields[field]) for field in before), fields[name])


def _set(context: Any, builder: Any, types_: Any, arguments: Any, name: str) -> None:
    part, kind = types_.args
    pointer, value = arguments
    value = context.cast(builder, value, kind, types.int64)
    builder.store(value, _at(builder, pointer, _place(part.row, name)))


class _GetItem(templates.AbstractTemplate):
    def generic(self, arguments: Any, _: Any) -> Any:
        table, index = arguments
        if isinstance(table, Part) and table.is_table and isinstance(index, types.Integer):
            item = types.int64 if table.row is None else Part(table.row)
            return _TEMPLATES.signature(item, table, types.int64)
        return None


class _SetItem(templates.AbstractTemplate):
    def generic(self, arguments: Any, _: Any) -> Any:
        table, index, _ = arguments
        if isinstance(table, Part) and table.is_table and isinstance(index, types.Integer):
            return _TEMPLATES.signature(types.none, table, types.int64, types.int64)
        return None


def _get_item(_: Any, builder: Any, types_: Any, arguments: Any) -> Any:
    table, index = arguments
    row = types_.args[0].row
    if row is None:
        return builder.load(builder.gep(_address(builder, table), [index]))
    first = builder.mul(index, _integer(len(row.__annotations__)))
    return builder.gep(_address(builder, table), [first])


def _set_item(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
    table, index, value = arguments
    builder.store(value, builder.gep(_address(builder, table), [index]))
    return ir.Constant(_POINTER, None)


_TEMPLATES.infer_global(operator.getitem)(_GetItem)
_TEMPLATES.infer_global(operator.setitem)(_SetItem)
_LOWERING.lower_getattr_generic(Part)(_get)
_LOWERING.lower_setattr_generic(Part)(_set)
_LOWERING.lower_builtin(operator.getitem, Part, types.Integer)(_get_item)
_LOWERING.lower_builtin(operator.setitem, Part, types.Integer, types.Integer)(_set_item)

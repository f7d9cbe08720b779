"""Checks made of annotations: what a field or a parameter takes, and what it is turned into.

An integer of numpy's becomes Python's, a list a tuple; a truth value is no integer.
"""

from __future__ import annotations

import inspect
import operator
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from fabric.arguments.checks import (
    Anything,
    Bounded,
    Bounds,
    Called,
    Capable,
    Check,
    Choice,
    Entries,
    Instance,
    Items,
    OneOf,
    Plain,
)

__all__ = ["check_of", "several"]


def _truth(value: object) -> bool:
    if value.__class__.__module__ != "numpy" or str(getattr(value, "dtype", None)) != "bool":
        raise TypeError
    return bool(value)


def _integer(value: object) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)  # type: ignore[arg-type]


def _number(value: object) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError
    return value if isinstance(value, int) else float(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _none(_value: object) -> None:
    raise TypeError


_ANYTHING: Final = Anything()
_NONE: Final = Plain(type(None), "None", "None", _none)
_PLAIN: Final[dict[object, Check]] = {
    int: Plain(int, "an integer", "integers", _integer),
    float: Plain(float, "a number", "numbers", _number),
    bool: Plain(bool, "True or False", "truth values", _truth),
    str: Plain(str, "text", "texts", _text),
    type(None): _NONE,
    None: _NONE,
    Callable: Called(),
    Any: _ANYTHING,
}


def check_of(annotation: object) -> Check:
    """Return the check for an annotation; what it cannot tell is not checked."""
    kind = typing.get_origin(annotation) or annotation
    if kind in _COMPOSED:
        return _COMPOSED[kind](typing.get_args(annotation))
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and getattr(kind, "_is_protocol", False):
        return Capable(kind)
    # What goes for a Sequence, say, is left to who uses it.
    return Instance(kind) if isinstance(kind, type) and not inspect.isabstract(kind) else _ANYTHING


def several(check: Check) -> Check:
    """Return the check for a tuple of any number of what ``check`` lets pass."""
    return Items([check], None)


def _tuple_of(arguments: tuple[object, ...]) -> Check:
    if not arguments:
        return Instance(tuple)
    variable = arguments[-1] is Ellipsis
    items = [check_of(each) for each in arguments if each is not Ellipsis]
    return Items(items, None if variable else len(items))


def _union_of(arguments: tuple[object, ...]) -> Check:
    return OneOf([check_of(each) for each in arguments])


def _mapping_of(arguments: tuple[object, ...]) -> Check:
    return Entries(*map(check_of, arguments))


def _annotated(arguments: tuple[object, ...]) -> Check:
    check = check_of(arguments[0])
    for each in arguments[1:]:
        if isinstance(each, Check):
            check = each
        elif isinstance(each, Bounds):
            check = Bounded(check, each)
    return check


_COMPOSED: Final[dict[object, Callable[[tuple[object, ...]], Check]]] = {
    Annotated: _annotated,
    ClassVar: lambda arguments: check_of(arguments[0]),
    Literal: Choice,
    Mapping: _mapping_of,
    tuple: _tuple_of,
    types.UnionType: _union_of,
    typing.Union: _union_of,
}

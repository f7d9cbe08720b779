"""Checks of values against the annotations of fields and parameters.

The integers of numpy become Python integers, and lists become tuples. A bool is not an integer.
"""

from __future__ import annotations

import inspect
import itertools
import operator
import os
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple

from typing_extensions import override

from fabric.messages.errors import FabricError
from fabric.messages.text import a_or_an, plural
from fabric.messages.users_code import raised

if TYPE_CHECKING:
    import numpy as np


_MODULES: Final = re.compile(r"\b(?:\w+\.)+")

_NAMES: Final = {"ndarray": "array", "dtype": "element type", "type": "class"}
"""The names of some classes in messages."""

_MOST_ITEMS: Final = 1 << 24
"""The most items that are read from an iterator, which may be endless."""


class Unfit(Exception):  # noqa: N818 - the caller turns it into an error
    """A value does not fit an annotation."""


class Check(NamedTuple):
    """A check of a value.

    Attributes:
        text: the expected value in the singular, such as ``an integer``.
        plural: the expected values in the plural, such as ``integers``.
        settle: returns the converted value, or raises ``Unfit``.
        hint: returns an addition to the message about a wrong value.
        kind: the class, if exactly its instances fit; otherwise None.
    """

    text: str
    plural: str
    settle: Callable[[Any], Any]
    hint: Callable[[Any], str] = lambda _: ""
    kind: type | None = None

    @override
    def __repr__(self) -> str:
        return self.text


class Bounds(NamedTuple):
    """The range of a number, as in ``Annotated[int, Bounds(1)]``.

    Attributes:
        least, most: the range, both included; ``most`` is None if there is no upper bound.
    """

    least: int
    most: int | None = None

    @override
    def __repr__(self) -> str:
        return (
            f"at least {self.least:,}" if self.most is None else f"{self.least:,} to {self.most:,}"
        )

    def hold(self, number: Any) -> bool:
        """Whether a number is in the range; a NaN is not."""
        return bool(number >= self.least and (self.most is None or number <= self.most))


class Alias:
    """A union of types with a name and a text for ``help``, which Python's unions lack."""

    def __init__(self, name: str, value: object, module: str, text: str) -> None:
        self.__name__ = name
        self.__value__ = value
        self.__module__ = module
        self.__doc__ = text

    @override
    def __repr__(self) -> str:
        return _MODULES.sub("", repr(self.__value__))

    def __or__(self, other: object) -> object:
        return typing.Union[self.__value__, other]  # noqa: UP007 - an operand may be a text


def check_of(annotation: object) -> Check:
    """Return the check for an annotation; every value fits an unknown annotation."""
    if isinstance(annotation, Alias):
        annotation = annotation.__value__
    if isinstance(annotation, typing.TypeVar):
        annotation = annotation.__bound__ or Any
    kind = typing.get_origin(annotation) or annotation
    if kind in _COMPOSED:
        return _COMPOSED[kind](typing.get_args(annotation))
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and getattr(kind, "_is_protocol", False):
        return _capable(kind)
    if _NAMES.get(getattr(kind, "__name__", "")) == "array":
        return _ARRAY
    # Abstract classes, such as Iterable, are not checked.
    return _instance(kind) if isinstance(kind, type) and not inspect.isabstract(kind) else _ANYTHING


def tuple_of(checks: Sequence[Check], count: int | None) -> Check:
    """Return the check for a tuple of ``count`` items, or of any number if None."""
    many = "" if count is None else f"{count} "

    def settle(value: object) -> object:
        items = ordered_items(value)
        if count not in (None, len(items)):
            raise Unfit
        wanted = checks if count is not None else itertools.repeat(checks[0])
        settled = tuple([check.settle(item) for check, item in zip(wanted, items, strict=False)])
        return items if all(map(operator.is_, settled, items)) else settled

    return Check(
        f"a tuple of {many}{checks[0].plural}", f"tuples of {many}{checks[0].plural}", settle
    )


def _fitting(text: str, plural: str, fits: Callable[[Any], bool], **more: Any) -> Check:
    def settle(value: object) -> object:
        if not fits(value):
            raise Unfit
        return value

    return Check(text, plural, settle, **more)


def _plain(kind: type, text: str, plural: str, convert: Callable[[Any], object]) -> Check:
    def settle(value: object) -> object:
        if value.__class__ is kind:
            return value
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError):
            raise Unfit from None

    return Check(text, plural, settle)


def _instance(kind: type) -> Check:
    name = _NAMES.get(kind.__name__, kind.__name__)

    def hint(value: object) -> str:
        if isinstance(value, type) and issubclass(value, kind):
            return f", such as {value.__name__}()"
        if inspect.isfunction(value) and value.__name__.isidentifier():
            return f" (is {value.__name__}() meant?)"
        if kind.__name__ == "dtype":
            return ", such as dtype_named('bfloat16')"
        duties = getattr(kind, "duties", ())
        return f", which defines {', '.join(duties)}" if duties else ""

    fits: Callable[[object], bool] = lambda value: isinstance(value, kind)  # noqa: E731
    return _fitting(a_or_an(name), plural(name), fits, hint=hint, kind=kind)


def _capable(protocol: type) -> Check:
    names = [name for name in vars(protocol) if not name.startswith("_")]
    methods = " and ".join(f"{name}()" for name in names)
    return _fitting(
        f"{a_or_an(protocol.__name__)}, with {methods}",
        f"{protocol.__name__}s, with {methods}",
        lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in names),
    )


def _union(arguments: Sequence[object]) -> Check:
    options = list(map(check_of, arguments))

    def settle(value: object) -> object:
        if value is None and _NONE in options:
            return None
        if isinstance(value, Iterator):
            value = ordered_items(value)  # each option reads all items
        for option in options:
            try:
                return option.settle(value)
            except Unfit:
                continue
        raise Unfit

    return Check(
        " or ".join(option.text for option in options),
        " or ".join(option.plural for option in options),
        settle,
        lambda value: next(filter(None, (option.hint(value) for option in options)), ""),
    )


def _tuple(arguments: Sequence[object]) -> Check:
    if not arguments:
        return _instance(tuple)
    checks = [check_of(argument) for argument in arguments if argument is not Ellipsis]
    return tuple_of(checks, None if arguments[-1] is Ellipsis else len(checks))


def _sequence(arguments: Sequence[object]) -> Check:
    """Return a check that reads a sequence once, into a tuple; callers check the items."""
    if not arguments:
        return _ANYTHING
    item = check_of(arguments[0])
    nested = typing.get_origin(arguments[0]) is Sequence

    def settle(value: object) -> object:
        items = ordered_items(value)
        return tuple(map(item.settle, items)) if nested else items

    return Check(f"a list of {item.plural}", f"lists of {item.plural}", settle)


def _mapping(arguments: Sequence[object]) -> Check:
    keys, values = map(check_of, arguments)

    def settle(value: object) -> object:
        if not isinstance(value, Mapping):
            raise Unfit
        return {keys.settle(key): values.settle(item) for key, item in value.items()}

    about = f"from {keys.plural} to {values.plural}"
    return Check(f"a dict {about}", f"dicts {about}", settle)


def _choice(values: Sequence[object]) -> Check:
    def fits(value: object) -> bool:
        return any(value.__class__ is choice.__class__ and value == choice for choice in values)

    text = f"one of {', '.join(map(str, values))}"
    return _fitting(text, text, fits)


def _annotated(arguments: Sequence[object]) -> Check:
    check = check_of(arguments[0])
    for condition in arguments[1:]:
        if isinstance(condition, Check):
            check = condition
        elif isinstance(condition, Bounds):
            check = _bounded(check, condition)
    return check


def _bounded(number: Check, bounds: Bounds) -> Check:
    def settle(value: object) -> object:
        settled = number.settle(value)
        if not bounds.hold(settled):
            raise Unfit
        return settled

    least, most = bounds
    text = f"of at least {least}" if most is None else f"from {least} to {most}"
    return Check(f"{number.text} {text}", f"{number.plural} {text}", settle)


def ordered_items(value: object) -> tuple[Any, ...]:
    """Return the items of a list, an array or a generator; raise ``Unfit`` above 2**24 items."""
    if type(value) is tuple:
        return value
    if isinstance(value, str | bytes | bytearray | Mapping | set | frozenset):
        raise Unfit
    try:
        items = iter(value)  # type: ignore[call-overload]  # a TypeError is expected
    except (TypeError, FabricError):
        raise Unfit from None
    collected = tuple(itertools.islice(items, _MOST_ITEMS + 1))
    if len(collected) > _MOST_ITEMS:
        raise Unfit
    return collected


def array_of(value: object) -> np.ndarray:
    """Return an array or nested iterables of numbers as an array."""
    import numpy as np

    if is_masked(value):
        raise Unfit
    if hasattr(type(value), "__array__"):
        array = _of_tensor(value)
        return array if array.dtype.kind != "O" else array_of(array.tolist())
    numbers = _nested(value)
    try:
        array = np.array(numbers)
        if array.dtype.kind == "f" and _are_integers(numbers):
            # numpy turns a list of unsigned 64-bit and signed integers into rounded floats.
            array = np.array(numbers, np.uint64)
    except (ValueError, OverflowError):
        raise Unfit from None
    return array


def _of_tensor(value: Any) -> np.ndarray:
    """Return an array of a tensor, also of a PyTorch tensor with gradients or of a narrow type."""
    import ml_dtypes
    import numpy as np

    name = str(getattr(value, "dtype", ""))
    if not name.startswith("torch."):
        return np.asarray(value)
    tensor = value.detach().cpu().resolve_neg()
    narrow = vars(ml_dtypes).get(name.removeprefix("torch."))
    # The types of ml_dtypes have at most 16 bits, so that float32 holds their numbers exactly.
    return np.asarray(tensor) if narrow is None else np.asarray(tensor.float()).astype(narrow)


def is_masked(value: object) -> bool:
    mask: Any = getattr(value, "mask", None) if hasattr(type(value), "mask") else None
    return hasattr(mask, "any") and bool(mask.any())


def _nested(value: object) -> Any:
    """Return numbers and arrays as they are, and other iterables as lists."""
    if hasattr(type(value), "__array__"):
        return array_of(value)
    if isinstance(value, int | float | complex):
        return value
    return list(map(_nested, ordered_items(value)))


def _are_integers(numbers: Any) -> bool:
    if isinstance(numbers, list):
        return bool(numbers) and all(map(_are_integers, numbers))
    return isinstance(numbers, int) or (hasattr(numbers, "dtype") and numbers.dtype.kind in "iu")


def _truth(value: object) -> bool:
    if value.__class__.__module__ != "numpy" or str(getattr(value, "dtype", None)) != "bool":
        raise TypeError
    return bool(value)


def _integer(value: object) -> int:
    if isinstance(value, bool) or is_masked(value):
        raise TypeError
    return operator.index(value)  # type: ignore[arg-type]


def _number(value: object) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__") or is_masked(value):
        raise TypeError
    return value if isinstance(value, int) else float(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _path(value: object) -> Path:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise TypeError
    return value if isinstance(value, Path) else Path(value)


def _settled_array(value: object) -> np.ndarray:
    try:
        return array_of(value if hasattr(type(value), "__array__") else ordered_items(value))
    except Unfit:
        raise
    except BaseException as error:
        raise raised(f"the {type(value).__name__}", error) from error


_ANYTHING: Final = Check("anything", "anything", lambda value: value)
_ARRAY: Final = Check(
    "an array",
    "arrays",
    _settled_array,
    lambda value: " without masked elements" if is_masked(value) else "",
)
_NONE: Final = _fitting("None", "None", lambda value: value is None)
_PLAIN: Final[dict[object, Check]] = {
    int: _plain(int, "an integer", "integers", _integer),
    float: _plain(float, "a number", "numbers", _number),
    bool: _plain(bool, "True or False", "truth values", _truth),
    str: _plain(str, "text", "texts", _text),
    Path: _plain(Path, "a path", "paths", _path),
    type(None): _NONE,
    None: _NONE,
    Callable: _fitting("a function", "functions", callable),
    Any: _ANYTHING,
}
_COMPOSED: Final[dict[object, Callable[[tuple[object, ...]], Check]]] = {
    Annotated: _annotated,
    ClassVar: lambda arguments: check_of(arguments[0]),
    Literal: _choice,
    Mapping: _mapping,
    Sequence: _sequence,
    tuple: _tuple,
    types.UnionType: _union,
    typing.Union: _union,
}

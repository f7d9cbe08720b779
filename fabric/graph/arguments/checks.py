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

from fabric.messages.telling.errors import FabricError
from fabric.messages.telling.users_code import raised
from fabric.messages.telling.wording import a_or_an, plural

if TYPE_CHECKING:
    import numpy as np


_MODULES: Final = re.compile(r"\b(?:\w+\.)+")


class Unfit(Exception):  # noqa: N818 - an answer, turned into an error by who asked
    """The value is not what the annotation says."""


class Check:
    """A check of a value.

    Attributes:
        text: the expected value in the singular, such as ``an integer``.
        plural: in the plural, such as ``integers``.
    """

    text: str
    plural: str

    def settle(self, value: object) -> object:
        """Return the converted ``value``, or raise ``Unfit``."""
        raise NotImplementedError

    @override
    def __repr__(self) -> str:
        return self.text

    def hint(self, value: object) -> str:  # noqa: ARG002 - a default
        """Return an addition to the message about a wrong value; empty by default."""
        return ""


class Bounds(NamedTuple):
    """The range of a number, as in ``Annotated[int, Bounds(1)]``.

    Attributes:
        least, most: the range, both included; without an upper end where None.
    """

    least: int
    most: int | None = None

    @property
    def text(self) -> str:
        """What follows ``an integer``."""
        upper = "" if self.most is None else f" to {self.most}"
        return f"from {self.least}{upper}" if upper else f"of at least {self.least}"


_NAMES: Final = {"ndarray": "array", "dtype": "element type", "type": "class"}
"""What the classes of others are called in messages."""


class Anything(Check):
    """Accepts every value, for unknown annotations."""

    text, plural = "anything", "anything"

    @override
    def settle(self, value: object) -> object:
        return value


class Plain(Check):
    """A value of one of Python's own types."""

    def __init__(
        self, kind: type, text: str, plural: str, convert: Callable[[object], object]
    ) -> None:
        self.text, self.plural = text, plural
        self._kind = kind
        self._convert = convert

    @override
    def settle(self, value: object) -> object:
        if value.__class__ is self._kind:
            return value
        try:
            return self._convert(value)
        except (TypeError, ValueError, OverflowError):
            raise Unfit from None


class Instance(Check):
    """An instance of a class."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        name = _NAMES.get(kind.__name__, kind.__name__)
        self.text, self.plural = a_or_an(name), plural(name)

    @override
    def settle(self, value: object) -> object:
        if not isinstance(value, self.kind):
            raise Unfit
        return value

    @override
    def hint(self, value: object) -> str:
        if isinstance(value, type) and issubclass(value, self.kind):
            return f", such as {value.__name__}()"
        if inspect.isfunction(value) and value.__name__.isidentifier():
            return f" (is {value.__name__}() meant?)"
        if self.kind.__name__ == "dtype":
            return ", such as dtype_named('bfloat16')"
        duties = getattr(self.kind, "duties", ())
        return f", which defines {', '.join(duties)}" if duties else ""


class Capable(Check):
    """Something with the methods of a protocol."""

    def __init__(self, protocol: type) -> None:
        self._methods = [name for name in vars(protocol) if not name.startswith("_")]
        methods = " and ".join(f"{name}()" for name in self._methods)
        self.text = f"{a_or_an(protocol.__name__)}, with {methods}"
        self.plural = f"{protocol.__name__}s, with {methods}"

    @override
    def settle(self, value: object) -> object:
        if isinstance(value, type) or not all(hasattr(value, name) for name in self._methods):
            raise Unfit
        return value


class OneOf(Check):
    """A value that fits one of several checks; the first one applies."""

    def __init__(self, options: Sequence[Check]) -> None:
        self._options = options
        self._takes_none = any(each.text == "None" for each in options)
        self.text = " or ".join(each.text for each in options)
        self.plural = " or ".join(each.plural for each in options)

    @override
    def settle(self, value: object) -> object:
        if value is None and self._takes_none:
            return None
        if isinstance(value, Iterator):
            value = ordered_items(value)  # each option reads it from its beginning
        for option in self._options:
            try:
                return option.settle(value)
            except Unfit:
                continue
        raise Unfit

    @override
    def hint(self, value: object) -> str:
        return next(filter(None, (each.hint(value) for each in self._options)), "")


_MOST_ITEMS: Final = 1 << 24
"""An iterator may have no end."""


def ordered_items(value: object) -> tuple[Any, ...]:
    """Return the items of a list, an array or a generator, at most 16 million."""
    if type(value) is tuple:
        return value
    if isinstance(value, str | bytes | bytearray | Mapping | set | frozenset):
        raise Unfit
    try:
        items = iter(value)  # type: ignore[call-overload]  # else it raises
    except (TypeError, FabricError):
        raise Unfit from None
    found = tuple(itertools.islice(items, _MOST_ITEMS + 1))
    if len(found) > _MOST_ITEMS:
        raise Unfit
    return found


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
            # numpy rounds integers of 64 bits beside smaller ones.
            array = np.array(numbers, np.uint64)
    except (ValueError, OverflowError):
        raise Unfit from None
    return array


def _of_tensor(value: Any) -> np.ndarray:
    """Return an array; a PyTorch tensor may need gradients or have a type that numpy lacks."""
    import ml_dtypes
    import numpy as np

    name = str(getattr(value, "dtype", ""))
    if not name.startswith("torch."):
        return np.asarray(value)
    tensor = value.detach().cpu().resolve_neg()
    narrow = vars(ml_dtypes).get(name.removeprefix("torch."))
    # Each of these types has at most 16 bits, which float32 holds.
    return np.asarray(tensor) if narrow is None else np.asarray(tensor.float()).astype(narrow)


def is_masked(value: object) -> bool:
    """Whether an array of numpy's has masked elements."""
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


class Arrays(Check):
    """An array, or iterables of numbers that become an array."""

    text, plural = "an array", "arrays"

    @override
    def settle(self, value: object) -> np.ndarray:
        try:
            return array_of(value if hasattr(type(value), "__array__") else ordered_items(value))
        except Unfit:
            raise
        except BaseException as error:
            raise raised(f"the {type(value).__name__}", error) from error

    @override
    def hint(self, value: object) -> str:
        return " without masked elements" if is_masked(value) else ""


class Items(Check):
    """A tuple of ``count`` items, or of any number if None."""

    def __init__(self, items: Sequence[Check], count: int | None) -> None:
        self._items = list(items)
        self._count = count
        many = "" if count is None else f"{count} "
        self.text = f"a tuple of {many}{items[0].plural}"
        self.plural = f"tuples of {many}{items[0].plural}"

    @override
    def settle(self, value: object) -> object:
        items = ordered_items(value)
        if self._count not in (None, len(items)):
            raise Unfit
        checks = self._items * len(items) if self._count is None else self._items
        settled = tuple([check.settle(item) for check, item in zip(checks, items, strict=True)])
        return items if all(map(operator.is_, settled, items)) else settled


class Lists(Check):
    """A sequence, which is read once; its users check its items."""

    def __init__(self, item: Check) -> None:
        self._item = item
        self.text, self.plural = f"a list of {item.plural}", f"lists of {item.plural}"

    @override
    def settle(self, value: object) -> tuple[Any, ...]:
        items = ordered_items(value)
        return tuple(map(self._item.settle, items)) if isinstance(self._item, Lists) else items


class Entries(Check):
    """A mapping."""

    def __init__(self, keys: Check, values: Check) -> None:
        self._keys, self._values = keys, values
        self.text = f"a dict from {keys.plural} to {values.plural}"
        self.plural = f"dicts from {keys.plural} to {values.plural}"

    @override
    def settle(self, value: object) -> object:
        if not isinstance(value, Mapping):
            raise Unfit
        return {self._keys.settle(key): self._values.settle(each) for key, each in value.items()}


class Choice(Check):
    """One of a few values."""

    def __init__(self, values: tuple[object, ...]) -> None:
        self._values = values
        self.text = self.plural = f"one of {', '.join(map(str, values))}"

    @override
    def settle(self, value: object) -> object:
        if not any(value.__class__ is each.__class__ and value == each for each in self._values):
            raise Unfit
        return value


class Called(Check):
    """Something that can be called."""

    text, plural = "a function", "functions"

    @override
    def settle(self, value: object) -> object:
        if not callable(value):
            raise Unfit
        return value


class Bounded(Check):
    """A number within bounds."""

    def __init__(self, inner: Check, bounds: Bounds) -> None:
        self._inner, self._bounds = inner, bounds
        self.text = f"{inner.text} {bounds.text}"
        self.plural = f"{inner.plural} {bounds.text}"

    @override
    def settle(self, value: object) -> object:
        settled = self._inner.settle(value)
        least, most = self._bounds
        assert isinstance(settled, int | float)
        # A NaN is within no bounds.
        if not settled >= least or (most is not None and not settled <= most):
            raise Unfit
        return settled


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


def _none(_value: object) -> None:
    raise TypeError


_ANYTHING: Final = Anything()
_NONE: Final = Plain(type(None), "None", "None", _none)
_PLAIN: Final[dict[object, Check]] = {
    int: Plain(int, "an integer", "integers", _integer),
    float: Plain(float, "a number", "numbers", _number),
    bool: Plain(bool, "True or False", "truth values", _truth),
    str: Plain(str, "text", "texts", _text),
    Path: Plain(Path, "a path", "paths", _path),
    type(None): _NONE,
    None: _NONE,
    Callable: Called(),
    Any: _ANYTHING,
}


class Alias:
    """A named type with a text for ``help``, which unions cannot have."""

    def __init__(self, name: str, value: object, module: str, text: str) -> None:
        self.__name__ = name
        self.__value__ = value
        self.__module__ = module
        self.__doc__ = text

    @override
    def __repr__(self) -> str:
        return _MODULES.sub("", repr(self.__value__))

    def __or__(self, other: object) -> object:
        """Return the union with another type."""
        return typing.Union[self.__value__, other]  # noqa: UP007 - an operand may be a text


def check_of(annotation: object) -> Check:
    """Return the check for an annotation, ``Anything`` for unknown ones."""
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
        return Capable(kind)
    # Other generic types, such as Sequence, are not checked.
    if _NAMES.get(getattr(kind, "__name__", "")) == "array":
        return Arrays()
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


def _sequence_of(arguments: tuple[object, ...]) -> Check:
    return Lists(check_of(arguments[0])) if arguments else _ANYTHING


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
    Sequence: _sequence_of,
    tuple: _tuple_of,
    types.UnionType: _union_of,
    typing.Union: _union_of,
}

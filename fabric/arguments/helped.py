"""What ``help`` shows of a description: its parameters and its text, not what a dataclass has."""

from __future__ import annotations

import inspect
import re
from abc import ABCMeta
from collections.abc import Callable, Iterable
from typing import Final, cast

from typing_extensions import override

__all__ = ["Helped", "Verbatim", "lacks"]

_ANNOTATED: Final = re.compile(r"Annotated\[([\w.]+), [^\]]*\]")
"""A type with bounds, which are told where a value is out of them."""


class Verbatim(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    __repr__ = str.__str__


class Helped(ABCMeta):
    """The class of descriptions: it lists and signs them as their users need them.

    That of abstract classes is its base, so that a description may be one of these, too.
    """

    @override
    def __dir__(cls) -> Iterable[str]:
        """Return what there is to use: of a finished description how it is called."""
        names = [name for name in super().__dir__() if not name.startswith("_")]
        if not _duties(cls) or lacks(cls):
            return names
        return ["__call__"] if _is_called(cls) else []

    @property
    def __signature__(cls) -> inspect.Signature:
        """Of the class; annotations are shown as they are written, but for bounds."""
        parameters = list(inspect.signature(_initialiser(cls)).parameters.values())[1:]
        return inspect.Signature([_plain(each) for each in parameters])


def lacks(cls: type) -> list[str]:
    """Return what ``cls`` would have to define to be a whole description."""
    return [
        duty for duty in _duties(cls) if not any(_defines(cls, name) for name in duty.split(" or "))
    ]


def _duties(cls: type) -> tuple[str, ...]:
    return cast("tuple[str, ...]", getattr(cls, "duties", ()))


def _defines(cls: type, name: str) -> bool:
    owner = next((each for each in cls.__mro__ if name in vars(each)), None)
    return owner is not None and "duties" not in vars(owner)


def _is_called(cls: type) -> bool:
    return any("__call__" in vars(each) for each in cls.__mro__)


def _initialiser(cls: type) -> Callable[..., object]:
    owner = next(each for each in cls.__mro__ if "__init__" in vars(each))
    made: Callable[..., object] = vars(owner)["__init__"]
    return made


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    annotation = parameter.annotation
    if not isinstance(annotation, str):
        return parameter
    return parameter.replace(annotation=Verbatim(_ANNOTATED.sub(r"\1", annotation)))

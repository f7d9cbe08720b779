"""What varies, as text: ``tile_n=8,16``, ``regions=4..128*2``, ``tile_n:regions=8:4,16:8``."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import Final

from fabric.study.space import Scalar, Space, geometric, grid, zipped
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import counted

__all__ = ["scalar", "space_of"]

_RANGE: Final = re.compile(r"(?P<first>-?\d+)\.\.(?P<last>-?\d+)(?:(?P<step>[+*])(?P<by>\d+))?")
_WORDS: Final[dict[str, Scalar]] = {"true": True, "false": False, "none": None}


def space_of(texts: Iterable[str], option: str = "--vary") -> Space:
    """Return the product of axes that are given as text to an option, the last one fastest.

    ``NAME=VALUE,VALUE`` lists values; ``FIRST..LAST`` counts, ``FIRST..LAST+STEP`` in steps,
    ``FIRST..LAST*FACTOR`` geometrically; ``NAME:NAME=VALUE:VALUE,...`` varies names together.

    Raises:
        ConfigurationError: a text is none of that; a name is given twice.
    """
    space = Space(((),))
    for text in texts:
        names, equals, values = text.partition("=")
        if not equals or not names or not values:
            raise ConfigurationError(f"{option} {text}: expected NAME=VALUE,VALUE")
        try:
            space *= _axis(names.split(":"), values)
        except ConfigurationError as error:
            raise ConfigurationError(f"{option} {text}: {error.message}") from None
    return space


def scalar(text: str) -> Scalar:
    """Return a value as it is meant: a number in its usual form, true, false, none, or text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for number in (int, float):
        with contextlib.suppress(ValueError):
            value = number(text)
            if str(value) == text:
                return value
    return text


def _axis(names: list[str], values: str) -> Space:
    if len(names) == 1:
        return grid({names[0]: [each for part in values.split(",") for each in _listed(part)]})
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{':'.join(names)} has a name twice: expected each name once")
    columns: list[list[Scalar]] = [[] for _ in names]
    for part in values.split(","):
        row = part.split(":")
        if len(row) != len(names):
            raise ConfigurationError(
                f"{part} has {counted(len(row), 'value')}: expected {len(names)}"
            )
        for column, value in zip(columns, row, strict=True):
            column.append(scalar(value))
    return zipped(dict(zip(names, columns, strict=True)))


def _listed(text: str) -> Iterable[Scalar]:
    found = _RANGE.fullmatch(text)
    if found is None:
        return [scalar(text)]
    first, last, by = int(found["first"]), int(found["last"]), int(found["by"] or 1)
    if found["step"] == "*":
        return geometric(first, last, by)
    if by < 1:
        raise ConfigurationError(f"{text} does not get on: expected a step of at least 1")
    if last < first:
        raise ConfigurationError(f"{text} has no values: expected FIRST..LAST with FIRST <= LAST")
    return range(first, last + 1, by)

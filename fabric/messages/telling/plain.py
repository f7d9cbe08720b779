"""Values in JSON, in one form for output and for folders of runs."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any, Final, TypeAlias

from msgspec import DecodeError
from msgspec import json as msgspec_json

from fabric.messages.telling.wording import a_or_an

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON, which readers index without checks."""

_DEEPEST: Final = 64
_MOST_VALUES: Final = 1_000_000
_MOST_DIGITS: Final = 4300
"""Python turns no longer integer into text, nor text into one."""


def json_text(value: object) -> str:
    """Return ``value`` as indented JSON that every reader takes."""
    try:
        text = json.dumps(value, default=plain, allow_nan=False)
    except (TypeError, ValueError):
        # An infinity, a NaN or a name that is not text: these are rare, and a search for them takes
        # as long as writing.
        text = json.dumps(plain(value), allow_nan=False)
    # The indentation of ``json`` is written in Python, and ten times slower.
    try:
        return msgspec_json.format(text, indent=2) + "\n"
    except DecodeError:
        # A lone surrogate, as in a path that is not UTF-8.
        return json.dumps(json.loads(text), indent=2) + "\n"


def counts_text(value: object) -> str:
    """Return ``json_text`` of names, integers and bools, ten times as fast; not of fractions."""
    with suppress(TypeError, UnicodeEncodeError):
        encoded = msgspec_json.encode(value)
        # Python escapes other characters.
        if encoded.isascii() and b"\x7f" not in encoded:
            return msgspec_json.format(encoded, indent=2).decode() + "\n"
    return json_text(value)


def plain(value: object) -> object:
    """Return ``value`` in JSON types; infinity, NaN and values of other types become text."""
    if isinstance(value, dict):
        return {
            name if isinstance(name, str) else str(name): plain(each)
            for name, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int):
        return value
    number = _number_in(value)
    return str(value) if number is None else plain(number)


def untellable(value: object) -> str | None:
    """Return why ``value`` cannot be turned into JSON, or None; it may contain itself."""
    waiting = [(value, 0)]
    seen = 0
    while waiting:
        each, depth = waiting.pop()
        seen += 1
        if depth > _DEEPEST or seen > _MOST_VALUES:
            return (
                f"{a_or_an(type(value).__name__)} that contains itself, is more than {_DEEPEST} "
                f"deep or has more than {_MOST_VALUES:,} values"
            )
        if isinstance(each, dict):
            if len(set(map(str, each))) < len(each):
                return f"{a_or_an(type(value).__name__)} with two names that are one as text"
            waiting += [(part, depth + 1) for part in each.values()]
        elif isinstance(each, list | tuple):
            waiting += [(part, depth + 1) for part in each]
        elif isinstance(each, int):
            if each.bit_length() > _MOST_DIGITS * math.log2(10):
                return f"an integer of more than {_MOST_DIGITS:,} digits"
        elif not isinstance(each, str | float | None):
            number = _number_in(each)
            if number is None:
                str(each)  # an error of a user's class is the user's
            else:
                waiting.append((number, depth + 1))
    return None


def _number_in(value: object) -> object:
    """Return a number of numpy as a Python number, None for other values."""
    item = getattr(value, "item", None)
    number = item() if callable(item) and getattr(value, "shape", None) == () else None
    # A long double stays one.
    return None if type(number) is type(value) else number

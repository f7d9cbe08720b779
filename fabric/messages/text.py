"""Pieces of messages, families of names that differ in numbers only, and values in JSON."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress

# Any: values of users may have any type.
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import DecodeError
from msgspec import json as msgspec_json

_NUMBER: Final = re.compile(r"\d+(?:\.\.\d+)?")
"""A number, or a range of numbers."""

_OBEYED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move a terminal's cursor, or change its title, colours or text direction.

Line breaks and tabs are not among them."""

_TERMS_SHOWN: Final = 4

_NAMES_SHOWN: Final = 8

_FILE_NAME_BYTES: Final = 100
"""The most bytes of the part of a file's name that users choose; file systems take 255 in all."""

_SHOWN_BITS: Final = 10_000
"""Bits of the largest integer in a message; Python refuses to print much larger ones."""

_SIMPLE: Final = frozenset({bool, bytes, complex, float, int, str, type(None), list, tuple})
"""Types of values with a clear ``repr``."""

T = TypeVar("T")

_LISTED: Final = 6
"""Families that a sentence names."""


def visible(text: str) -> str:
    r"""Return ``text`` with control characters escaped as Python does: ``\n``, ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def legible(text: str) -> str:
    """Return ``text`` with control characters escaped, except line breaks and tabs."""
    return _OBEYED.sub(lambda match: visible(match[0]), text)


def outcome(status: str, verified: bool | None) -> str:
    """Return the status of a run and, if its outputs were compared, whether they are right."""
    if verified is None:
        return status
    return f"{status}, verified" if verified else f"{status}, the result is wrong"


def file_name(name: str) -> str:
    """Return ``name`` as a file name without folders."""
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
    short = safe.encode()[:_FILE_NAME_BYTES].decode(errors="ignore")
    return short.lstrip(".") or "program"


def one_of(names: Sequence[str], wrong: str) -> str:
    """Return ``one of a, b, c``; if ``wrong`` is close to a name, also ask whether it was meant."""
    from difflib import get_close_matches  # a millisecond, for mistakes only

    close = get_close_matches(wrong, names, n=1)
    question = f" (did you mean {close[0]}?)" if close else ""
    return f"one of {', '.join(names)}{question}"


def close_to(names: Sequence[str], wrong: str) -> str:
    """Return ``one_of``, with only the names most like ``wrong`` if there are many names."""
    if len(names) > _NAMES_SHOWN:
        from difflib import get_close_matches

        like = set(get_close_matches(wrong, names, _NAMES_SHOWN, cutoff=0))
        near = one_of([name for name in names if name in like], wrong).removeprefix("one of ")
        return f"one of {len(names):,}, such as {near}"
    return one_of(names, wrong)


def listed(words: Sequence[str]) -> str:
    """Return ``a, b or c``."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def counted(count: int, noun: str) -> str:
    """Return ``1 element``, ``2,048 elements``."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return ``elements``, ``boxes``, ``classes``."""
    return f"{noun}es" if noun.endswith(("s", "x")) else f"{noun}s"


def a_or_an(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"


def found_text(value: Any) -> str:
    """Describe an unexpected value in a few words."""
    kind = value.__class__
    text = a_or_an(kind.__name__)
    if kind is int and value.bit_length() > _SHOWN_BITS:
        text = "an integer of thousands of digits"
    elif isinstance(value, type):
        text = f"the class {value.__name__}"
    elif kind.__name__ in ("function", "method", "builtin_function_or_method"):
        text = "a lambda" if value.__name__ == "<lambda>" else f"the function {value.__name__}"
    elif kind.__name__ == "ndarray":
        text = f"an array {list(value.shape)} of {value.dtype}"
    elif kind in (list, tuple) and not set(map(type, value)) <= _SIMPLE:
        names = sorted({item.__class__.__name__ for item in value})
        text = f"a {kind.__name__} of {' and '.join(f'{name}s' for name in names)}"
    elif kind in (list, tuple, dict, set):
        text = f"the {kind.__name__} {reprlib.repr(value)}"
    elif kind in _SIMPLE or kind.__module__ in ("numpy", "fractions", "pathlib"):
        text = reprlib.repr(value)
    return text


def without_numbers(text: str) -> str:
    """Return ``text`` with ``#`` for every number."""
    return _NUMBER.sub("#", text)


def merged_text(texts: Sequence[str]) -> str:
    """Return one text for texts that differ in numbers, with a range or ``i`` for each number.

    Texts that differ in more are represented by the first one.
    """
    first = texts[0]
    if all(text == first for text in texts):
        return first
    common = without_numbers(first)
    if any(without_numbers(text) != common for text in texts):
        return first
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    numbers = iter([_span(column) for column in columns])
    return _NUMBER.sub(lambda _: next(numbers), first)


def folded_sum(terms: Sequence[str]) -> str:
    """Return a sum as text; many terms that differ in numbers only become ``sum(...)``."""
    sums = (
        f"sum({title})" if len(members) > _TERMS_SHOWN else " + ".join(members)
        for title, members in families(terms, str)
    )
    return " + ".join(sums).replace(" + -", " - ")


def _span(column: Sequence[str]) -> str:
    if len(set(column)) == 1:
        return column[0]
    if any(".." in number for number in column):
        return "i"
    numbers = sorted(map(int, column))
    if numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{numbers[0]}..{numbers[-1]}"
    return "i"


class Family(NamedTuple, Generic[T]):
    """Things with names that differ in numbers only, and with equal other properties."""

    title: str
    members: tuple[T, ...]


class Spread(NamedTuple, Generic[T]):
    """The members of a family with the least, the (lower) median and the greatest measure."""

    least: T
    median: T
    most: T


def families(
    things: Iterable[T], name: Callable[[T], str], *shared: Callable[[T], Hashable]
) -> list[Family[T]]:
    """Return the families of ``things``, in the order of their first members.

    Members agree in the pattern of their names and in the keys of ``shared``.
    """
    groups: dict[Hashable, list[T]] = {}
    for thing in things:
        key = (without_numbers(name(thing)), *(property_of(thing) for property_of in shared))
        groups.setdefault(key, []).append(thing)
    return [
        Family(merged_text(list(map(name, members))), tuple(members)) for members in groups.values()
    ]


def families_with(groups: Iterable[Family[T]], fits: Callable[[T], bool]) -> list[Family[T]]:
    """Return the families with only the members that fit, with unchanged titles."""
    fitting = [Family(title, tuple(filter(fits, members))) for title, members in groups]
    return [family for family in fitting if family.members]


def spread(members: Iterable[T], measure: Callable[[T], int]) -> Spread[T]:
    ordered = sorted(members, key=measure)
    return Spread(ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1])


def absent_line(absent: Sequence[Family[T]]) -> str:
    """Return a line about units that took and sent no element: a count and the first families."""
    named = [
        family.title + (f" (x {len(family.members):,})" if len(family.members) > 1 else "")
        for family in absent
    ]
    if len(named) > _LISTED:
        named[_LISTED:] = [f"{len(named) - _LISTED:,} more"]
    count = counted(sum(len(family.members) for family in absent), "unit")
    return f"{count} never got an element: {', '.join(named)}"


JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON, which readers index without checks."""

_DEEPEST: Final = 64
_MOST_VALUES: Final = 1_000_000
_MOST_DIGITS: Final = 4300
"""Digits of the longest integer that Python converts to or from text."""


def json_text(value: object) -> str:
    """Return ``value`` as indented JSON without infinities and NaN, which the standard excludes."""
    try:
        text = json.dumps(value, default=plain, allow_nan=False)
    except (TypeError, ValueError):
        # Infinities, NaN and names that are not text are rare, and a search for them takes as long
        # as writing.
        text = json.dumps(plain(value), allow_nan=False)
    # The json module indents in Python, which is ten times slower.
    try:
        return msgspec_json.format(text, indent=2) + "\n"
    except DecodeError:
        # A lone surrogate, as in a path that is not UTF-8.
        return json.dumps(json.loads(text), indent=2) + "\n"


def counts_text(value: object) -> str:
    """Return ``json_text(value)`` ten times as fast, for names, integers and bools.

    Fractions would be spelled differently.
    """
    with suppress(TypeError, UnicodeEncodeError):
        encoded = msgspec_json.encode(value)
        # The json module would escape other characters.
        if encoded.isascii() and b"\x7f" not in encoded:
            return msgspec_json.format(encoded, indent=2).decode() + "\n"
    return json_text(value)


def plain(value: object) -> object:
    """Return ``value`` in JSON types; infinity, NaN and values of other types become text."""
    if isinstance(value, dict):
        return {
            name if isinstance(name, str) else str(name): plain(item)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int):
        return value
    number = _number_in(value)
    return str(value) if number is None else plain(number)


def json_fault(value: object) -> str | None:
    """Return why ``value`` cannot be written as JSON, or None; a value may contain itself."""
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
                return f"{a_or_an(type(value).__name__)} with two keys that are equal as text"
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
    # ``item`` of a long double returns a long double.
    return None if type(number) is type(value) else number

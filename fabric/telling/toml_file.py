"""Files of TOML that users bring: read within limits, refused with a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from fabric.telling.errors import ConfigurationError
from fabric.telling.given_file import open_given
from fabric.telling.wording import counted

__all__ = ["line_in", "lines_in", "read_toml"]

_MOST_BYTES: Final = 4_000_000
_LONGEST_LINE: Final = 1_000
"""The time for a name of many parts, ``a.a.a``, grows with the square of their number."""

_AT_LINE: Final = re.compile(r" \(at line (?P<line>\d+), column \d+\)$")


_NAME: Final = r"""(?:"[^"\\]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_NAMES: Final = re.compile(_NAME)
_KEY: Final = re.compile(rf"\s*(?P<key>{_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_TABLE: Final = re.compile(rf"\s*\[\s*(?P<key>{_NAME}(?:\s*\.\s*{_NAME})*)\s*\]")


def read_toml(path: Path, expected: str) -> dict[str, Any]:
    """Return what is in a file of TOML.

    Args:
        path: of the file.
        expected: what it should be, for messages.

    Raises:
        ConfigurationError: it cannot be read, is larger than any such file, or is not TOML.
    """
    file = str(path)
    try:
        with open_given(path) as opened:
            content = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"cannot be read ({error.strerror or error}): expected {expected}", file=file
        ) from error
    if len(content) > _MOST_BYTES:
        _refuse(f"it has more than {_MOST_BYTES:,} bytes", file)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        _refuse("it is not UTF-8 text", file)
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > _LONGEST_LINE and line.count(".") + line.count("[") > _LONGEST_LINE // 10:
            _refuse(f"a line has {counted(len(line), 'character')}", file, number)
    import tomllib  # no run without such a file needs it

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _AT_LINE.search(str(error))
        _refuse(_AT_LINE.sub("", str(error)), file, int(place["line"]) if place else None)
    except RecursionError:
        _refuse("its lists and tables are too deep", file)
    except ValueError as error:  # an integer of thousands of digits
        _refuse(str(error).partition(";")[0], file)


def lines_in(path: Path) -> Mapping[tuple[str, ...], int]:
    """Return the line of each table and of each key in a file that ``read_toml`` has read.

    By names from the outermost table on. Keys inside of values have none.
    """
    with open_given(path) as opened:
        text = opened.read(_MOST_BYTES).decode("utf-8")
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        header, key = _TABLE.match(line), _KEY.match(line)
        if header is not None:
            table = _names(header["key"])
            lines.setdefault(table, number)
        elif key is not None:
            lines.setdefault((*table, *_names(key["key"])), number)
    return lines


def line_in(file: str | None, *names: str) -> int | None:
    """Return the line of a key, or else of the innermost table around it that has a line.

    Args:
        file: that ``read_toml`` has read; None for none.
        names: from the outermost table on.
    """
    if file is None:
        return None
    try:
        lines = lines_in(Path(file))
    except (OSError, ValueError):  # it is another one by now
        return None
    places = (lines.get(names[:count]) for count in range(len(names), 0, -1))
    return next((line for line in places if line is not None), None)


def _names(key: str) -> tuple[str, ...]:
    return tuple(name.strip("\"'") for name in _NAMES.findall(key))


def _refuse(reason: str, file: str, line: int | None = None) -> NoReturn:
    raise ConfigurationError(f"not a TOML file: {reason}", file=file, line=line) from None

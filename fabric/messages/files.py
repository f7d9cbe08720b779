"""Files of users, read within limits, and files that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path

# Any: the mode decides whether a file has text or bytes.
from typing import Any, Final, NoReturn

from fabric.messages.errors import ConfigurationError
from fabric.messages.text import JsonObject, counted, found_text, one_of


def open_given(path: Path) -> BufferedReader:
    """Open a regular file to read its bytes.

    Pipes and devices are refused: they may block, and cannot be read a second time.
    """
    opened = open(  # noqa: SIM115 - for the caller
        path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
    )
    if stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        return opened
    opened.close()
    raise OSError(errno.EINVAL, "it is a pipe or a device", str(path))


_MOST_BYTES_OF_JSON: Final = 128_000_000
_MOST_BYTES: Final = 4_000_000

_LONGEST_LINE: Final = 1_000
"""The most characters. The time to read a name of n parts, ``a.a.a``, grows with n squared."""

_AT_LINE: Final = re.compile(r" \(at line (?P<line>\d+), column \d+\)$")
_NAME: Final = r"""(?:"[^"\\]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_NAMES: Final = re.compile(_NAME)
_KEY: Final = re.compile(rf"\s*(?P<key>{_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_TABLE: Final = re.compile(rf"\s*\[\s*(?P<key>{_NAME}(?:\s*\.\s*{_NAME})*)\s*\]")


def read_json(path: Path) -> JsonObject:
    """Return the JSON object in a file; raise ValueError if it is too large or too deep."""
    try:
        value = json.loads(read_limited(path))
    except RecursionError:
        raise ValueError("its lists and objects are too deep") from None
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value


def read_limited(path: Path, most_bytes: int = _MOST_BYTES_OF_JSON) -> bytes:
    """Return the bytes of a file; raise ValueError if it is too large."""
    with open_given(path) as opened:
        content = opened.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"it has more than {most_bytes:,} bytes")
    return content


def read_toml(path: Path, expected: str) -> dict[str, Any]:
    """Return the TOML in a file; ``expected`` describes the file in messages."""
    file = str(path)
    try:
        text = read_limited(path, _MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"cannot be read ({error.strerror or error}): expected {expected}", file=file
        ) from error
    except UnicodeDecodeError:
        _refuse("it is not UTF-8 text", file)
    except ValueError as error:
        _refuse(str(error), file)
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > _LONGEST_LINE and line.count(".") + line.count("[") > _LONGEST_LINE // 10:
            _refuse(f"a line has {counted(len(line), 'character')}", file, number)
    import tomllib  # runs without TOML files do not wait for it

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _AT_LINE.search(str(error))
        _refuse(_AT_LINE.sub("", str(error)), file, int(place["line"]) if place else None)
    except RecursionError:
        _refuse("its lists and tables are too deep", file)
    except ValueError as error:  # an integer of thousands of digits
        _refuse(str(error).partition(";")[0], file)


def _lines_in(path: Path) -> Mapping[tuple[str, ...], int]:
    """Return the line of each table and key of a TOML file, except keys of inline tables."""
    text = read_limited(path, _MOST_BYTES).decode("utf-8-sig")
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
    """Return the line of a key of a TOML file, or of the innermost table around it, if known.

    ``names`` begin with the outermost table and end with the key.
    """
    if file is None:
        return None
    try:
        lines = _lines_in(Path(file))
    except (OSError, ValueError):  # the file has changed
        return None
    places = (lines.get(names[:count]) for count in range(len(names), 0, -1))
    return next((line for line in places if line is not None), None)


def _names(key: str) -> tuple[str, ...]:
    return tuple(name.strip("\"'") for name in _NAMES.findall(key))


def _refuse(reason: str, file: str, line: int | None = None) -> NoReturn:
    raise ConfigurationError(f"not a TOML file: {reason}", file=file, line=line) from None


_PACKAGE: Final = Path(__file__).parents[1]


def programs() -> Path:
    """Return the folder of example programs; an installation has its own copy."""
    installed = _PACKAGE / "programs"
    return installed if installed.is_dir() else _PACKAGE.parent / "programs"


def hardware_file(named: Path | str, folder: Path = Path()) -> Path:
    """Return the path of a hardware file: a path from ``folder``, or a file of the package."""
    path = Path(named)
    if path.suffix or len(path.parts) != 1 or (folder / path).is_file():
        return folder / path
    files = {file.stem: file for file in sorted((programs() / "hardware").glob("*.toml"))}
    if path.name not in files:
        names = one_of(list(files), path.name)
        raise ConfigurationError(
            f"the hardware is {found_text(path.name)}: expected a file, FILE.toml, or {names}"
        )
    return files[path.name]


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which replaces ``path`` at the end; safe for several processes."""
    other = path.with_name(f"{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        yield other
        other.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            other.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(other)):
            error.filename, error.filename2 = str(path), None
        raise


def write_whole(path: Path, text: str) -> None:
    """Replace the text of the file ``path`` atomically."""
    with atomic(path) as other:
        other.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def name_in_errors(path: Path) -> Iterator[None]:
    """Add ``path`` to an OSError without a file name, such as the error for a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


@contextlib.contextmanager
def output_file(
    path: Path, mode: str = "w", encoding: str | None = None, errors: str | None = None
) -> Iterator[Any]:
    """Open a file that a user has named for writing; remove it on an error.

    The file is not replaced atomically, since its name may be a device or a link.
    """
    file = path.open(mode, encoding=encoding, errors=errors)
    try:
        with name_in_errors(path), file:
            yield file
    except BaseException:
        if path.is_file() and not path.is_symlink():
            path.unlink()
        raise

"""Reading hardware files: what is refused, and how it is said."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from fabric.arguments.checks import Unfit
from fabric.arguments.described import Described, checked, field_checks
from fabric.hardware.description import Hardware
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import one_of

__all__ = ["load_hardware"]

_AT_LINE = re.compile(r" \(at line (?P<line>\d+), column \d+\)$")


@checked
def load_hardware(path: Path | str) -> Hardware:
    """Read the hardware description in the TOML file at ``path``.

    Raises:
        ConfigurationError: the file cannot be read, is not TOML, or has a section, a key or a value
            that is not known.
    """
    file = str(path)
    sections = _read(Path(path), file)
    known = {name: type(part) for name, part in vars(Hardware()).items()}
    read: dict[str, Any] = {}  # keys are those of Hardware, values its parts
    for name, table in sections.items():
        if name not in known:
            raise ConfigurationError(
                f"[{name}] is not a section: expected {one_of(list(known), name)}", file=file
            )
        if not isinstance(table, dict):
            raise ConfigurationError(
                f"{name} is {table!r}: expected a section, [{name}] with keys", file=file
            )
        read[name] = _section(known[name], name, table, file)
    return Hardware(**read)


def _read(path: Path, file: str) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _AT_LINE.search(message)
        line = int(place["line"]) if place else None
        reason = _AT_LINE.sub("", message)
        raise ConfigurationError(f"not a TOML file: {reason}", file=file, line=line) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError("not a TOML file: it is not UTF-8 text", file=file) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(
            f"cannot be read ({reason}): expected a hardware description in TOML", file=file
        ) from error


def _section(section: type[Described], name: str, table: dict[str, object], file: str) -> Described:
    known = dict(field_checks(section))
    for key, value in table.items():
        if key not in known:
            raise ConfigurationError(
                f"[{name}] has no key {key} (found {key} = {value!r}): "
                f"expected {one_of(list(known), key)}",
                file=file,
            )
        try:
            known[key].settle(value)
        except Unfit:
            # What may be left open is left out: TOML has no None.
            expected = known[key].text.removesuffix(" or None")
            raise ConfigurationError(
                f"[{name}] {key} is {value!r}: expected {expected}", file=file
            ) from None
    return section(**table)

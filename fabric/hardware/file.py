"""Reading hardware files: what is refused, and how it is said."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabric.arguments.checks import Unfit
from fabric.arguments.described import Described, checked, field_checks
from fabric.hardware.description import Hardware, OffChipDescription
from fabric.hardware.models import MODELS
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import one_of

__all__ = ["load_hardware", "varied_hardware"]

_AT_LINE = re.compile(r" \(at line (?P<line>\d+), column \d+\)$")


@checked
def load_hardware(path: Path | str) -> Hardware:
    """Read the hardware description in the TOML file at ``path``.

    ``[hbm] model`` says which memory there is, and with it which other keys the section has.

    Raises:
        ConfigurationError: the file cannot be read, is not TOML, or has a section, a key or a value
            that is not known.
    """
    return _described(_read(Path(path), str(path)), str(path))


def varied_hardware(path: Path | None, keys: Mapping[str, object]) -> Hardware:
    """Return a hardware description in which some keys are others.

    Args:
        path: of the TOML file; the paper's hardware where None.
        keys: values by ``SECTION.KEY``, as ``hbm.channels``.

    Raises:
        ConfigurationError: as ``load_hardware``; or a key does not say its section.
    """
    sections = {} if path is None else _read(path, str(path))
    for name, value in keys.items():
        section, point, key = name.partition(".")
        if not point or not section or not key:
            raise ConfigurationError(
                f"hardware.{name} names no key: expected hardware.SECTION.KEY, as in "
                "hardware.hbm.channels"
            )
        table = sections.setdefault(section, {})
        if isinstance(table, dict):
            table[key] = value
    return _described(sections, None if path is None else str(path))


def _described(sections: dict[str, object], file: str | None) -> Hardware:
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
        section = _model(table, file) if name == "hbm" else known[name]
        read[name] = _section(section, name, table, file)
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


def _model(table: dict[str, object], file: str | None) -> type[OffChipDescription]:
    """Return the description that ``[hbm] model`` names; the first one where it names none."""
    names = list(MODELS)
    name = table.get("model", names[0])
    if name not in names:
        raise ConfigurationError(
            f"[hbm] model is {name!r}: expected {one_of(names, str(name))}", file=file
        )
    return MODELS[str(name)]


def _section(
    section: type[Described], name: str, table: dict[str, object], file: str | None
) -> Described:
    known = dict(field_checks(section))
    # The model has been read: it is a key like the others, and no field.
    tags = ["model"] if issubclass(section, OffChipDescription) else []
    values = {key: value for key, value in table.items() if key not in tags}
    for key, value in values.items():
        if key not in known:
            raise ConfigurationError(
                f"[{name}] has no key {key} (found {key} = {value!r}): "
                f"expected {one_of([*tags, *known], key)}",
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
    try:
        return section(**values)
    except ConfigurationError as error:
        # What fits each key, and not the others.
        what = error.message.removeprefix(f"{section.__name__}: ")
        raise ConfigurationError(f"[{name}] {what}", file=file) from None

"""Sections of TOML files, their keys checked, as frozen descriptions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar

from fabric.graph.arguments.checks import Unfit
from fabric.graph.arguments.described import Described, field_checks
from fabric.messages.telling.errors import ConfigurationError, FabricError
from fabric.messages.telling.read_files import line_in
from fabric.messages.telling.wording import found_text, one_of

__all__ = ["Section", "described_section"]


class Section(Described):
    """A base of frozen dataclasses, each of which is a section of a file: its fields are the keys.

    TOML has no None: a key whose value is None is one that a file leaves out.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    def _stated(self) -> dict[str, object]:
        """Return the keys with their values, as a file would state them; none: without section."""
        values = {key: getattr(self, key) for key, _ in field_checks(type(self))}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in values.items()
            if value is not None
        }


Read = TypeVar("Read", bound=Described)


def described_section(
    section: type[Read],
    name: str,
    table: Mapping[str, object],
    file: str | None,
    tags: Sequence[str] = (),
) -> Read:
    """Return the description that a section's keys make.

    Args:
        section: its class; it refuses with ConfigurationError.
        name: of the section, with those of the tables around it: ``designs.small``.
        table: its keys.
        file: where it stands.
        tags: keys that have been read already, and are no fields.

    Raises:
        ConfigurationError: a key is not known or missing, or a value is not what its field says.
    """
    known, place = dict(field_checks(section)), name.split(".")
    values = {key: value for key, value in table.items() if key not in tags}
    for key, value in values.items():
        if key not in known:
            raise ConfigurationError(
                f"[{name}] has no key {key} (found {key} = {found_text(value)}): "
                f"expected {one_of([*tags, *known], key)}",
                file=file,
                line=line_in(file, *place, key),
            )
        try:
            known[key].settle(value)
        except Unfit:
            # What may be left open is left out: TOML has no None.
            expected = known[key].text.removesuffix(" or None")
            raise ConfigurationError(
                f"[{name}] {key} is {found_text(value)}: expected {expected}",
                file=file,
                line=line_in(file, *place, key),
            ) from None
    missing = [
        each.name
        for each in dataclasses.fields(section)  # type: ignore[arg-type]
        if each.default is each.default_factory is dataclasses.MISSING and each.name not in values
    ]
    if missing:
        raise ConfigurationError(
            f"[{name}] has no {missing[0]}: expected {known[missing[0]].text}",
            file=file,
            line=line_in(file, *place),
        )
    try:
        return section(**values)
    except ConfigurationError as error:
        # What fits each key, and not the others: mostly, the sentence begins with the key.
        what = error.message.removeprefix(f"{section.__name__}: ")
        line = line_in(file, *place, what.partition(" ")[0])
        raise ConfigurationError(f"[{name}] {what}", file=file, line=line) from None

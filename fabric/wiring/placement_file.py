"""On which site of a mesh each unit of a program is, as a file of TOML or the program says it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from fabric.hardware.mesh import Site
from fabric.telling.errors import ConfigurationError
from fabric.telling.toml_file import lines_in, read_toml
from fabric.telling.wording import found_text

__all__ = ["Placement", "read_placement"]

_EXPECTED: Final = "a placement: the program's name, and [units] with a site for each unit"


class Placement(NamedTuple):
    """What a file says, of TOML or of the program itself.

    Attributes:
        file: which.
        program: the name of the program that it is for.
        units: their sites, by name.
        lines: of the file, by what they say: ``program``, and where a unit is; the whole of it is
            ``""``, where it has a line.
    """

    file: str
    program: str
    units: Mapping[str, Site]
    lines: Mapping[str, int]

    def refuse(self, what: str, about: str | None = None) -> ConfigurationError:
        """Return the error that says ``what`` of the line that begins with ``about``."""
        return ConfigurationError(what, file=self.file, line=self.lines.get(about or ""))


def read_placement(path: Path | str) -> Placement:
    """Read the placement in the TOML file at ``path``.

    Raises:
        ConfigurationError: it cannot be read, or is no such file.
    """
    file = Path(path)
    found = read_toml(file, _EXPECTED)
    placed = Placement(str(file), "", {}, _lines(file))
    for key in found:
        if key not in ("program", "units"):
            raise placed.refuse(f"{key} is given: expected {_EXPECTED}", key)
    program, units = found.get("program"), found.get("units")
    if not isinstance(program, str):
        given = "missing" if program is None else found_text(program)
        raise placed.refuse(f"program is {given}: expected the name of a program", "program")
    if not isinstance(units, dict):
        given = "missing" if units is None else found_text(units)
        raise placed.refuse(f"units is {given}: expected a table, [units], of sites", "units")
    sites = {}
    for name, site in units.items():
        if not (
            isinstance(site, list) and len(site) == 2 and all(type(each) is int for each in site)
        ):
            raise placed.refuse(f"{name} is {found_text(site)}: expected [column, row]", name)
        sites[name] = Site(*site)
    return placed._replace(program=program, units=sites)


def _lines(path: Path) -> dict[str, int]:
    """Return the line of each key; what is missing among units is about that table."""
    found = lines_in(path)
    lines = {names[-1]: line for names, line in found.items() if len(names) == 1}
    lines |= {names[1]: line for names, line in found.items() if names[:-1] == ("units",)}
    return lines | ({"": lines["units"]} if "units" in lines else {})

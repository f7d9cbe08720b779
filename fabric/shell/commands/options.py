"""What every command that takes a program takes: its file, its parameters, the hardware."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final, TypeVar

import click
from typing_extensions import override

__all__ = ["NamedPath", "factors", "numbers", "program_options"]

_FACTOR: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?x", re.ASCII)

Command = TypeVar("Command", bound=Callable[..., object])


class NamedPath(click.Path):
    """A path that has a name: an empty one, as an unset variable leaves it, is no path."""

    @override
    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        if not os.fspath(value):
            self.fail("'': expected a path, found an empty one", param, ctx)
        return super().convert(value, param, ctx)


def program_options(command: Command) -> Command:
    """Give ``command`` the argument PROGRAM.py and the options -p and --hardware."""
    for option in (
        click.option(
            "--hardware",
            "hardware_file",
            metavar="FILE.toml",
            type=NamedPath(),
            help="The fabric; by default the paper's.",
        ),
        click.option(
            "-p",
            "parameters",
            metavar="NAME=VALUE",
            multiple=True,
            help="A parameter of the program's build().",
        ),
        click.argument("program", metavar="PROGRAM.py", type=NamedPath()),
    ):
        command = option(command)
    return command


def numbers(
    *, least: int
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, int]]:
    """Return the callback of an option ``NAME=N``, given several times: numbers by name.

    How the option is written is its ``metavar``. Another form, or a number below ``least``, is a
    click.BadParameter.
    """

    def read(
        _context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
    ) -> dict[str, int]:
        found = {}
        form = str(parameter.metavar)
        for item in given:
            name, _, number = item.rpartition("=")
            # Python reads no number of thousands of digits.
            value = int(number) if number.isdecimal() and len(number) < 1000 else -1
            if not name or value < least:
                what = form.rpartition("=")[2]
                raise click.BadParameter(f"{item!r}: expected {form} with {what} at least {least}")
            found[name] = value
        return found

    return read


def factors(
    _context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, float]:
    """Return what was given to an option ``NAME=FACTORx``, several times: factors by name.

    Another form is a click.BadParameter.
    """
    found = {}
    for item in given:
        name, _, factor = item.rpartition("=")
        if not name or _FACTOR.fullmatch(factor) is None:
            raise click.BadParameter(f"{item!r}: expected {parameter.metavar}, as in 0.5x or 2x")
        found[name] = float(factor.removesuffix("x"))
    return found

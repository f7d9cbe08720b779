"""``%load_ext fabric``: the cell magic ``%%fabric`` runs the program that its cell wires."""

from __future__ import annotations

import inspect
import shlex
from types import ModuleType

# Any: whatever a notebook's names stand for.
from typing import TYPE_CHECKING, Any, Protocol

import click

from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import Loaded, wired
from fabric.graph.wiring.program import Program
from fabric.messages.errors import ConfigurationError, ProgramError
from fabric.messages.text import counted
from fabric.runs.simulation import simulate
from fabric.shell.commands.options import run_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.runs.report import Report


class _Cell(Protocol):
    """How running a cell went."""

    def raise_error(self) -> None:
        """Raise what it raised."""


class _Shell(Protocol):
    """The shell of a notebook, as far as it is used."""

    user_ns: dict[str, Any]

    def run_cell(self, raw_cell: str) -> _Cell:
        """Execute a cell."""
        ...

    def register_magic_function(
        self, function: Callable[[str, str], object], magic_kind: str, magic_name: str
    ) -> None:
        """Make a function known as a magic."""


def load(ipython: _Shell) -> None:
    """Make ``%%fabric`` known."""

    def fabric(line: str, cell: str) -> Report | None:
        """Execute the cell, run its program and show the report.

        The cell defines build(), or wires one with Program(...). On the line there may be
        -p NAME=VALUE of build() and the options of `run` that are of the run: --mode, --exact,
        --depth, --depths, --hop, --placement, --on-deadlock, --livelock-cycles.
        """
        before = dict(ipython.user_ns)
        done = ipython.run_cell(cell)
        try:
            done.raise_error()
        except Exception:  # noqa: BLE001 - the shell has shown it
            return None
        made = {
            name: value
            for name, value in ipython.user_ns.items()
            if before.get(name) is not value and not name.startswith("_")
        }
        try:
            options = shlex.split(line)
        except ValueError as error:  # a quotation that nobody ends
            raise ConfigurationError(f"%%fabric {line}: {error}") from None
        try:
            report: Report = _run.main(options, standalone_mode=False, obj=made)
        except click.ClickException as error:
            raise ConfigurationError(f"%%fabric {line}: {error.format_message()}") from None
        return report

    ipython.register_magic_function(fabric, magic_kind="cell", magic_name="fabric")


@click.command("%%fabric")
@run_options()
@click.option("-p", "parameters", metavar="NAME=VALUE", multiple=True)
@click.pass_obj
def _run(made: dict[str, Any], parameters: tuple[str, ...], options: dict[str, Any]) -> Report:
    """Run the program that a cell has made."""
    loaded = _program(made, parameters)
    return simulate(loaded.program, parameters=loaded.parameters, **options)


def _program(made: dict[str, Any], parameters: tuple[str, ...]) -> Loaded:
    """Return the program that a cell's names are, or build."""
    build = made.get("build")
    if inspect.isfunction(build):
        cell = ModuleType("cell")
        cell.__file__ = build.__code__.co_filename
        vars(cell)["build"] = build
        return wired(cell, parameters, Hardware())
    programs = [each for each in made.values() if isinstance(each, Program)]
    if len(programs) != 1:
        raise ProgramError(
            f"%%fabric: the cell has made {counted(len(programs), 'program')}: expected "
            f"build(), or one "
            "`with Program(...) as program`"
        )
    if parameters:
        raise ProgramError("%%fabric -p: the cell defines no build(): expected one that takes it")
    return Loaded(programs[0], {})

"""The cell magic ``%%fabric`` of notebooks, which runs the program that its cell wires."""

from __future__ import annotations

import inspect
import shlex
from types import ModuleType

# Any: the values of a notebook's variables.
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
    def raise_error(self) -> None: ...


class _Shell(Protocol):
    """The part of IPython's shell that ``%%fabric`` uses."""

    user_ns: dict[str, Any]

    def run_cell(self, raw_cell: str) -> _Cell: ...

    def register_magic_function(
        self, function: Callable[[str, str], object], magic_kind: str, magic_name: str
    ) -> None: ...


def load(ipython: _Shell) -> None:
    def fabric(line: str, cell: str) -> Report | None:
        """Execute the cell, run its program and show the report.

        The cell defines build(), or wires one program with Program(...). The line takes
        -p NAME=VALUE for build(), and the options --mode, --exact, --depth, --depths, --hop,
        --placement, --on-deadlock and --livelock-cycles of `run`.
        """
        before = dict(ipython.user_ns)
        result = ipython.run_cell(cell)
        try:
            result.raise_error()
        except Exception:  # noqa: BLE001 - the shell has shown it
            return None
        assigned = {
            name: value
            for name, value in ipython.user_ns.items()
            if before.get(name) is not value and not name.startswith("_")
        }
        try:
            options = shlex.split(line)
        except ValueError as error:  # an open quotation
            raise ConfigurationError(f"%%fabric {line}: {error}") from None
        try:
            report: Report = _run.main(options, standalone_mode=False, obj=assigned)
        except click.ClickException as error:
            raise ConfigurationError(f"%%fabric {line}: {error.format_message()}") from None
        return report

    ipython.register_magic_function(fabric, magic_kind="cell", magic_name="fabric")


@click.command("%%fabric")
@run_options()
@click.option("-p", "parameters", metavar="NAME=VALUE", multiple=True)
@click.pass_obj
def _run(assigned: dict[str, Any], parameters: tuple[str, ...], options: dict[str, Any]) -> Report:
    loaded = _program(assigned, parameters)
    return simulate(loaded.program, parameters=loaded.parameters, **options)


def _program(assigned: dict[str, Any], parameters: tuple[str, ...]) -> Loaded:
    """Return the program that the cell has assigned, or that its ``build`` returns."""
    build = assigned.get("build")
    if inspect.isfunction(build):
        cell = ModuleType("cell")
        cell.__file__ = build.__code__.co_filename
        vars(cell)["build"] = build
        return wired(cell, parameters, Hardware())
    programs = [value for value in assigned.values() if isinstance(value, Program)]
    if len(programs) != 1:
        raise ProgramError(
            f"%%fabric: the cell has made {counted(len(programs), 'program')}: expected build(), "
            "or one `with Program(...) as program`"
        )
    if parameters:
        raise ProgramError("%%fabric -p: the cell defines no build(): expected no -p")
    return Loaded(programs[0], {})

"""Options of commands with a program: its file, parameters, hardware and run."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from pathlib import Path

# Any: arguments of commands, which check them.
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from typing_extensions import override

from fabric.graph.arguments.numbers import number_of
from fabric.messages.errors import ConfigurationError
from fabric.shell import completing

if TYPE_CHECKING:
    from fabric.graph.hardware.latency import Hop

_SIZE: Final = re.compile(r"[0-9]{1,999}(\.[0-9]{1,6}|/[1-9][0-9]{0,8})?", re.ASCII)
_FACTOR: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?x", re.ASCII)
Command = TypeVar("Command", bound=Callable[..., object])
T = TypeVar("T")


class NamedPath(click.Path):
    """A path. An empty one, as from an unset variable of the shell, is refused."""

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


class Whole(click.IntRange):
    """An integer, which may be written as ``1e9`` or ``8.0``."""

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str):
            number = number_of(value)
            value = number if isinstance(number, int) else value
        whole: int = super().convert(value, param, ctx)
        return whole


def program_options(command: Command) -> Command:
    """Give ``command`` the argument PROGRAM.py and the options -p and --hardware."""
    for option in (
        click.option(
            "--hardware",
            "hardware_file",
            metavar="FILE.toml",
            type=NamedPath(),
            help="A hardware file, or the name of one that comes with the fabric; by default "
            "the paper's.",
        ),
        click.option(
            "-p",
            "parameters",
            metavar="NAME=VALUE",
            multiple=True,
            shell_complete=completing.parameters,
            help="A parameter of the program's build().",
        ),
        click.argument("program", metavar="PROGRAM.py", type=NamedPath()),
    ):
        command = option(command)
    return command


def experiment_options(command: Command) -> Command:
    for option in (
        click.option(
            "-o",
            "folder",
            metavar="DIR",
            type=NamedPath(path_type=Path, file_okay=False),
            help="Keep results, pictures and a page in DIR; the same command continues from there.",
        ),
        click.option(
            "--dask",
            metavar="ADDRESS",
            help="Use the workers of a Dask cluster, as in tcp://10.0.0.1:8786.",
        ),
        click.option(
            "--jobs",
            metavar="N",
            type=Whole(min=1),
            help="Processes; by default one for each core.",
        ),
    ):
        command = option(command)
    return command


def _by_name(read: Callable[[str], T | None], form: str) -> Callable[..., dict[str, T]]:
    """Return the callback of an option NAME=VALUE: it returns the values by name.

    ``read`` returns None for a text that is not a value, and the error then expects ``form``.
    """

    def values_by_name(
        _context: click.Context, parameter: click.Parameter, items: tuple[str, ...]
    ) -> dict[str, T]:
        values = {}
        for item in items:
            name, _, text = item.rpartition("=")
            value = read(text) if name else None
            if value is None:
                raise click.BadParameter(f"{item!r}: expected {parameter.metavar}{form}")
            values[name] = value
        return values

    return values_by_name


def _depth(text: str) -> int | None:
    value = number_of(text)
    return value if isinstance(value, int) and value >= 1 else None


def _size(text: str) -> int | Fraction | None:
    whole = number_of(text)
    if isinstance(whole, int) and whole >= 0:
        return whole
    if not _SIZE.fullmatch(text):
        return None
    value = Fraction(text)
    return value.numerator if value.denominator == 1 else value


def _factor(text: str) -> float | None:
    return float(text.removesuffix("x")) if _FACTOR.fullmatch(text) else None


def _hop(text: str) -> Hop | None:
    from fabric.graph.hardware.latency import Hop

    try:
        return Hop.parse(text)
    except ConfigurationError:
        return None


def sizes_option(text: str) -> Callable[[Command], Command]:
    form = " with VALUE at least 0: an integer, or the mean of a symbol with ~, as in 17/6 or 2.5"
    sizes = _by_name(_size, form)
    return click.option(
        "--set", "sizes", metavar="SYMBOL=VALUE", multiple=True, callback=sizes, help=text
    )


def single_factor(_context: click.Context, parameter: click.Parameter, text: str) -> float:
    """Parse ``FACTORx``; inf for unlimited."""
    if text == "unlimited":
        return math.inf
    factor = _factor(text)
    if not factor:
        raise click.BadParameter(
            f"{text!r}: expected {parameter.metavar} above 0 and below 1,000,000, as in 0.5x or 2x"
        )
    return factor


factors = _by_name(_factor, " with a FACTOR below 1,000,000, as in 0.5x or 2x")
"""Parses an option ``NAME=FACTORx``: factors by name."""


def json_option(meaning: str = "Print one JSON object.") -> Callable[[Command], Command]:
    return click.option("--json", "as_json", is_flag=True, help=meaning)


def file_option(
    flag: str, name: str, metavar: str, meaning: str, **more: Any
) -> Callable[[Command], Command]:
    """Return an option for a file; ``more`` are arguments of ``click.option``."""
    kind = NamedPath(path_type=Path, dir_okay=False)
    return click.option(flag, name, metavar=metavar, type=kind, help=meaning, **more)


def hold_out_option(meaning: str) -> Callable[[Command], Command]:
    return click.option("--hold-out", metavar="N", type=Whole(min=0), default=0, help=meaning)


def depth_option(meaning: str) -> Callable[[Command], Command]:
    return click.option(
        "--depth",
        "depths",
        metavar="CHANNEL=N",
        multiple=True,
        callback=_by_name(_depth, " with N at least 1"),
        shell_complete=completing.channels,
        help=meaning,
    )


def _pieces(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    rows, _, cols = (text or "").partition("x")
    if text is None:
        return None
    if not (rows.isdecimal() and cols.isdecimal() and len(text) < 20):
        raise click.BadParameter(f"{text!r}: expected ROWSxCOLS in up to 19 characters, as 16x16")
    return int(rows), int(cols)


def pieces_option(command: Command) -> Command:
    return click.option(
        "--pieces",
        metavar="ROWSxCOLS",
        callback=_pieces,
        help="Cut all tiles into pieces, as the paper's hardware does, for example 16x16.",
    )(command)


OF_RUNS: Final[dict[str, Callable[[Callable[..., object]], Callable[..., object]]]] = {
    "mode": click.option(
        "--mode",
        type=click.Choice(["timing", "functional"]),
        help="Run without data or with it; the cycles are the same.",
    ),
    "exact": click.option(
        "--exact",
        is_flag=True,
        help="Keep all floats in float64, with data. This shows whether a difference comes "
        "from rounding or from wrong wiring.",
    ),
    "depths": depth_option(
        "The depth of one channel, in slots. CHANNEL is its reader, OPERATOR.INPUT."
    ),
    "hops": click.option(
        "--hop",
        "hops",
        metavar="CHANNEL=FORWARD+BACK",
        multiple=True,
        callback=_by_name(_hop, ", each an integer from 1 to 999,999,999, as in store.0=3+4"),
        help="The latency of one channel: cycles forward and back, as in store.0=3+4, each at "
        "most 999,999,999; by default 1+1.",
    ),
    "placement": click.option(
        "--placement",
        "placement",
        metavar="FILE.toml",
        type=NamedPath(dir_okay=False),
        help="The site of each unit on the mesh of [network]; by default row by row.",
    ),
    "on_deadlock": click.option(
        "--on-deadlock",
        type=click.Choice(["report", "grow"]),
        default="report",
        show_default=True,
        help="Report a deadlock with depths that help, or run again with those depths.",
    ),
    "livelock_cycles": click.option(
        "--livelock-cycles",
        metavar="N",
        type=Whole(min=10),
        default=10_000_000,
        show_default=True,
        help="Give up after N cycles without progress.",
    ),
}
"""Options by the parameter of ``simulate``."""

_DEPTHS: Final = file_option(
    "--depths",
    "depths_file",
    "FILE.toml",
    "Depths of many channels, as `size -o` writes them; --depth overrides them.",
)


def run_options(*names: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Give a command options of ``simulate``, by default all, as the argument ``options``."""
    chosen = names or tuple(OF_RUNS)

    def decorate(command: Callable[..., object]) -> Callable[..., object]:
        @wraps(command)
        def call(*args: Any, **keywords: Any) -> object:
            options = {name: keywords.pop(name) for name in chosen}
            file = keywords.pop("depths_file", None)
            if file is not None:
                from fabric.explore.sizing.depths_file import read_depths

                options["depths"] = read_depths(file) | options["depths"]
            if options.get("exact") and options["mode"] == "timing":
                raise click.UsageError("--exact needs data: expected it without --mode timing.")
            return command(*args, options=options, **keywords)

        decorated: Callable[..., object] = call
        for name in reversed(chosen):
            if name == "depths":
                decorated = _DEPTHS(decorated)
            decorated = OF_RUNS[name](decorated)
        return decorated

    return decorate

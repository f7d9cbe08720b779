"""Standard output, also through a closed pipe, and exit statuses."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, cast

import click

from fabric.messages.addresses import without_passwords
from fabric.messages.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_NARROW: Final = 100
"""Columns. Only consoles that are narrower wrap their lines."""

_NARROWEST: Final = 40
"""Columns. Output for an even narrower terminal has this width."""

PIPED_COLUMNS: Final = 10_000
"""The width of pipes, so that their lines are not wrapped."""

_CONTROL: Final = re.compile(
    "\x1b(?!\\[[0-9;]*m)|"
    "[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that move a terminal's cursor, or change its title or text direction; not colours."""


class ExitStatus:
    COMPLETED: Final = 0
    WRONG: Final = 1
    USAGE: Final = 2
    DEADLOCK: Final = 3
    UNWRITTEN: Final = 4

    @staticmethod
    def interrupted(number: int) -> int:
        """Return 128 and the signal's number: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP."""
        return 128 + number


def program_prints(*, as_json: bool) -> contextlib.AbstractContextManager[object]:
    """Send output of users' code to standard error if standard output is JSON."""
    return contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()


def print_text(text: str) -> None:
    """Print ``text``; a closed pipe is not an error."""
    text = escaped(text)
    encoding = sys.stdout.encoding or "utf-8"
    with _stdout():
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()


def flush_stdout() -> None:
    """Flush standard output while a failure can be reported, which is before the exit."""
    with _stdout():
        sys.stdout.flush()


@contextlib.contextmanager
def _stdout() -> Iterator[None]:
    """Send all further output to the null device if a write fails."""
    try:
        yield
    except OSError as error:
        # The interpreter flushes once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            error.filename = "standard output"
            raise


def tell(text: str) -> None:
    """Write ``text`` to standard error, if it is open."""
    with contextlib.suppress(OSError):
        click.echo(escaped(text), err=True)


def escaped(text: str) -> str:
    """Return ``text`` for a terminal: with control characters escaped and without passwords."""
    return _CONTROL.sub(lambda match: visible(match[0]), without_passwords(text))


def printed(
    show: Callable[[Console], object], *, columns: int | None = None, plain: bool = False
) -> str:
    """Return the text that ``show`` prints on a console like standard output.

    Piped lines are not broken. ``plain`` output has no colours.
    """
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(
        file=io.StringIO(),
        force_terminal=terminal and not plain,
        force_jupyter=False,  # else rich displays the text as outputs of the notebook's cell
        width=columns or _columns(),
        highlight=False,
        markup=False,
        emoji=False,
    )
    show(console)
    return cast("io.StringIO", console.file).getvalue()


def _columns() -> int:
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return max(_NARROWEST, shutil.get_terminal_size().columns)
    return PIPED_COLUMNS


def terminal_columns(console: Console) -> int | None:
    """Return the width of a console; None for pipes, which are not wrapped."""
    return None if console.width == PIPED_COLUMNS else console.width


def print_line(console: Console, text: Text, indent: int = 2) -> None:
    """Print a line; a narrow console breaks it between words, with ``indent`` for the rest."""
    if console.width >= _NARROW:
        console.print(text, soft_wrap=True)
        return
    for number, part in enumerate(text.wrap(console, console.width - indent)):
        part.rstrip()
        console.print(" " * indent if number else "", part, sep="")

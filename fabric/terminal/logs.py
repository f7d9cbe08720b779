"""Events on standard error, as people read them."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO, cast

import click
import structlog
from typing_extensions import override

from fabric.terminal.output import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structlog.typing import Processor

__all__ = ["console_processors", "standard_error"]


class _StandardError(io.TextIOBase):
    """Whatever standard error is when something is written: progress that is shown replaces it."""

    @override
    def write(self, text: str) -> int:
        click.echo(harmless(text), nl=False, err=True)
        return len(text)


def standard_error() -> TextIO:
    """Return a file whose lines go to standard error, without what moves a terminal's cursor."""
    return cast("TextIO", _StandardError())


def console_processors() -> Sequence[Processor]:
    """Return structlog's processors for people; in colour on a terminal that wants it."""
    colors = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    return (
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(colors=colors, sort_keys=False),
    )

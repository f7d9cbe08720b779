"""Events of a run on standard error, in JSON or for people."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO, cast

import click
import structlog
from typing_extensions import override

from fabric.messages.events import line_logger
from fabric.messages.output import escaped

if TYPE_CHECKING:
    from structlog.typing import BindableLogger


class _StandardError(io.TextIOBase):
    """The current standard error, which a progress display replaces."""

    @override
    def write(self, text: str) -> int:
        click.echo(escaped(text), nl=False, err=True)
        return len(text)


def standard_error_logger(level: str, *, as_json: bool) -> BindableLogger:
    """Return a logger to standard error: JSON, or text with colours if the terminal has them."""
    file = cast("TextIO", _StandardError())
    if as_json:
        return line_logger(file, level=level)
    colors = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    renderer = structlog.dev.ConsoleRenderer(colors=colors, sort_keys=False)
    return line_logger(file, [structlog.processors.add_log_level, renderer], level=level)

"""What a notebook shows: a program as a picture, a report as what ``run`` prints."""

from __future__ import annotations

import io
from functools import singledispatch

from rich.console import Console

from fabric.drawing.picture import picture_of
from fabric.drawing.svg import svg
from fabric.runs.report import Report
from fabric.shell.render import render
from fabric.telling.errors import ProgramError
from fabric.wiring.elaborate import elaborate
from fabric.wiring.program import Program

__all__ = ["drawn"]


@singledispatch
def drawn(_thing: object) -> str | None:
    """Return SVG or HTML; None for what is not complete."""
    return None


@drawn.register
def _program(program: Program) -> str | None:
    try:
        plan = elaborate(program)
    except ProgramError:
        return None
    return svg(picture_of(plan))


@drawn.register
def _report(report: Report) -> str:
    console = Console(
        record=True, width=100, file=io.StringIO(), highlight=False, markup=False, emoji=False
    )
    render(report, console)
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")

"""What ``operators`` prints: the families, and all there is to know of one operator."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from fabric.arguments.documented import Parameter, parameters
from fabric.shell.library import Entry, families

__all__ = ["SECTIONS", "parameter_text", "print_entry", "print_families"]

SECTIONS = ("Shapes", "Timing", "Memory")
_WIDEST = 100
_LEAST = 24
"""So much room a text has beside a name, on the narrowest console."""


def print_families(entries: Iterable[Entry], console: Console) -> None:
    """Print each family with its members and what they do."""
    members = families(entries)
    for number, (family, group) in enumerate(members.items()):
        if number:
            console.print()
        _print_title(family, console)
        _print_rows([(each.name, each.text.summary) for each in group], console)


def print_entry(entry: Entry, console: Console) -> None:
    """Print what one operator or function does, costs and is given, with an example."""
    call = f"{inspect.signature(entry.cls)}{entry.call or ''}"
    console.print(Text.assemble((entry.name, "bold"), call), soft_wrap=True)
    console.print(Text(f"{entry.family}: {entry.origin}", "dim"), soft_wrap=True)
    _print_paragraphs(entry.text.summary, console)
    _print_paragraphs(entry.text.details, console)
    for title in SECTIONS:
        if title in entry.text.sections:
            console.print()
            _print_title(title.lower(), console)
            _print_text(entry.text.sections[title], console, "  ")
    rows = [(each.name, parameter_text(each)) for each in parameters(entry.cls)]
    if rows:
        console.print()
        _print_title("parameters", console)
        _print_rows(rows, console)
    if entry.example is not None:
        console.print()
        _print_title("example", console)
        _print_lines(textwrap.indent(entry.example, "  ").splitlines(), console)


def parameter_text(parameter: Parameter) -> str:
    """Return what a parameter takes, by default what, and what for."""
    default = "" if parameter.default is None else f", by default {parameter.default}"
    if parameter.kind == "anything" and parameter.meaning:
        return f"{parameter.meaning}{default}"
    meaning = f"; {parameter.meaning}" if parameter.meaning else ""
    return f"{parameter.kind}{default}{meaning}"


def _print_title(title: str, console: Console) -> None:
    console.print(Text(title, "bold"), soft_wrap=True)


def _print_paragraphs(text: str, console: Console) -> None:
    for paragraph in filter(None, text.split("\n\n")):
        console.print()
        _print_text(paragraph, console)


def _print_rows(rows: list[tuple[str, str]], console: Console) -> None:
    """Print names with texts beside them, or below where there is no room."""
    width = max((len(name) for name, _ in rows), default=0) + 4
    beside = width + _LEAST <= console.width
    for name, text in rows:
        if beside:
            _print_text(text, console, " " * width, f"  {name}".ljust(width))
        else:
            _print_lines([f"  {name}"], console)
            _print_text(text, console, "    ")


def _print_text(text: str, console: Console, indent: str = "", first: str | None = None) -> None:
    """Print a text of a docstring, broken between words."""
    plain = " ".join(text.replace("``", "`").split())
    _print_lines(
        textwrap.wrap(
            plain,
            min(console.width, _WIDEST),
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        or [(first or "").rstrip()],
        console,
    )


def _print_lines(lines: Iterable[str], console: Console) -> None:

    for line in lines:
        console.print(Text(line.rstrip()), soft_wrap=True)

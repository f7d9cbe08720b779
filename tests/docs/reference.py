"""Pages of operators and functions; ``python -m tests.docs.reference`` writes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from fabric.graph.arguments.keywords import parameters
from fabric.shell.library import SECTIONS, Entry, families, installed, parameter_text

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ROOT / "docs" / "pages"

GENERATED: Final = "<!-- Written by `poe reference` from the code. -->\n"

_WIDTH: Final = 80
_PARAMETERS: Final = re.compile(r", (?=[*\w]+(?::|,|$))")
_CODE: Final = re.compile(r"(`+[^`]+`+)")


def pages() -> dict[str, str]:
    members = families(installed())
    made = {"operators/index.md": _index(members)}
    for family, group in members.items():
        made[f"operators/{_slug(family)}.md"] = _family(family, group)
    return made


def _index(members: Mapping[str, list[Entry]]) -> str:
    lines = ["# Operators and functions\n", GENERATED]
    lines.append(
        "`python -m fabric operators` prints this list, and `python -m fabric operators NAME`\n"
        "explains one operator or function, as `help(Map)` does in Python.\n"
        "\n"
        "Shapes are written with the outermost dimension first. In `[D_a, ..., D_0]` the rank is\n"
        "`a`, and `D_0` is the innermost dimension. *Ragged* sizes differ from group to group.\n"
        "The parameter `rank` of an operator is the number of innermost dimensions it works on.\n"
        "An operator without *Timing* takes no cycles, and one without *Memory* no memory.\n"
        "`name` sets the name of an operator in reports. By default it is the name of the\n"
        "function or class with a number, such as `exp_1`.\n"
        "The [terms](../reference/terms.md) explain all other words.\n"
    )
    for family, group in members.items():
        page = f"{_slug(family)}.md"
        lines += [f"## [{family}]({page})\n", "| | |", "|---|---|"]
        lines += [
            f"| [{each.name}]({page}#{each.name.lower()}) | {_prose(each.text.summary)} |"
            for each in group
        ]
        lines.append("")
    return "\n".join(lines)


def _family(family: str, group: list[Entry]) -> str:
    about = "The [overview](index.md) explains how shapes are written.\n"
    return "\n".join(
        [f"# {family}\n", GENERATED, about, *(line for each in group for line in _of(each))]
    )


def _of(entry: Entry) -> Iterator[str]:
    yield f"## {entry.name}\n"
    yield "```python"
    yield f"{entry.origin}\n"
    yield _call(entry)
    yield "```\n"
    yield f"{_prose(entry.text.summary)}\n"
    if entry.text.details:
        yield f"{_prose(entry.text.details)}\n"
    for title in SECTIONS:
        if title in entry.text.sections:
            yield f"**{title}.** {_prose(entry.text.sections[title])}\n"
    shown = [each for each in parameters(entry.cls) if each.name != "name"]
    if shown:
        yield "| parameter | |"
        yield "|---|---|"
        for each in shown:
            yield f"| `{each.name}` | {_prose(parameter_text(replace(each, default=None)))} |"
        yield ""
    yield "```python"
    yield str(entry.example)
    yield "```\n"


def _call(entry: Entry) -> str:
    signature = str(inspect.signature(entry.cls))
    if len(entry.name + signature) > _WIDTH:
        inner = "".join(f"    {each},\n" for each in _PARAMETERS.split(signature[1:-1]))
        signature = f"(\n{inner})"
    return f"{entry.name}{signature}{entry.call or ''}"


def _prose(text: str) -> str:
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    return "\n\n".join(
        "".join(
            part.replace("``", "`") if part.startswith("`") else _escaped(part)
            for part in _CODE.split(each)
        )
        for each in paragraphs
    )


def _escaped(text: str) -> str:
    return re.sub(r"([*<>|\[\]])", r"\\\1", text)


def _slug(family: str) -> str:
    return "-".join(re.findall(r"[a-z]+", family.partition(" (")[0].lower()))


if __name__ == "__main__":
    for path, text in pages().items():
        (PAGES / path).write_text(text, encoding="utf-8")

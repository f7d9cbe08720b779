"""The page of a question of serving: its answer, its runs, its pictures, in one offline file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.serving.written.rows import LEGEND, answer, notes, table_of_runs
from fabric.study.written.markup import section, style, table, text, titled
from fabric.trace.pages.parts import filled, head, part

if TYPE_CHECKING:
    from fabric.arguments.described import Described
    from fabric.serving.result import ServingResult
    from fabric.study.written.pictures import Drawn

__all__ = ["page_html"]

_FOLDER: Final = Path(__file__).parent


def page_html(result: ServingResult, pictures: Sequence[Drawn], command: str = "") -> str:
    """Return the page.

    Args:
        result: what the question came to.
        pictures: shown in the page.
        command: what was typed; empty where nobody knows.
    """
    serving = result.serving
    found = table_of_runs(result)
    return filled(
        part("page.html", _FOLDER),
        {
            "head": head(text(serving.name), style(), "style-src 'unsafe-inline'; img-src data:"),
            "title": text(serving.name),
            "question": f"<p>{text(serving.question)}</p>" if serving.question else "",
            "answer": text(answer(result)),
            "notes": "".join(f"<p>{text(each)}</p>" for each in notes(result)),
            "runs": section(
                "Runs", table(found.columns, found.rows) + f"<p>{text(LEGEND)}</p>", "runs"
            ),
            "pictures": section("Pictures", "\n".join(map(titled, pictures)), "pictures"),
            "costs": section("What was served, and what steps cost", _stated(result), "costs"),
            "again": section(
                "How to run it again", f"<pre>{text(command)}</pre>" if command else "", "again"
            ),
        },
    )


def _stated(result: ServingResult) -> str:
    serving = result.serving
    rows = [
        *_rows("requests", serving.requests),
        *_rows("server", serving.server),
        *_rows("level", serving.level),
    ]
    for design, described in serving.designs.items():
        rows += _rows(design or "cost", described)
    return table(("of", "what", "value"), rows)


def _rows(of: str, described: Described) -> list[tuple[str, str, str]]:
    return [
        (of, name, _value(value))
        for name, value in vars(described).items()
        if value is not None and value != ()
    ]


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_value(each)}" for name, each in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(_value, value))
    return str(value)

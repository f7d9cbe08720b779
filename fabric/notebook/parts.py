"""Parts of what a notebook shows: tables, folded sections, bars, in the colours of its theme.

Colours are those of JupyterLab where it is; elsewhere text has the colour of what is around it, and
lines are grey that is seen on white and on black.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from fabric.messages.telling.causes import Cause
from fabric.messages.telling.sheet import (
    Block,
    Line,
    Part,
    Rows,
    Style,
    Title,
    cell_text,
    is_number,
)
from fabric.messages.telling.wording import counted

__all__ = ["bar", "document", "folded", "legend", "paragraph", "preformatted", "sheet", "table"]

_ROWS: Final = 200
"""Rows of a table that are written."""

_NUMBER: Final = re.compile(r"[+-]?[\d,.]+")

_BLOCK: Final = 100
"""Columns of lines that are laid out."""

_CLASSES: Final[Mapping[Style, str]] = {
    "": "",
    "bold": "strong",
    "bold red": "wrong",
    "dim": "quiet",
    "green": "right",
    "red": "wrong",
    "yellow": "strong",
}

_SCOPE: Final = "step-shown"
_GREY: Final = "rgba(128,128,128,.35)"
_STYLE: Final = (
    f".{_SCOPE}{{color:var(--jp-content-font-color1,inherit);max-width:100%}}"
    f".{_SCOPE} table{{border-collapse:collapse;margin:.4em 0;font-size:90%}}"
    f".{_SCOPE}.{_SCOPE} :is(th,td){{padding:.15em .7em;border:0;"
    f"border-bottom:1px solid var(--jp-border-color2,{_GREY});text-align:left;"
    "background:transparent;color:inherit}"
    f".{_SCOPE}.{_SCOPE} .number{{text-align:right;font-variant-numeric:tabular-nums}}"
    f".{_SCOPE} summary{{cursor:pointer;margin:.3em 0}}"
    f".{_SCOPE} .scroll{{overflow:auto;max-height:56em}}"
    f".{_SCOPE} .quiet{{color:var(--jp-content-font-color2,inherit)}}"
    f".{_SCOPE} .strong{{font-weight:600}}"
    f".{_SCOPE} .wrong{{color:var(--jp-error-color1,#c62828);font-weight:600}}"
    f".{_SCOPE} .right{{color:var(--jp-success-color1,#2e7d32);font-weight:600}}"
    f".{_SCOPE} pre{{color:inherit;background:transparent;white-space:pre;overflow:auto;"
    "font-family:var(--jp-code-font-family,monospace);font-size:90%;line-height:1.3}"
    f".{_SCOPE} i{{display:inline-block;height:.7em;border-radius:1px}}"
)
"""For this alone: a page has other tables."""


def document(*content: str) -> str:
    """Return ``content`` with its style sheet."""
    return f'<div class="{_SCOPE}"><style>{_STYLE}</style>{"".join(content)}</div>'


def paragraph(text: str, kind: str = "") -> str:
    """Return ``text`` as a paragraph; ``kind`` is quiet, wrong, right or nothing."""
    attribute = f' class="{kind}"' if kind else ""
    return f"<p{attribute}>{escape(text)}</p>"


def preformatted(lines: Iterable[str]) -> str:
    """Return ``lines`` as a terminal has them."""
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def folded(title: str, content: str, *, unfolded: bool = False) -> str:
    """Return ``content`` under a title that unfolds it."""
    state = " open" if unfolded else ""
    return (
        f'<details{state}><summary>{escape(title)}</summary><div class="scroll">{content}</div>'
        "</details>"
    )


def sheet(parts: Iterable[Part]) -> str:
    """Return what a terminal prints of an analysis: sentences and tables."""
    return "".join(map(_part, parts))


def _part(part: Part) -> str:
    match part:
        case Title(title, note):
            return f'<p><b>{escape(title)}</b><span class="quiet">{escape(note)}</span></p>'
        case Line(pieces):
            content = "".join(
                f'<span class="{_CLASSES[style]}">{escape(text)}</span>' for text, style in pieces
            )
            return f"<p>{content}</p>" if pieces else ""
        case Block(lines):
            return preformatted(lines(_BLOCK))
        case Rows():
            rows = [list(map(cell_text, row)) for row in part.rows[: part.shown]]
            columns = range(len(part.columns))
            right = {n for n in columns if all(is_number(row[n]) for row in part.rows)}
            more = len(part.rows) - len(rows)
            rest = paragraph(f"and {more:,} more", "quiet") if more else ""
            whole = table(part.columns, rows, part.right | right)
            return f'<div class="scroll">{whole}</div>{rest}'


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[object]],
    right: frozenset[int] = frozenset(),
) -> str:
    """Return a table; numbers and columns ``right`` stand right, all but bars is escaped."""
    head = "".join(
        f'<th class="number">{escape(title)}</th>' if n in right else f"<th>{escape(title)}</th>"
        for n, title in enumerate(titles)
    )
    body = "".join(
        f"<tr>{''.join(_cell(each, n in right) for n, each in enumerate(row))}</tr>"
        for row in rows[:_ROWS]
    )
    more = ""
    if len(rows) > _ROWS:
        more = paragraph(f"{_ROWS} of {counted(len(rows), 'row')}", "quiet")
    start = f"<thead><tr>{head}</tr></thead>" if any(titles) else ""
    return f"<table>{start}<tbody>{body}</tbody></table>{more}"


class Bar(str):
    """HTML of a bar."""

    __slots__ = ()


def bar(shares: Mapping[Cause, float]) -> Bar:
    """Return where the cycles of a unit went, as one bar in the colours of the causes."""
    parts = "".join(
        f'<i style="width:{120 * share:.1f}px;background:{cause.colour}" '
        f'title="{cause.label} {100 * share:.1f} %"></i>'
        for cause, share in shares.items()
        if share > 0
    )
    return Bar(f'<span style="white-space:nowrap">{parts}</span>')


def legend(causes: Iterable[Cause]) -> str:
    """Return what the colours of bars stand for."""
    parts = (
        f'<i style="width:.7em;background:{cause.colour}"></i> {cause.label} &nbsp; '
        for cause in causes
    )
    return f'<p class="quiet">{"".join(parts)}</p>'


def _cell(value: object, right: bool) -> str:
    if isinstance(value, Bar):
        return f"<td>{value}</td>"
    if isinstance(value, float):
        return f'<td class="number">{value:,.1f}</td>'
    if isinstance(value, int) and not isinstance(value, bool):
        value = f"{value:,}"
    if right or _NUMBER.fullmatch(str(value)):
        return f'<td class="number">{escape(str(value))}</td>'
    return f"<td>{escape(str(value))}</td>"

"""Sheets as HTML: in the theme of a notebook, and as sections of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

from fabric.display.parts import (
    Bar,
    Block,
    Drawing,
    Fold,
    Line,
    Markup,
    Part,
    Rows,
    Style,
    Title,
    cell_text,
)
from fabric.messages.addresses import without_passwords
from fabric.messages.causes import SHOWN, Cause
from fabric.messages.text import counted, visible

_MOST_ROWS: Final = 200
_BLOCK_COLUMNS: Final = 100
_BAR_PIXELS: Final = 120

_RIGHT: Final = ("", ' class="n"')

_BREAK: Final = re.compile(r"(?<=\.)(?=\w)")
"""Break points of a long name such as ``hardware.hbm.channels``."""

_CLASSES: Final[Mapping[Style, str]] = {
    "": "",
    "bold": "strong",
    "bold red": "bad",
    "dim": "quiet",
    "green": "good",
    "red": "bad",
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
    f".{_SCOPE}.{_SCOPE} .n{{text-align:right;font-variant-numeric:tabular-nums}}"
    f".{_SCOPE} summary{{cursor:pointer;margin:.3em 0}}"
    f".{_SCOPE} .scroll{{overflow:auto;max-height:56em}}"
    f".{_SCOPE} .quiet{{color:var(--jp-content-font-color2,inherit)}}"
    f".{_SCOPE} .strong{{font-weight:600}}"
    f".{_SCOPE} .bad{{color:var(--jp-error-color1,#c62828);font-weight:600}}"
    f".{_SCOPE} .good{{color:var(--jp-success-color1,#2e7d32);font-weight:600}}"
    f".{_SCOPE} pre{{color:inherit;background:transparent;white-space:pre;overflow:auto;"
    "font-family:var(--jp-code-font-family,monospace);font-size:90%;line-height:1.3}"
    f".{_SCOPE} i{{display:inline-block;height:.7em;border-radius:1px}}"
)
"""Rules for elements of this class only, since a notebook has rules for its own tables."""


def document(parts: Iterable[Part]) -> str:
    """Return a sheet with its style, for a notebook."""
    return f'<div class="{_SCOPE}"><style>{_STYLE}</style>{fragment(parts)}</div>'


def fragment(parts: Iterable[Part]) -> str:
    """Return a sheet without a style."""
    return "".join(map(_part, parts))


def section(title: str, body: str, name: str = "", note: str = "") -> str:
    """Return a section of a page, with an identifier, or nothing if ``body`` is empty."""
    start = f'<section id="{name}">' if name else "<section>"
    quiet = f' <span class="quiet">{text(note)}</span>' if note else ""
    return f"{start}<h2>{text(title)}{quiet}</h2>\n{body}\n</section>" if body else ""


def sections(parts: Iterable[Part]) -> str:
    """Return a section for each title of a sheet, which begins with a title, and for each fold."""
    titled: list[tuple[Title, list[Part]]] = []
    for part in parts:
        if isinstance(part, Title):
            titled.append((part, []))
        elif isinstance(part, Fold):
            titled.append((Title(part.title), [*part.parts]))
        else:
            titled[-1][1].append(part)
    return "\n".join(section(title, fragment(inner), note=note) for (title, note), inner in titled)


def text(value: object) -> str:
    """Return a value as the text of an element or an attribute, without passwords."""
    shown = visible(without_passwords(str(value)))
    # A lone surrogate, as in a path that is not UTF-8, cannot be encoded.
    return escape(shown.encode("utf-8", "backslashreplace").decode("utf-8"))


def _lines(words: str) -> str:
    return "<br/>".join(map(text, words.split("\n")))


def _part(part: Part) -> str:
    match part:
        case Title(title, note):
            return f'<p><b>{text(title)}</b><span class="quiet">{text(note)}</span></p>'
        case Line(pieces):
            content = "".join(
                f'<span class="{_CLASSES[style]}">{_lines(words)}</span>' for words, style in pieces
            )
            return f"<p>{content}</p>" if pieces else ""
        case Block(lines):
            return f"<pre>{chr(10).join(map(text, lines(_BLOCK_COLUMNS)))}</pre>"
        case Fold(title, inner):
            return f"<details><summary>{text(title)}</summary>{fragment(inner)}</details>"
        case Drawing(svg):
            return f'<div class="scroll">{svg()}</div>'
        case Rows():
            return _table(part)


def _table(table: Rows) -> str:
    right = table.right_columns()
    rows = table.rows[: min(_MOST_ROWS, _MOST_ROWS if table.shown is None else table.shown)]
    head = "".join(
        f"<th{_RIGHT[n in right]}>{_BREAK.sub('<wbr/>', text(title))}</th>"
        for n, title in enumerate(table.columns)
    )
    body = "".join(
        f"<tr>{''.join(f'<td{_RIGHT[n in right]}>{_cell(c)}</td>' for n, c in enumerate(row))}</tr>"
        for row in rows
    )
    more = len(table.rows) - len(rows)
    return (
        _legend([cell for row in rows for cell in row if isinstance(cell, Bar)])
        + '<div class="scroll"><table>'
        + (f"<thead><tr>{head}</tr></thead>" if any(table.columns) else "")
        + f"<tbody>{body}</tbody></table></div>"
        + (f'<p class="quiet">and {counted(more, "more row")}</p>' if more else "")
    )


def _cell(value: object) -> str:
    match value:
        case Markup():
            return value
        case Bar(shares):
            parts = "".join(
                f'<i style="width:{_BAR_PIXELS * share:.1f}px;background:{_shade(cause)}" '
                f'title="{cause.label} {100 * share:.1f} %"></i>'
                for cause, share in shares.items()
                if share > 0
            )
            return f'<span style="white-space:nowrap">{parts}</span>'
    return _lines(cell_text(value))


def _shade(cause: Cause) -> str:
    # These colours are visible on white and on black.
    return _GREY if cause is Cause.IDLE else f"color-mix(in srgb,{cause.colour} 80%,#fff)"


def _legend(bars: list[Bar]) -> str:
    shown = "".join(
        f'<i style="width:.7em;background:{_shade(cause)}"></i> {cause.label} &nbsp; '
        for cause in SHOWN
        if any(bar.shares.get(cause) for bar in bars)
    )
    return f'<p class="quiet">{shown}</p>' if bars else ""

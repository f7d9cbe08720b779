"""HTML of pages: texts and tables, in which users' texts are escaped."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.analysis.trace.pages.parts import part
from fabric.display.parts import is_number
from fabric.explore.study.written.words import number_text
from fabric.messages.addresses import without_passwords
from fabric.messages.text import plain, visible

if TYPE_CHECKING:
    from fabric.explore.study.written.pictures import Drawn, Shown

_FOLDER: Final = Path(__file__).parent

_BREAK: Final = re.compile(r"(?<=\.)(?=\w)")
"""Break points of a long name such as ``hardware.hbm.channels``."""


_JSON_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


class Markup(str):
    """HTML, which is not escaped again."""

    __slots__ = ()


def text(value: object) -> str:
    """Return a value as the text of an element or an attribute."""
    # A lone surrogate, as in a path that is not UTF-8, cannot be encoded.
    shown = (
        visible(without_passwords(str(value))).encode("utf-8", "backslashreplace").decode("utf-8")
    )
    return escape(shown)


def own_part(name: str) -> str:
    """Return the content of a file of this folder."""
    return part(name, _FOLDER)


def style() -> str:
    """Return the style sheet of run pages with the rules of studies."""
    return part("style.css") + own_part("study.css")


def section(title: str, body: str, name: str = "") -> str:
    """Return a section with a title, or nothing if ``body`` is empty."""
    if not body:
        return ""
    of_name = f' id="{name}"' if name else ""
    return f"<section{of_name}><h2>{text(title)}</h2>\n{body}\n</section>"


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], classes: Sequence[str] = ()
) -> str:
    """Return a table; numbers are right-aligned with thousands separators."""
    rows = [list(row) for row in rows]
    right = [
        all(row[n] == "" or (not isinstance(row[n], Markup) and is_number(row[n])) for row in rows)
        for n in range(len(columns))
    ]
    heads = [_BREAK.sub("<wbr>", text(each)) for each in columns]
    head = "".join(f"<th{_right(right[n])}>{each}</th>" for n, each in enumerate(heads))
    lines = []
    for at, row in enumerate(rows):
        of_class = f' class="{classes[at]}"' if classes and classes[at] else ""
        cells = "".join(f"<td{_right(right[n])}>{_cell(each)}</td>" for n, each in enumerate(row))
        lines.append(f"<tr{of_class}>{cells}</tr>")
    body = "\n".join(lines)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def image(picture: Shown) -> str:
    """Return a picture with its caption, as an image so that its scripts do not run."""
    data = base64.b64encode(picture.svg.encode("utf-8")).decode("ascii")
    alternative = text(picture.title)
    caption = f"<figcaption>{text(picture.caption)}</figcaption>" if picture.caption else ""
    return (
        f'<figure><img alt="{alternative}" src="data:image/svg+xml;base64,{data}">'
        f"{caption}</figure>"
    )


def titled(picture: Drawn) -> str:
    """Return a picture below its title and links to its files."""
    file = f"pictures/{text(picture.name)}"
    links = f'<a href="{file}.svg">SVG</a> <a href="{file}.png">PNG</a>'
    return f'<h3>{text(picture.title)} <span class="quiet how">{links}</span></h3>{image(picture)}'


def script_data(value: object) -> str:
    """Return a value as JSON without the characters of markup."""
    data = json.dumps(plain(value), separators=(",", ":"), allow_nan=False)
    if "://" in data:
        data = _JSON_TEXT.sub(lambda match: without_passwords(match[0]), data)
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _right(is_right: bool) -> str:
    return ' class="n"' if is_right else ""


def _cell(value: object) -> str:
    if value is None or isinstance(value, Markup):
        return value or ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return text(value)

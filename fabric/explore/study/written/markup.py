"""HTML of pages: pictures, styles and the data of scripts."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.analysis.trace.pages.parts import part
from fabric.display.html import text
from fabric.messages.addresses import without_passwords
from fabric.messages.text import plain

if TYPE_CHECKING:
    from fabric.explore.study.written.pictures import Drawn

_FOLDER: Final = Path(__file__).parent
_JSON_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def own_part(name: str) -> str:
    return part(name, _FOLDER)


def style() -> str:
    return part("style.css") + own_part("study.css")


def image(picture: Drawn) -> str:
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

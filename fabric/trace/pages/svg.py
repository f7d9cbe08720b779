"""Pieces of SVG and HTML, escaped; colours shared by all drawings."""

from __future__ import annotations

from html import escape
from typing import Final

__all__ = ["COLOURS", "TITLES", "cell", "element", "shade", "table"]

COLOURS: Final = {
    "busy": "#2f6fb2",
    "empty": "#f2a93b",
    "full": "#d64545",
    "hbm": "#8a63c9",
    "capacity": "#2a9d8f",
    "idle": "#eef1f4",
}
TITLES: Final = {
    "busy": "busy",
    "empty": "starved",
    "full": "back-pressured",
    "hbm": "HBM",
    "capacity": "capacity",
    "idle": "idle",
}


def element(tag: str, content: str = "", **attributes: object) -> str:
    """Return an element; ``content`` is markup, attribute values are escaped.

    An underscore in an attribute's name stands for a hyphen; one at its end is left out.
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{given}>{content}</{tag}>"


def shade(share: float) -> tuple[str, str]:
    """Return a fill for a share from 0 to 1, and a colour for text on it."""
    light, dark = (238, 243, 248), (31, 84, 140)
    part = max(0.0, min(1.0, share))
    mixed = [round(low + (high - low) * part) for low, high in zip(light, dark, strict=True)]
    return "#" + "".join(f"{value:02x}" for value in mixed), "#fff" if part > 0.5 else "#1c2733"


def cell(value: object) -> str:
    """Return a table's cell, numbers to the right."""
    if isinstance(value, int):
        return element("td", f"{value:,}", class_="n")
    if isinstance(value, float):
        return element("td", f"{value:,.1f}", class_="n")
    return element("td", escape(str(value)))


def table(columns: list[str], rows: list[tuple[object, ...]]) -> str:
    """Return a table."""
    numbers = [any(isinstance(row[n], int | float) for row in rows) for n in range(len(columns))]
    head = "".join(
        element("th", escape(column), class_="n" if number else "t")
        for column, number in zip(columns, numbers, strict=True)
    )
    body = "".join(element("tr", "".join(map(cell, row))) for row in rows)
    return element("table", element("thead", element("tr", head)) + element("tbody", body))

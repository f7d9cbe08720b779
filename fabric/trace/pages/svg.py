"""Pieces of SVG and HTML, escaped."""

from __future__ import annotations

from html import escape

__all__ = ["cell", "element", "table"]


def element(tag: str, content: str = "", **attributes: object) -> str:
    """Return an element; ``content`` is markup, attribute values are escaped.

    An underscore in an attribute's name stands for a hyphen; one at its end is left out.
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{given}>{content}</{tag}>"


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

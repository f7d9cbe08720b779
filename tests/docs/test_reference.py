"""Pages of the documentation that code writes are fresh."""

from __future__ import annotations

from tests.docs.reference import GENERATED, PAGES, pages


def test_generated() -> None:
    """A page that is written from the code says what the code says; see ``poe reference``."""
    texts = {
        str(file.relative_to(PAGES)): file.read_text(encoding="utf-8")
        for file in PAGES.rglob("*.md")
    }

    assert pages() == {page: text for page, text in texts.items() if GENERATED in text}

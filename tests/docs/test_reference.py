from __future__ import annotations

from tests.docs.reference import GENERATED, PAGES, pages


def test_generated_pages_are_fresh() -> None:
    texts = {
        str(file.relative_to(PAGES)): file.read_text(encoding="utf-8")
        for file in PAGES.rglob("*.md")
    }

    assert pages() == {page: text for page, text in texts.items() if GENERATED in text}

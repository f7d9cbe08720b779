from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.fabric.trace.browsing import browsing
from tests.images import IMAGES, draw, draw_run_page

NAMES = [
    f"{name}-{theme}.png"
    for name, theme in product(("deadlock", "graph", "notebook", "run-page"), ("dark", "light"))
]


def _size(file: Path) -> tuple[int, int]:
    head = file.read_bytes()[:24]
    assert b"\x89PNG\r\n\x1a\n" == head[:8]
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


@pytest.mark.parametrize("name", NAMES)
def test_documentation_image_is_small_and_shown(name: str) -> None:
    pages = [page.read_text(encoding="utf-8") for page in IMAGES.parent.rglob("*.md")]
    theme = name.rpartition("-")[2].removesuffix(".png")

    assert (IMAGES / name).stat().st_size < 200_000
    assert any(f"images/{name}#only-{theme})" in page for page in pages)


@pytest.mark.deep
def test_documentation_images_are_up_to_date(tmp_path: Path) -> None:
    with browsing() as browser:
        draw(tmp_path, browser)
        draw_run_page(tmp_path, browser)

    assert [*NAMES, "tile-traffic.png"] == sorted(file.name for file in IMAGES.glob("*.png"))
    assert NAMES == sorted(file.name for file in tmp_path.iterdir())
    # Fonts depend on the host: texts may be slightly wider; an image has the same size.
    for name in NAMES:
        assert _size(IMAGES / name) == _size(tmp_path / name)

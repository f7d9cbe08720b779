"""Draws the pictures in the documentation: graph, deadlock, notebook and run page, light and dark.

``python -m tests.images`` needs a browser.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import nbformat

from fabric import Hardware, simulate
from fabric.analysis.deadlock.document import DeadlockReport
from fabric.analysis.deadlock.picture import deadlock_picture
from fabric.analysis.drawing.picture import picture_of, shares_of_run
from fabric.analysis.drawing.svg import svg
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.elaborate import elaborate
from tests.deadlock.cases import CASES
from tests.fabric.trace.browsing import Shown, browsing
from tests.fabric.trace.recording import record
from tests.notebooks import TOUR, page
from tests.symbolic.programs import wired

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect

IMAGES: Final = Path(__file__).parents[1] / "docs" / "pages" / "images"

_THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
_ROUTING: Final = "programs/data/traces/expert_routing/qwen_b64/032_012.npz"
_UNIT: Final = "up_104"
_CYCLE: Final = 400_000
_NOTEBOOK: Final[FloatRect] = {"x": 0, "y": 1_020, "width": 900, "height": 1_300}
"""The part of the tour that the picture shows, from its second program on."""


def draw(folder: Path, browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for theme in _THEMES:
            shown = browser.new_page(color_scheme=theme, viewport={"width": 900, "height": 1_000})
            for name, suffix, text in _documents(Path(scratch), theme):
                file = Path(scratch, f"{name}.{suffix}")
                file.write_text(text, encoding="utf-8")
                shown.goto(file.as_uri())
                image = folder / f"{name}-{theme}.png"
                if suffix == "svg":
                    shown.locator("svg").screenshot(path=image)
                else:
                    shown.screenshot(path=image, full_page=True, clip=_NOTEBOOK)


def _documents(scratch: Path, theme: Literal["light", "dark"]) -> Iterator[tuple[str, str, str]]:
    program = wired("simplified_moe")
    run = simulate(program, log_dir=scratch).log_dir
    assert run is not None
    plan = elaborate(program)
    yield "graph", "svg", svg(picture_of(plan, shares=shares_of_run(Path(run), plan)))
    stuck = simulate(CASES["pack_rows"].build()).deadlock
    yield "deadlock", "svg", svg(deadlock_picture(msgspec.convert(stuck, DeadlockReport)))
    yield "notebook", "html", page(nbformat.read(TOUR, as_version=4), theme)


def draw_run_page(folder: Path, browser: Browser) -> None:
    parameters = ("model=qwen3-30b-a3b", f"routing={_ROUTING}")
    layer = load_program("programs/moe.py", parameters, Hardware()).program
    with tempfile.TemporaryDirectory() as scratch:
        _, trace = record(layer, Path(scratch))
        for theme in _THEMES:
            shown = Shown(
                browser, trace, Path(scratch),
                color_scheme=theme, viewport={"width": 1200, "height": 860},
            )  # fmt: skip
            shown.page.mouse.click(*shown.point(_UNIT, _CYCLE))
            shown.page.fill("#search", "")
            shown.page.click("#zoom-in")
            shown.page.evaluate("window.scrollTo(0, 0)")
            shown.settle()
            shown.page.screenshot(path=folder / f"run-page-{theme}.png")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    with browsing() as chromium:
        draw(IMAGES, chromium)
        draw_run_page(IMAGES, chromium)

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from fabric.analysis.trace.pages.page import write_page
from tests.fabric.trace.page_data import page_data

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from fabric.analysis.trace.opened import Trace


_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_GUTTER: Final = 210
_RIGHT: Final = 14
LANE: Final = 17


@contextmanager
def browsing() -> Iterator[Browser]:
    driver = pytest.importorskip("playwright.sync_api", reason="no playwright")
    executable = next(filter(None, map(shutil.which, _NAMES)), None)
    if executable is None:
        pytest.skip("no browser: chromium is not installed")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


class Opened:
    """A file in a browser, with its troubles: console messages, errors, requests to hosts."""

    def __init__(self, browser: Browser, file: Path, **settings: Any) -> None:
        self.troubles: Final[list[str]] = []
        settings = {"viewport": {"width": 1300, "height": 900}} | settings
        self.page: Final[Page] = browser.new_page(**settings)
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self.troubles.append(dialog.message))
        self.page.on("request", lambda request: self._requested(request.url, file.as_uri()))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("body.drawn")
        self.settle()

    def _requested(self, address: str, own: str) -> None:
        if address != own and not address.startswith("data:"):
            self.troubles.append(address)

    def settle(self) -> None:
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )


class Shown(Opened):
    def __init__(self, browser: Browser, trace: Trace, folder: Path, **settings: Any) -> None:
        file = folder / "run.html"
        write_page(trace, file)
        self.text: Final = file.read_text(encoding="utf-8")
        self.data: Final = page_data(self.text)
        super().__init__(browser, file, **settings)

    def read(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def rows(self, selector: str) -> list[list[str]]:
        return [
            row.locator("td").all_inner_texts()
            for row in self.page.locator(f"{selector} tbody tr").all()
        ]

    @property
    def range(self) -> tuple[int, int]:
        match = re.search(r"cycles ([\d,]+) to ([\d,]+)", self.read("#range"))
        assert match is not None
        return _number(match[1]), _number(match[2])

    @property
    def units(self) -> list[str]:
        return [self.data["units"]["name"][unit] for unit in self.data["units"]["ranked"]]

    def point(self, unit: str, cycle: float) -> tuple[float, float]:
        """Search for the unit, which gives it its own row, and return a point in this row."""
        self.page.fill("#search", unit)
        self.settle()
        units = self.data["units"]
        texts = zip(units["name"], units["operator"], units["place"], strict=True)
        matching = {name for name, *rest in texts if unit in " ".join((name, *rest))}
        row = [each for each in self.units if each in matching].index(unit)
        return self.x("#lanes", cycle), self.top("#lanes") + LANE * (row + 0.5)

    def x(self, place: str, cycle: float) -> float:
        self.page.eval_on_selector(place, "(it) => it.scrollIntoView({ block: 'center' })")
        left, width = self.page.eval_on_selector(
            place, "(it) => [it.getBoundingClientRect().left, it.clientWidth]"
        )
        first, last = self.range
        return float(left + _GUTTER + (width - _GUTTER - _RIGHT) * (cycle - first) / (last - first))

    def top(self, place: str) -> float:
        return float(self.page.eval_on_selector(place, "(it) => it.getBoundingClientRect().top"))

    def hover(self, x: float, y: float) -> list[str]:
        self.page.mouse.move(x - 1, y)
        self.page.mouse.move(x, y)
        self.settle()
        return self.read("#tip").splitlines() if self.page.locator("#tip").is_visible() else []

    def choose(self, unit: str) -> None:
        self.page.fill("#search", unit)
        self.page.press("#search", "Enter")
        self.settle()


def _number(text: str) -> int:
    return int(text.replace(",", ""))

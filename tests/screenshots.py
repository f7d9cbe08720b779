"""Takes the documentation's screenshots: ``poe screenshots``, which needs chromium.

In ``docs/pages/images``, ``run-page-light.png`` and ``run-page-dark.png`` are the page of Qwen's
layer, a unit chosen.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from fabric import Hardware
from fabric.shell.loader import load_program
from tests.fabric.trace.browsing import Shown, browsing
from tests.fabric.trace.recording import record

_IMAGES: Final = Path(__file__).parents[1] / "docs" / "pages" / "images"
_ROUTING: Final = "programs/data/traces/expert_routing/qwen_b64/032_012.npz"
_UNIT: Final = "up_104"
_CYCLE: Final = 400_000


def main() -> None:
    """Run the layer, open its page in both themes, and take them."""
    _IMAGES.mkdir(parents=True, exist_ok=True)
    given = ("model=qwen3-30b-a3b", f"routing={_ROUTING}")
    wired = load_program("programs/moe.py", given, Hardware()).program
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        _, trace = record(wired, Path(folder))
        for theme in ("light", "dark"):
            shown = Shown(
                browser, trace, Path(folder),
                color_scheme=theme, viewport={"width": 1200, "height": 1300},
            )  # fmt: skip
            shown.page.mouse.click(*shown.point(_UNIT, _CYCLE))
            shown.page.click("#zoom-in")
            shown.page.evaluate("window.scrollTo(0, 0)")
            shown.settle()
            shown.page.screenshot(path=_IMAGES / f"run-page-{theme}.png")


if __name__ == "__main__":
    main()

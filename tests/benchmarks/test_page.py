from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any, Final

import pytest

from fabric import Program, Trace
from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.analysis.trace.pages.page import write_page
from tests.fabric.scripted import Charge, Stage, Ticks
from tests.fabric.trace.browsing import Shown, browsing
from tests.fabric.trace.recording import record

pytestmark = pytest.mark.benchmark

_ELEMENTS: Final = 18_000
_ROWS: Final = 8
_STAGES: Final = 6
_FRAMES: Final = 40

_ZOOM: Final = """
(frames) => new Promise((done) => {
  const times = [];
  const canvas = document.querySelector("#lanes canvas");
  const { left, top } = canvas.getBoundingClientRect();
  const next = () => {
    const start = performance.now();
    const deltaY = times.length % 20 < 10 ? -120 : 120;
    const at = { clientX: left + 600, clientY: top + 50 };
    const turned = { deltaY, ctrlKey: true, cancelable: true, ...at };
    canvas.dispatchEvent(new WheelEvent("wheel", turned));
    requestAnimationFrame(() => setTimeout(() => {
      times.push(performance.now() - start);
      if (times.length < frames) next();
      else done(times.sort((a, b) => a - b));
    }));
  };
  next();
})
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    numbers = random.Random(1)
    with Program("million", channel_depth=16) as wired:
        for _ in range(_ROWS):
            stream = Ticks(_ELEMENTS)()
            for _ in range(_STAGES):
                work = tuple(numbers.choice((1, 1, 2, 3, 9, 40)) for _ in range(_ELEMENTS))
                (stream,) = Stage(_ELEMENTS, work_cycles=work)(stream)
            Charge()(stream)
    _, found = record(wired, tmp_path_factory.mktemp("run"))
    assert found.rows("SELECT count(*) FROM transfers") == [(_ROWS * (_STAGES + 1) * _ELEMENTS,)]
    return found


def test_page_of_a_million_transfers_is_written_in_time(
    benchmark: Any, trace: Trace, tmp_path: Path
) -> None:
    start = time.process_time()
    Accounts(trace)
    figures = time.process_time() - start
    start = time.process_time()
    write_page(trace, tmp_path / "run.html")
    written = time.process_time() - start
    size = (tmp_path / "run.html").stat().st_size
    print(f"\n{written:.1f} s, of which figures {figures:.1f} s; {size:,} bytes")
    benchmark.pedantic(lambda: None, rounds=1)

    assert size < 2_000_000
    assert benchmark.disabled or written < 3 * figures


def test_wheel_step_is_drawn_in_a_fifth_of_the_opening(
    benchmark: Any, trace: Trace, tmp_path: Path
) -> None:
    with browsing() as browser:
        shown = Shown(browser, trace, tmp_path)
        opened = shown.page.evaluate("performance.now()")
        times = shown.page.evaluate(_ZOOM, _FRAMES)
    median = times[_FRAMES // 2]
    print(f"\nopened in {opened:.0f} ms; a frame takes {median:.0f} ms, at most {times[-1]:.0f}")
    benchmark.pedantic(lambda: None, rounds=1)

    assert benchmark.disabled or median < opened / 5

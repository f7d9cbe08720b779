from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("modules", "stays"),
    [("numpy, greenlet, structlog", True), ("numpy, duckdb", False)],
)
def test_garbage_is_frozen_unless_duckdb_is_loaded(modules: str, *, stays: bool) -> None:
    script = (
        f"import gc, {modules}\n"
        "from fabric.graph.wiring.collector import everything_stays\n"
        "before = gc.get_freeze_count()\n"
        "everything_stays()\n"
        "print(gc.get_freeze_count() > before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )

    assert (f"{stays}\n", "") == (done.stdout, done.stderr)

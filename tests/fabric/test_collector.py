"""What the garbage collector is told to leave alone when a command ends."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("modules", "stays"),
    [("numpy, ml_dtypes, msgspec", True), ("greenlet, structlog", True), ("numpy, duckdb", False)],
)
def test_modules_that_count_what_is_left(modules: str, *, stays: bool) -> None:
    """Nothing is left alone where an extension module may complain of it: DuckDB does."""
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

"""Writing a deadlock into the run's folder: the data, and pictures of who waits for whom."""

from __future__ import annotations

import json
from pathlib import Path

from fabric.deadlock.document import DeadlockReport
from fabric.deadlock.picture import dot, svg
from fabric.telling.whole_file import write_whole

__all__ = ["write_files"]


def write_files(folder: Path, report: DeadlockReport) -> list[str]:
    """Write the report and its pictures; return a sentence for each that could not be."""
    texts = {
        "deadlock.json": json.dumps(report.as_json(), indent=2) + "\n",
        "deadlock.dot": dot(report),
        "deadlock.svg": svg(report),
    }
    failed = []
    for name, text in texts.items():
        try:
            write_whole(folder / name, text)
        except OSError as error:
            failed.append(f"{folder / name} could not be written: {error.strerror}")
    return failed

"""Writing a deadlock into the run's folder: the data, and pictures of who waits for whom."""

from __future__ import annotations

import json
from pathlib import Path

from fabric.deadlock.document import DeadlockReport
from fabric.deadlock.picture import dot, svg

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
        beside = folder / f"{name}.tmp"
        try:
            # What was written before stays until there is all of it.
            beside.write_text(text, encoding="utf-8")
            beside.replace(folder / name)
        except OSError as error:
            beside.unlink(missing_ok=True)
            failed.append(f"{folder / name} could not be written: {error.strerror}")
    return failed

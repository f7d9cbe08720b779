"""The tables and traces in ``programs/data``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final


def _programs() -> Path:
    """Return the folder of the programs, relative to the current folder if it is within it.

    So results do not contain the paths of a machine.
    """
    folder = Path(__file__).resolve().parents[2]
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


PROGRAMS: Final = _programs()
_DATA: Final = PROGRAMS / "data"


def rows(table: str) -> list[dict[str, str]]:
    with (_DATA / "published" / table).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def routing(trace: str) -> str:
    return str(_DATA / "traces/expert_routing" / trace)


def cache_lengths(trace: str) -> str:
    return str(_DATA / "traces/kv_lengths" / trace)

"""The objects of ``run --json`` and ``check --json``, also where little is known."""

from __future__ import annotations

from typing import Final

__all__ = ["check_object", "run_object"]

_CHECK_FIELDS: Final = (
    "program",
    "parameters",
    "hardware",
    "status",
    "operators",
    "metrics",
    "free_symbols",
    "sizes",
    "layout",
    "warnings",
    "error",
)


def run_object(**known: object) -> dict[str, object]:
    """Return the object of ``run --json`` with the fields that are known, the others None."""
    # Help, and most that goes wrong, need no report.
    from fabric.runs.report import Report

    return dict.fromkeys(Report(program="").as_json()) | known


def check_object(**known: object) -> dict[str, object]:
    """Return the object of ``check --json`` with the fields that are known, the others None."""
    return dict.fromkeys(_CHECK_FIELDS) | known

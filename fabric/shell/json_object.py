"""The one JSON object on standard output that a command with ``--json`` ends with."""

from __future__ import annotations

from typing import Final

from fabric.messages.output import print_text
from fabric.messages.text import json_text
from fabric.timing.machine.terminations import uninterrupted

_objects: Final[list[str]] = []
"""What was printed since ``one_object`` was called last."""


def one_object() -> None:
    """Let the next JSON object be printed, and none after it."""
    _objects.clear()


def print_json(value: dict[str, object]) -> None:
    """Print one JSON object.

    Signals are delayed until it is printed; a second signal ends the command.
    """
    text = json_text(value)
    if not _objects:
        _objects.append(text)
        with uninterrupted(second_ends=True):
            print_text(text)


_CHECK_FIELDS: Final = (
    "program",
    "parameters",
    "hardware",
    "status",
    "operators",
    "metrics",
    "free_symbols",
    "sizes",
    "memory_map",
    "warnings",
    "error",
)


_STUDY_FIELDS: Final = (
    "study",
    "question",
    "minimize",
    "where",
    "points",
    "pareto",
    "counts",
    "tables",
    "known",
    "claims",
    "wall_seconds",
    "status",
    "error",
)


_RTL_FIELDS: Final = (
    "program",
    "parameters",
    "hardware",
    "status",
    "modules",
    "units",
    "equal",
    "transfers",
    "channels",
    "cycles",
    "first_difference",
    "cost",
    "error",
)


_SIZE_FIELDS: Final = (
    "program",
    "status",
    "goal",
    "method",
    "objective",
    "depths",
    "hops",
    "bytes",
    "bytes_before",
    "cost",
    "cost_before",
    "lower_bound",
    "lower_bound_bytes",
    "truth",
    "keeps",
    "reasons",
    "input",
    "cycles",
    "cycles_before",
    "cycles_unbounded",
    "evaluations",
    "runs",
    "repeats",
    "settled",
    "channels",
    "inputs",
    "held_out",
    "methods",
    "error",
)


_PLACE_FIELDS: Final = (
    "program",
    "parameters",
    "hardware",
    "status",
    "name",
    "columns",
    "rows",
    "units_per_site",
    "site_bytes",
    "seed",
    "method",
    "proven",
    "cost_bytes",
    "byte_hops",
    "worst_link_bytes",
    "random_cost_bytes",
    "lower_bound_bytes",
    "lower_bound_byte_hops",
    "lower_bound_worst_link_bytes",
    "unknown_channels",
    "worst_link",
    "units",
    "error",
)


_SERVE_FIELDS: Final = ("serving", "question", "status", "error", "notes", "designs")


def place_object(**known: object) -> dict[str, object]:
    """Return the object of ``place --json``; unknown fields are None."""
    return dict.fromkeys(_PLACE_FIELDS) | known


def serve_object(**known: object) -> dict[str, object]:
    """Return the object of ``serve --json`` without results."""
    return dict.fromkeys(_SERVE_FIELDS) | known


def size_object(**known: object) -> dict[str, object]:
    """Return the object of ``size --json``; unknown fields are None."""
    return dict.fromkeys(_SIZE_FIELDS) | known


def rtl_object(**known: object) -> dict[str, object]:
    """Return the object of ``rtl --json``; unknown fields are None."""
    return dict.fromkeys(_RTL_FIELDS) | known


def study_object(**known: object) -> dict[str, object]:
    """Return the object of ``study --json`` without results."""
    return dict.fromkeys(_STUDY_FIELDS) | known


def run_object(**known: object) -> dict[str, object]:
    """Return the object of ``run --json``; unknown fields are None."""
    # Help and most errors need no report.
    from fabric.runs.report import Report

    return dict.fromkeys(Report(program="").as_json()) | known


def check_object(**known: object) -> dict[str, object]:
    """Return the object of ``check --json``; unknown fields are None."""
    return dict.fromkeys(_CHECK_FIELDS) | known

"""The single JSON object that a command with ``--json`` prints on standard output."""

from __future__ import annotations

from typing import Final

from fabric.messages.output import print_text
from fabric.messages.text import json_text
from fabric.timing.machine.terminations import uninterrupted

_objects: Final[list[str]] = []
"""The object printed since the last call of ``one_object``."""


def one_object() -> None:
    """Allow ``print_json`` to print its next object; later objects are dropped."""
    _objects.clear()


def print_json(value: dict[str, object]) -> None:
    """Print a JSON object.

    Signals are deferred until the object is printed; a second signal ends the command.
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
    """Return the object of ``place --json``; missing fields are null."""
    return dict.fromkeys(_PLACE_FIELDS) | known


def serve_object(**known: object) -> dict[str, object]:
    """Return the object of ``serve --json`` without results."""
    return dict.fromkeys(_SERVE_FIELDS) | known


def size_object(**known: object) -> dict[str, object]:
    """Return the object of ``size --json``; missing fields are null."""
    return dict.fromkeys(_SIZE_FIELDS) | known


def rtl_object(**known: object) -> dict[str, object]:
    """Return the object of ``rtl --json``; missing fields are null."""
    return dict.fromkeys(_RTL_FIELDS) | known


def study_object(**known: object) -> dict[str, object]:
    """Return the object of ``study --json`` without results."""
    return dict.fromkeys(_STUDY_FIELDS) | known


def run_object(**known: object) -> dict[str, object]:
    """Return the object of ``run --json``; missing fields are null."""
    # Help and most errors need no report.
    from fabric.runs.report import Report

    return dict.fromkeys(Report(program="").as_json()) | known


def check_object(**known: object) -> dict[str, object]:
    """Return the object of ``check --json``; missing fields are null."""
    return dict.fromkeys(_CHECK_FIELDS) | known

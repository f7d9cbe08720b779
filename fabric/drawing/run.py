"""Where the cycles of a finished run went, from the counters in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from fabric.drawing.picture import Shares
from fabric.telling.causes import SHOWN, Cause
from fabric.telling.errors import ConfigurationError
from fabric.wiring.elaborate import Plan

__all__ = ["shares_of_run"]


def shares_of_run(folder: Path, plan: Plan) -> dict[str, Shares]:
    """Return the shares of each operator of ``plan`` by name.

    Raises:
        ConfigurationError: the folder has no counters, or those of another program.
    """
    file = folder / "counters.json"
    try:
        units = json.loads(file.read_text(encoding="utf-8"))["units"]
    except OSError as error:
        raise ConfigurationError(
            f"--run {folder}: {error.strerror or error}: expected the folder of a finished run",
            file=str(file),
        ) from None
    except (ValueError, KeyError, TypeError):
        raise ConfigurationError(
            f"--run {folder}: not the counters of a run: expected what `run` writes",
            file=str(file),
        ) from None
    by_name = {unit["name"]: unit for unit in units}
    for node in plan.nodes:
        if node.name not in by_name:
            raise ConfigurationError(
                f"--run {folder}: the run has no operator {node.name}: expected a run of this "
                "program with the same parameters",
                file=str(file),
            )
    return {node.name: _shares(by_name[node.name]) for node in plan.nodes}


def _shares(unit: Mapping[str, int]) -> Shares:
    cycles = {cause: unit[cause.column] for cause in SHOWN}
    cycles[Cause.FULL] += unit[Cause.CREDIT.column]
    whole = sum(cycles.values()) or 1
    return {cause: value / whole for cause, value in cycles.items()}

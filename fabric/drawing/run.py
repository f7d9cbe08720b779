"""Where the cycles of a finished run went, from the counters in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from fabric.drawing.picture import Shares
from fabric.telling.causes import SHOWN, Cause
from fabric.telling.errors import ConfigurationError
from fabric.telling.read_files import read_json
from fabric.wiring.elaborate import Plan

__all__ = ["shares_of_run"]

_Cycles = Annotated[int, msgspec.Meta(ge=0)]


class _Unit(msgspec.Struct, frozen=True):
    """What is drawn of a unit."""

    name: str
    busy_cycles: _Cycles
    empty_cycles: _Cycles
    full_cycles: _Cycles
    credit_cycles: _Cycles
    hbm_cycles: _Cycles
    capacity_cycles: _Cycles
    idle_cycles: _Cycles


def shares_of_run(folder: Path, plan: Plan) -> dict[str, Shares]:
    """Return the shares of each operator of ``plan`` by name.

    Raises:
        ConfigurationError: the folder has no counters, or those of another program.
    """
    file = folder / "counters.json"
    try:
        units = msgspec.convert(read_json(file)["units"], list[_Unit])
    except OSError as error:
        raise ConfigurationError(
            f"--run {folder}: {error.strerror or error}: expected the folder of a finished run",
            file=str(file),
        ) from None
    except (ValueError, KeyError):
        raise ConfigurationError(
            f"--run {folder}: not the counters of a run: expected what `run` writes",
            file=str(file),
        ) from None
    by_name = {unit.name: _shares(unit) for unit in units}
    for node in plan.nodes:
        if node.name not in by_name:
            raise ConfigurationError(
                f"--run {folder}: the run has no operator {node.name}: expected a run of this "
                "program with the same parameters",
                file=str(file),
            )
    return {node.name: by_name[node.name] for node in plan.nodes}


def _shares(unit: _Unit) -> Shares:
    cycles: dict[Cause, int] = {cause: getattr(unit, cause.column) for cause in SHOWN}
    cycles[Cause.FULL] += unit.credit_cycles
    whole = sum(cycles.values()) or 1
    return {cause: value / whole for cause, value in cycles.items()}

"""Wired programs for tests of the symbolic frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fabric import Program
from fabric.analysis.symbolic.metrics import Metrics, metrics_of
from fabric.analysis.symbolic.substitution import Substitution, followed
from fabric.graph.hardware.file import load_hardware
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.elaborate import elaborate

PROGRAMS = Path(__file__).parents[2] / "programs"


def wired(program: str, hardware: str = "paper", **parameters: Any) -> Program:
    described = load_hardware(PROGRAMS / "hardware" / f"{hardware}.toml")
    given = [f"{name}={value}" for name, value in parameters.items()]
    return load_program(PROGRAMS / f"{program}.py", given, described).program


def data_metrics(program: Program) -> Metrics:
    return metrics_of(elaborate(program), Substitution(followed(program.sizes, program)))

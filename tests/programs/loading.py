"""Programs of ``programs/``, loaded as the command line loads them."""

from __future__ import annotations

from pathlib import Path

from fabric import Hardware, Program
from fabric.graph.hardware.file import load_hardware
from fabric.graph.loading.program_file import load_program

PROGRAMS = Path(__file__).parents[2] / "programs"
DATA = PROGRAMS / "data"
REGISTERED = load_hardware(PROGRAMS / "hardware" / "registered.toml")
OF_TORCH = {"own_module", "torch_model"}
"""Programs that need the extra torch, tested in ``tests/torch``."""


def program(name: str, hardware: str | None = None, **parameters: object) -> Program:
    described = Hardware()
    if hardware is not None:
        described = load_hardware(PROGRAMS / "hardware" / hardware)
    words = [f"{key}={value}" for key, value in parameters.items()]
    return load_program(PROGRAMS / f"{name}.py", words, described).program

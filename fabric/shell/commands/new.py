"""``new``: write a first program and its test."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

import click

from fabric.messages.files import output_file

_TAKEN: Final = frozenset({*sys.stdlib_module_names, "fabric", "operators", "conftest"})
"""Modules that a file of the same name would hide."""

_PROGRAM: Final = '''\
"""{module}: a matrix is loaded tile by tile, every tile goes through SiLU, and is stored.

Run:   python -m fabric run {module}.py -p rows=128
Test:  python -m pytest test_{module}.py
"""

from __future__ import annotations

import numpy as np

from fabric import Program
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU


def build(rows: int = 64, seed: int = 0) -> Program:
    """Wire the program; `run -p NAME=VALUE` sets its parameters."""
    x = np.random.default_rng(seed).standard_normal((rows, 64))
    with Program("{module}", mode="functional") as program:
        tiles = LinearOffChipLoad(x, tile=(16, 64))()  # [1, rows/16, 1] of 16x64
        LinearOffChipStore("y")(Map(SiLU())(tiles))
    program.expect(y=lambda: x / (1 + np.exp(-x)))
    return program
'''

_TEST: Final = '''\
"""Tests of the program; if a test fails, step_report shows its runs."""

from __future__ import annotations

from fabric import assert_completes
from {module} import build


def test_it_completes() -> None:
    """The output is right; otherwise the error names the wrong place or the deadlock."""
    report = assert_completes(build(), mode="functional")
    assert report.verified


def test_twice_the_rows(step_report) -> None:
    """Twice the rows are twice the traffic."""
    one, two = (step_report(build(rows=rows), mode="timing") for rows in (64, 128))
    assert two.off_chip_traffic_bytes == 2 * one.off_chip_traffic_bytes
'''


@click.command("new")
@click.argument("name", metavar="NAME")
def command(name: str) -> int:
    """Write NAME.py, a first program, and test_NAME.py, its test, into this folder."""
    module = _module(name)
    files = {
        Path(f"{module}.py"): _PROGRAM.format(module=module),
        Path(f"test_{module}.py"): _TEST.format(module=module),
    }
    there = [str(file) for file in files if file.exists() or file.is_symlink()]
    if there:
        are = "is" if len(there) == 1 else "are"
        raise click.UsageError(f"{' and '.join(there)} {are} here already: expected another name.")
    for file, text in files.items():
        # Mode x never overwrites a file of another process.
        with output_file(file, "x", encoding="utf-8") as written:
            written.write(text)
    if module != name.removesuffix(".py"):
        click.echo(f"{name!r} is not a name of a module: it is called {module}")
    first = "" if importlib.util.find_spec("pytest") else "  (after pip install pytest)"
    click.echo(
        f"wrote {' and '.join(map(str, files))}; now:\n"
        f"  python -m fabric run {module}.py\n"
        f"  python -m pytest test_{module}.py{first}"
    )
    return 0


def _module(name: str) -> str:
    module = re.sub(r"[-\s]+", "_", name.strip().removesuffix(".py"))
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", module) or keyword.iskeyword(module):
        raise click.BadParameter(
            f"{name!r}: expected a name of letters, digits and _ that begins with a letter, "
            "such as first_program, and is not a keyword of Python.",
            param_hint="NAME",
        )
    taken = module.lower() in {each.lower() for each in _TAKEN}
    if taken or _is_installed(module) or _is_installed(module.lower()):
        raise click.BadParameter(
            f"{name!r}: {module}.py would hide the module {module}: expected another name.",
            param_hint="NAME",
        )
    return module


def _is_installed(module: str) -> bool:
    here = Path.cwd()
    spec = PathFinder.find_spec(module, [p for p in sys.path if Path(p).absolute() != here])
    # A folder without __init__.py has no origin, and is not imported by name.
    return spec is not None and spec.origin is not None

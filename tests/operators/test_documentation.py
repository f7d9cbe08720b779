"""Operators in ``help`` and in ``fabric operators``, with their examples."""

from __future__ import annotations

import contextlib
import doctest
import io
from pathlib import Path
from typing import Any

import pytest

import fabric
import fabric.extend
import operators
from fabric.extend import Operator
from fabric.shell import library
from fabric.shell.cli import main
from operators import Function, Reduction, Split

ENTRIES = {each.name: each for each in library.installed()}
TABLES = {
    "Off-chip memory (Table 3)": 4,
    "On-chip memory (Table 4)": 2,
    "Higher-order (Table 5)": 4,
    "Routing and merging (Table 6)": 3,
    "Shape (Table 7)": 6,
}
"""The number of operators in each of the paper's tables; Repeat is the static Expand."""

OWN = '''
from dataclasses import dataclass
from fabric.extend import Operator
from operators import Accum, Function

class Silent(Operator):
    def __call__(self, source): return self.wire(source)[0]
    def infer(self, wiring, source): return (source.type,)
    def costs(self, inputs, outputs): ...
    async def run(self, ports): ...

@dataclass(frozen=True)
class Clip(Function):
    """Limit [bold]every[/bold] number; ``limit`` is kept.

    Attributes:
        limit: the largest.
    """
    limit: float = 0.5
    def infer(self, x): return x
    def flops(self, x): return 1
    def apply(self, x): return x

class _Hidden(Silent): ...
'''


def test_list_has_every_public_operator_and_function() -> None:
    kinds = (Operator, Function, Reduction, Split)
    offered = {
        name
        for module in (fabric, fabric.extend, operators)
        for name in module.__all__
        if isinstance(each := getattr(module, name), type) and issubclass(each, kinds)
    }
    assert offered - set(ENTRIES) == {"Operator", "ComputeOperator", *(k.__name__ for k in kinds)}
    assert set(ENTRIES) <= offered


def test_tables_of_the_paper_come_first() -> None:
    found = {family: len(group) for family, group in library.families(ENTRIES.values()).items()}

    assert list(TABLES.items()) == list(found.items())[:5]
    assert not [family for family in list(found)[5:] if "Table" in family]


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
def test_example_prints_what_it_says(entry: library.Entry) -> None:
    text = entry.text.sections["Example"]
    names: dict[str, Any] = {}
    printed = io.StringIO()
    assert entry.example is not None
    with contextlib.redirect_stdout(printed):
        exec(compile(entry.example, f"{entry.name}.py", "exec"), names)
    said = "".join(each.want for each in doctest.DocTestParser().get_examples(text))
    assert said == printed.getvalue() != ""
    assert [] == [line for line in entry.example.splitlines() if len(line) > 100]


def test_command_prints_named_operators(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["operators", "map", "Zip"])
    out = capsys.readouterr().out

    assert out.startswith("Map(function: Function, to_memory: bool = False, *, name: str | None")
    for title in ("shapes", "parameters", "example"):
        assert 2 == out.count(f"\n{title}\n") or title == "parameters"
    assert "\n\nZip(*, name" in out
    assert "flops_per_cycle  an integer of at least 1 or None, by default None; compute" in out


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Mapp", "did you mean Map?"),
        ("OffChipLoad", "did you mean RandomOffChipLoad, LinearOffChipLoad"),
        ("concat", "see python -m fabric operators"),
        ("maxima", "did you mean Maximum"),
    ],
)
def test_command_with_unknown_name_hints(
    name: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["operators", name])
    errors = capsys.readouterr().err

    assert errors.startswith(f"fabric: {name}: there is no operator or function of that name: ")
    assert hint in errors


def test_command_prints_operators_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN, encoding="utf-8")
    assert 0 == main(["operators", str(file)])
    assert (
        "Beyond the paper's tables\n  Silent\n\n"
        "Functions of Map\n  Clip  Limit [bold]every[/bold] number; `limit` is kept.\n"
    ) == capsys.readouterr().out
    assert 0 == main(["operators", str(file), "Clip"])
    assert (
        f"Clip(limit: float = 0.5)\nFunctions of Map: {file}\n\n"
        "Limit [bold]every[/bold] number; `limit` is kept.\n\n"
        "parameters\n  limit  a number, by default 0.5; the largest.\n"
    ) == capsys.readouterr().out
    assert 2 == main(["operators", str(file), "Map"])

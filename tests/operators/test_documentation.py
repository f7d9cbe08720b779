"""What is said of each operator: in its docstring, by ``help`` and by the command line."""

from __future__ import annotations

import contextlib
import doctest
import io
import pydoc
from abc import ABC
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import fabric
import fabric.extend
import operators
from fabric import ProgramError
from fabric.extend import Operator
from fabric.graph.arguments.keywords import (
    Documentation,
    Parameter,
    documentation,
    entries,
    meanings,
    script,
)
from fabric.graph.wiring.operator import is_conducted
from fabric.shell.cli import main
from fabric.shell.library import (
    Entry,
    families,
    found,
    installed,
    parameter_text,
    print_families,
)
from operators import Function, Map, Reduction, Split

ENTRIES = {each.name: each for each in installed()}
TABLES = {
    "Off-chip memory (Table 3)": 4,
    "On-chip memory (Table 4)": 2,
    "Higher-order (Table 5)": 4,
    "Routing and merging (Table 6)": 3,
    "Shape (Table 7)": 6,
}
"""The paper's tables, with how many operators stand in each; Repeat is the static Expand."""

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


def test_every_one() -> None:
    """Whatever the packages offer that programs are made of stands in the list."""
    kinds = (Operator, Function, Reduction, Split)
    offered = {
        name
        for module in (fabric, fabric.extend, operators)
        for name in module.__all__
        if isinstance(each := getattr(module, name), type) and issubclass(each, kinds)
    }
    assert offered - set(ENTRIES) == {"Operator", "ComputeOperator", *(k.__name__ for k in kinds)}
    assert set(ENTRIES) <= offered


def test_families() -> None:
    """The five tables come first, in the paper's order; nobody else says that they are in one."""
    found = {family: len(group) for family, group in families(ENTRIES.values()).items()}

    assert list(TABLES.items()) == list(found.items())[:5]
    assert not [family for family in list(found)[5:] if "Table" in family]


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
def test_example(entry: Entry) -> None:
    text = entry.text.sections["Example"]
    names: dict[str, Any] = {}
    printed = io.StringIO()
    assert entry.example is not None
    with contextlib.redirect_stdout(printed):
        exec(compile(entry.example, f"{entry.name}.py", "exec"), names)
    said = "".join(each.want for each in doctest.DocTestParser().get_examples(text))
    assert said == printed.getvalue() != ""
    assert [] == [line for line in entry.example.splitlines() if len(line) > 100]


@pytest.mark.parametrize("name", ENTRIES)
def test_help(name: str) -> None:
    """``help`` shows the docstring and how to call it, not what a dataclass has."""
    cls = ENTRIES[name].cls
    shown = pydoc.plain(pydoc.render_doc(cls))

    assert "Example:" in shown
    assert issubclass(cls, Operator) is ("__call__(self" in shown)
    for hidden in ("__eq__", "__dataclass", "__match_args__", "infer(", "is_users", "Annotated["):
        assert hidden not in shown


def test_help_of_bases() -> None:
    """Who writes an operator is shown what there is to define and to use."""
    shown = pydoc.plain(pydoc.render_doc(Operator))

    for wanted in ("infer(self", "costs(self", "run(self", "wire(self", "conducted = False"):
        assert wanted in shown
    assert "__dataclass_fields__" not in shown


@dataclass(frozen=True)
class _Abstract(Map, ABC):
    """An operator that is an abstract class, too."""


def test_abstract_classes() -> None:
    """An operator may be one of Python's abstract classes besides, and is conducted as before."""
    assert is_conducted(_Abstract)
    assert "__call__(self" in pydoc.plain(pydoc.render_doc(_Abstract))


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name, all are listed by family."""
    assert 0 == main(["operators"])
    out = capsys.readouterr().out

    for name in ENTRIES:
        assert f"\n  {name} " in out
    assert out.startswith("Off-chip memory (Table 3)\n  LinearOffChipLoad ")


def test_one(capsys: pytest.CaptureFixture[str]) -> None:
    """With names, in capitals or not, each is told in full."""
    assert 0 == main(["operators", "map", "Zip"])
    out = capsys.readouterr().out

    assert out.startswith("Map(function: Function, to_memory: bool = False, *, name: str | None")
    for title in ("shapes", "timing", "memory", "parameters", "example"):
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
def test_unknown(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is not there is a mistake; those near it are named."""
    assert 2 == main(["operators", name])
    told = capsys.readouterr().err

    assert told.startswith(f"fabric: {name}: there is no operator or function of that name: ")
    assert hint in told


def test_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of a user's file are told the same way, as far as they say anything."""
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


def test_nothing_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file without any is a mistake."""
    file = tmp_path / "empty.py"
    file.write_text("from operators import Map", encoding="utf-8")
    assert 2 == main(["operators", str(file)])
    assert f"fabric: {file}: defines no operator and no function\n" == capsys.readouterr().err


def test_narrow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On 40 columns texts are broken between words; examples are not."""
    monkeypatch.setenv("COLUMNS", "40")
    assert 0 == main(["operators", "RandomOffChipStore"])
    told, _, example = capsys.readouterr().out.partition("\nexample\n")

    assert [] == [line for line in told.splitlines()[2:] if len(line) > 40]
    assert "  import numpy as np\n" in example


def _made(name: str, family: str, summary: str) -> Entry:
    """Return an entry of a class that has a name and a family."""
    kind: Any = type(name, (), {"__doc__": f"{summary}\n\nFamily:\n    {family}.\n"})
    return Entry(kind, Documentation(summary, "", {"Family": family}))


class TestPrinted:
    """What ``operators`` prints, of entries that are made here."""

    def test_hints(self) -> None:
        """Names that are near come first, then those that say it; five at most."""
        entries = [_made(f"Tile{letter}", "F", "Cut into tiles.") for letter in "ABCDEFG"]
        entries.append(_made("Sum", "F", "Add."))
        with pytest.raises(ProgramError) as caught:
            found("cut", entries)
        five = ", ".join(f"Tile{letter}" for letter in "ABCDE")
        assert caught.value.message == (
            f"cut: there is no operator or function of that name: did you mean {five}?"
        )
        with pytest.raises(ProgramError, match=r"did you mean Sum\?$"):
            found("sun", entries)
        with pytest.raises(ProgramError, match="did you mean TileG, "):
            found("tileg_", entries)
        assert entries[-1] is found("SUM", entries)
        entries.append(_made("AddAllUp", "F", "Of everything one."))
        with pytest.raises(ProgramError, match=r"did you mean AddAllUp\?$"):
            found("llu", entries)

    @pytest.mark.parametrize(
        ("width", "said"),
        [(33, ["  {}  Does it, `x`."]), (32, ["  {}", "    Does it, `x`."])],
    )
    def test_list(self, width: int, said: list[str]) -> None:
        """Tables by their numbers, then the others; texts below where there is no room beside."""
        entries = [
            _made(f"Same{letter}", family, "Does it, ``x``.")
            for letter, family in (
                ("D", "Other"), ("C", "F (Table 12)"), ("B", "F (Table 3)"), ("A", "F (Table 3)"),
            )
        ]  # fmt: skip
        console = Console(file=io.StringIO(), width=width)
        print_families(entries, console)
        assert isinstance(console.file, io.StringIO)
        rows = {letter: [line.format(f"Same{letter}") for line in said] for letter in "ABCD"}
        assert console.file.getvalue().splitlines() == [
            "F (Table 3)", *rows["A"], *rows["B"], "",
            "F (Table 12)", *rows["C"], "",
            "Other", *rows["D"],
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("kind", "default", "meaning", "said"),
        [
            ("a number", None, "", "a number"),
            ("a number", "3", "how many", "a number, by default 3; how many"),
            ("anything", None, "what it is", "what it is"),
            ("anything", "None", "what it is", "what it is, by default None"),
            ("anything", "1", "", "anything, by default 1"),
        ],
    )
    def test_parameters(self, kind: str, default: str | None, meaning: str, said: str) -> None:
        """What is taken, by default what, and what for."""
        assert said == parameter_text(Parameter("p", kind, default, meaning))


def test_scripts() -> None:
    """Examples import what they use and do not make, by homes; what they print is in comments."""
    homes = {"Load": "pack.two", "Map": "pack.one", "Add": "pack.two", "Not": "pack.none"}
    example = """
        >>> x = np.ones(Load(Add))
        >>> for Not in x:
        ...     print(Map(Not))
        1.0
        <BLANKLINE>
        >>> x = Not
        """
    assert script(example, homes).splitlines() == [
        "import numpy as np", "from pack.one import Map", "from pack.two import Add, Load", "",
        "x = np.ones(Load(Add))", "for Not in x:", "    print(Map(Not))", "# 1.0",
        "# <BLANKLINE>", "x = Not",
    ]  # fmt: skip
    # The line of an import has 88 letters at most.
    start = "from pack import "
    for rest in (88 - len(start), 89 - len(start)):
        names = ["a" * (rest - 4), "bb"]
        text = script(f">>> {names[1]}({names[0]})\n", dict.fromkeys(names, "pack"))
        line = f"{start}{names[0]}, bb"
        broken = ["from pack import (", f"    {names[0]},", "    bb,", ")"]
        imported = [line] if len(line) <= 88 else broken
        assert text.splitlines() == [*imported, "", f"bb({names[0]})"]


def test_what_a_docstring_says() -> None:
    """A sentence, perhaps more, and sections; several names may share a meaning."""
    kind: Any = type("Kind", (), {"__doc__": """Do it
        so.

        And more.

        Shapes:
            x: [D, 2].

        Attributes:
            one, two_2: some
                of it.
            three: a: b.
        """})  # fmt: skip
    text = documentation(kind)
    assert text.summary == "Do it so."
    assert text.details == "And more."
    assert [*text.sections] == ["Shapes", "Attributes"]
    assert text.sections["Shapes"] == "x: [D, 2]."
    said = {"one": "some of it.", "two_2": "some of it.", "three": "a: b."}
    assert dict(entries(text.sections["Attributes"])) == said
    assert meanings(type("Later", (kind,), {"__doc__": "Do.\n\nAttributes:\n    three: c."})) == (
        said | {"three": "c."}
    )
    assert documentation(type("Bare", (), {"__doc__": "Bare(x=1)"})) == Documentation("", "", {})

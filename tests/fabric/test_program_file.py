from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from fabric.graph.hardware.description import ChannelDescription, Hardware
from fabric.graph.loading import program_file
from fabric.messages.errors import ProgramError
from fabric.runs.simulation import simulate

Write = Callable[[str], Path]
HEAD = "from __future__ import annotations\nfrom pathlib import Path\nfrom typing import Literal\n"
HEAD += "from fabric.graph.wiring.program import Program\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write_program(text: str) -> Path:
        path = tmp_path / "user.py"
        path.write_text(HEAD + text, encoding="utf-8")
        return path

    yield write_program
    for name in set(sys.modules) - before:
        if name.startswith("program_") or name == "beside":
            del sys.modules[name]


def load(path: Path, *parameters: str) -> program_file.Loaded:
    return program_file.load_program(path, parameters, Hardware())


def refused(path: Path, *parameters: str) -> str:
    with pytest.raises(ProgramError) as raised:
        load(path, *parameters)
    return str(raised.value).replace(f"{path.parent}/", "")


class TestParameters:
    @pytest.mark.parametrize(
        ("annotation", "text", "value"),
        [
            ("int", "12", 12),
            ("int", "-3", -3),
            ("float", "1e-3", 0.001),
            ("bool", "true", True),
            ("bool", "0", False),
            ("str", "a=b", "a=b"),
            ("str", "", ""),
            ("Path", "a/b", Path("a/b")),
            ("Path | None", "a/b", Path("a/b")),
            ("Path | None", "none", None),
            ("int | None", "None", None),
            ("int | None", "NULL", None),
            ("int | None", "7", 7),
            ("Literal['a', 'b']", "b", "b"),
        ],
    )
    def test_parameter_is_converted_by_its_annotation(
        self, write: Write, annotation: str, text: str, value: object
    ) -> None:
        path = write(f"def build(x: {annotation} = None):\n    return Program(str(x))\n")

        loaded = load(path, f"x={text}")

        assert ({"x": value}, str(value)) == (loaded.parameters, loaded.program.name)


class TestBuild:
    def test_program_is_built_on_the_hardware_of_the_run(self, write: Write) -> None:
        path = write("def build():\n    return Program('p')\n")
        hardware = Hardware(channel=ChannelDescription(depth=7))

        assert hardware == program_file.load_program(path, [], hardware).program.hardware


class TestRefused:
    def test_syntax_error_is_refused_with_its_line(self, write: Write) -> None:
        assert refused(write("x = 1\nf(\n")) == "user.py:6: not valid Python: '(' was never closed"

    @pytest.mark.parametrize(
        ("signature", "parameter", "message"),
        [
            (
                "tokens: int = 1, seed: int = 0",
                "token=3",
                "build() takes no parameter token (found -p token=3): "
                "expected one of tokens, seed (did you mean tokens?)",
            ),
            ("n: int = 1", "n=ten", "parameter n of build() is 'ten': expected int"),
            ("n: int | None = 1", "n=x", "parameter n of build() is 'x': expected int | None"),
            (
                "n: Literal['one', 'two'] = 'one'",
                "n=tow",
                "parameter n of build() is 'tow': expected one of one, two (did you mean two?)",
            ),
            ("n: int, m: int", "m=1", "build() needs a value for n: expected -p n=VALUE"),
            (
                "n: Nothing = 1",
                "n=1",
                "evaluating the annotations of build() raised NameError: name 'Nothing' is not "
                "defined",
            ),
        ],
    )
    def test_wrong_parameter_is_refused(
        self, write: Write, signature: str, parameter: str, message: str
    ) -> None:
        path = write(f"def build({signature}):\n    return Program('p')\n")

        assert f"user.py:5: {message}" == refused(path, parameter)

    @pytest.mark.parametrize("again", ["a=3", "a=2"])
    def test_parameter_given_twice_is_refused(self, write: Write, again: str) -> None:
        path = write("def build(a: int = 1, b: int = 1):\n    return Program('p')\n")

        expected = (
            f"user.py:5: parameter a of build() is given twice, as -p a=2 and -p {again}: "
            "expected one value"
        )
        assert expected == refused(path, "a=2", "b=2", again)

    def test_error_in_build_names_the_deepest_line(self, write: Write) -> None:
        path = write("import beside\n\ndef build():\n    return beside.wire()\n")
        beside = "def wire():\n    raise ValueError('odd')\n"
        (path.parent / "beside.py").write_text(beside, encoding="utf-8")

        assert refused(path) == "beside.py:2: build() raised ValueError: odd"


def test_late_imports_find_what_is_beside(tmp_path: Path) -> None:
    text = (
        "from operators import LinearOffChipLoad, LinearOffChipStore, Tensor\n"
        "def told():\n    import beside\n    return beside.NUMBER\n"
        "def by_name():\n    from importlib import import_module\n"
        "    return import_module('beside').NUMBER\n"
        "def build():\n"
        "    with Program('late') as program:\n"
        "        LinearOffChipStore('y')(LinearOffChipLoad(Tensor((8, 8)), tile=(8, 8))())\n"
        "    program.extra['told'] = told\n"
        "    program.extra['by_name'] = by_name\n"
        "    return program\n"
    )
    programs = []
    for number, name in enumerate(("one", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "user.py").write_text(HEAD + text, encoding="utf-8")
        (tmp_path / name / "beside.py").write_text(f"NUMBER = {number}\n", encoding="utf-8")
        programs.append(load(tmp_path / name / "user.py").program)
    for number in (1, 0):
        assert simulate(programs[number]).extra == {"told": number, "by_name": number}


def test_an_edited_helper_is_executed_as_it_is(tmp_path: Path) -> None:
    text = "from beside import NAME\ndef build():\n    import beside\n    return Program(NAME)\n"
    (tmp_path / "user.py").write_text(HEAD + text, encoding="utf-8")
    modules = []
    for name in ("one", "two"):
        (tmp_path / "beside.py").write_text(f"NAME = {name!r}\n", encoding="utf-8")
        modules.append(program_file.executed(tmp_path / "user.py"))
    assert [program_file.wired(each, [], Hardware()).program.name for each in modules] == [
        "one",
        "two",
    ]


def test_programs_of_one_folder_share_nothing(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("seen = []\n", encoding="utf-8")
    text = "import beside\nbeside.seen.append(1)\n"
    text += "def build():\n    return Program(f'p{len(beside.seen)}')\n"
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(HEAD + text, encoding="utf-8")
        assert load(tmp_path / name).program.name == "p1"


@pytest.mark.parametrize("name", ["numpy", "random"])
def test_program_with_a_library_s_name_imports_the_library(name: str, tmp_path: Path) -> None:
    text = "import numpy, random, beside\nnumpy.arange(random.Random(0).randrange(2, 9))\n"
    text += "def build():\n    return Program(f'p{beside.random.Random.__module__}')\n"
    (tmp_path / f"{name}.py").write_text(HEAD + text, encoding="utf-8")
    (tmp_path / "beside.py").write_text("import numpy.random, random\n", encoding="utf-8")

    assert load(tmp_path / f"{name}.py").program.name == "prandom"


PACKAGES = {
    "user.py": (
        "import kit.deep.part as part, kit.plain\nfrom kit import other\nfrom kit.deep import *\n"
        "from bare import there\n"
        "def build():\n    from kit.late import NAME\n    return Program(NAME)\n"
    ),
    "kit/__init__.py": "from . import other\n",
    "kit/other.py": "from .deep.part import PART\nimport bare.there\n",
    "kit/plain.py": "import kit.other, sys\nassert sys.modules[__name__].__file__ == __file__\n",
    "kit/deep/__init__.py": "from .part import PART\n__all__ = ['PART']\n",
    "kit/deep/part.py": (
        "from dataclasses import dataclass, field\nfrom typing import ClassVar, get_type_hints\n"
        "@dataclass\nclass PART:\n    a: 'ClassVar[int]'\n    b: 'list[int]' = field()\n"
        "assert list(PART.__dataclass_fields__) == ['a', 'b'] and get_type_hints(PART)\n"
    ),
    "kit/late.py": "from kit.deep import PART\nNAME = PART.__name__\n",
    "kit/unused.py": "raise AssertionError\n",
    "bare/there.py": "",
    "numpy/no_module": "",
}


def test_executed_files_are_known_by_their_digests(tmp_path: Path) -> None:
    for file, text in PACKAGES.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        head = "from __future__ import annotations\n" if file.startswith("kit/deep") else ""
        head = HEAD + "import numpy\nnumpy.ones\n" if file == "user.py" else head
        (tmp_path / file).write_text(head + text, encoding="utf-8")
    module = program_file.executed(tmp_path / "user.py")
    begun = program_file.files_of(module)
    assert program_file.wired(module, [], Hardware()).program.name == "PART"
    found = program_file.files_of(module)
    assert found.keys() - begun.keys() == {"kit/late"}
    names = {"kit": "kit/__init__.py", "kit/deep": "kit/deep/__init__.py", "": "user.py"}
    digests = {
        key: sha256((tmp_path / names.get(key, f"{key}.py")).read_bytes()).hexdigest()
        for key in ("", "kit", "kit/other", "kit/plain", "kit/deep", "kit/deep/part", "kit/late")
    }
    digests["bare/there"] = sha256(b"").hexdigest()
    assert {key: value for key, value in found.items() if value is not None} == digests
    assert {"numpy", "fabric", "bare", "pathlib"} & found.keys() == {"numpy", "bare", "pathlib"}

    program = tmp_path / "user.py"
    assert program_file.executes_same_files(program, found)
    for new in ("kit/late", "pathlib", "kit/other/__init__"):
        path = tmp_path / f"{new}.py"
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(exist_ok=True)
        path.write_text("1\n", encoding="utf-8")
        assert not program_file.executes_same_files(program, found), new
        path.unlink()
        if before is not None:
            path.write_bytes(before)
    assert program_file.executes_same_files(program, found)


def test_annotations_of_an_earlier_execution(tmp_path: Path) -> None:
    text = (
        "from dataclasses import dataclass\nfrom fabric.extend import Described\n"
        "Size = {size}\n@dataclass(frozen=True)\nclass Box(Described):\n    size: Size\n"
    )
    modules = []
    for size in ("int", "str"):
        (tmp_path / "user.py").write_text(HEAD + text.format(size=size), encoding="utf-8")
        modules.append(program_file.executed(tmp_path / "user.py"))
    assert [modules[0].Box(3).size, modules[1].Box("a").size] == [3, "a"]
    with pytest.raises(ProgramError, match="size is 'a': expected an int"):
        modules[0].Box("a")

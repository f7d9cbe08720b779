"""An error of any type, at every call of users' code, becomes one error that names a line."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import pytest

import fabric as fab
import fabric.extend as ext
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import executed, wired
from fabric.shell.cli import main
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.deadlock.cases import CASES
from tests.profiles import crossed, spread

_RAISED: Final = {
    "ValueError": 'ValueError("mine")',
    "SystemExit": "SystemExit(0)",
    "KeyboardInterrupt": "KeyboardInterrupt()",
    "StopIteration": "StopIteration()",
    "Cancelled": 'trio.Cancelled._create(source="unknown")',
    "BaseException": 'BaseException("mine")',
    "BaseExceptionGroup": 'BaseExceptionGroup("two", [SystemExit(0), KeyboardInterrupt()])',
    "Untold": 'type("Untold", (Exception,), {"__str__": lambda _: 1 / 0})()',
}

_PROGRAM: Final = """
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
import trio
from typing import ClassVar
from fabric import *; from fabric.extend import *
from operators import *

def fails():
    raise {raised}  # here

def at(door):
    if door == {door!r}:
        fails()

at("file")

class Value:
    def __array__(self, *_, **__):
        at("array")
        return np.full((4, 4), 0.731058578, np.float32)

    def __hash__(self):
        at("hash")
        return 0

    def __getattr__(self, name):
        at("attribute")
        raise AttributeError(name)

    def __str__(self):
        at("text")
        return "text"

def annotation():
    at("annotation")
    return int

class Function(SiLU):
    def flops(self, *inputs):
        at("flops")
        return super().flops(*inputs)

    def apply(self, *tiles):
        at("apply")
        return super().apply(*tiles)

@dataclass(frozen=True)
class Own(Operator):
    value: object = None

    def __call__(self, stream):
        (result,) = self.wire(stream)
        return result

    def infer(self, wiring, stream):
        at("infer")
        return (stream.type,)

    def costs(self, inputs, outputs):
        at("costs")
        return Costs()

    def work(self, inputs, outputs, rates):
        at("work")
        return None

    def layouts(self, inputs, types, outputs):
        at("layouts")
        return super().layouts(inputs, types, outputs)

    async def run(self, ports):
        at("run")
        try:
            while (element := await ports.inputs[0].receive()) is not None:
                await ports.outputs[0].send(element)
        finally:
            at("finally")

def build(number: annotation() = 1):
    at("build")
    with Program("doors", mode="functional") as program:
        def data():
            at("data")
            return np.ones((4, 4), np.float32)
        loaded = LinearOffChipLoad(Tensor((4, 4), data, dtype="float32"), tile=(2, 2))()
        out = Own(value=Value())(Map(Function())(loaded))
        if {door!r} == "layouts":
            out.layout
        LinearOffChipStore("y")(out)
    def expected():
        at("expect")
        return Value()
    program.expect(y=expected)
    program.extra["more"] = lambda: at("extra")
    program.extra["value"] = Value
    return program

def study():
    at("study")
"""

_DOORS: Final = {
    "file": ("run", "check", "graph", "size", "study"),
    "build": ("run", "check", "graph", "size"),
    "infer": ("run", "check", "graph", "size"),
    "flops": ("run", "check"),
    "costs": ("run", "check"),
    "apply": ("run",),
    "run": ("run", "size"),
    "expect": ("run",),
    "extra": ("run",),
    "study": ("study",),
    "annotation": ("run", "check"),
    "data": ("run",),
    "finally": ("run",),
    "array": ("run",),
    "text": ("run",),
    "hash": ("run", "check"),
    "attribute": ("run", "graph"),
}
"""The commands that call users' code."""

_OPTIONS: Final = {
    "run": ("--json",),
    "check": ("--json",),
    "size": ("--json",),
    "study": ("--json",),
    "graph": ("-o", "graph.svg"),
}


@pytest.mark.parametrize(
    ("door", "command", "raised"),
    crossed(
        [(door, each) for door, commands in _DOORS.items() for each in commands], [*_RAISED], 1
    ),
)
def test_error_in_users_code_ends_a_command_with_its_line(
    door: str,
    command: str,
    raised: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    source = _PROGRAM.format(raised=_RAISED[raised], door=door)
    Path("doors.py").write_text(source, encoding="utf-8")
    line = 1 + source.split("\n").index(next(x for x in source.split("\n") if "# here" in x))

    parameters = ["-p", "number=1"] if door == "annotation" else []
    status = main([command, "doors.py", *_OPTIONS[command], *parameters])

    printed, errors = capsys.readouterr()
    if raised == "KeyboardInterrupt" and door in ("hash", "attribute") and status == 130:
        return  # before a run, it equals Ctrl-C
    assert status in (1, 2)
    assert "Traceback" not in errors
    assert "fault of the fabric" not in errors + printed
    assert f".py:{line}" in errors + printed or f'"line": {line}' in printed
    words = ("SystemExit", "mine", raised)
    assert any(word in errors + printed for word in words)
    if "--json" in _OPTIONS[command]:
        assert "error" == json.loads(printed)["status"]


def _in_a_thread(act: Callable[[], Any]) -> Any:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(act())
        except fab.FabricError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    ((result),) = found
    return result


@pytest.mark.parametrize("raised", spread(_RAISED, 2))
@pytest.mark.parametrize("door", ["work", "layouts"])
def test_error_in_work_or_layouts_has_its_line(door: str, raised: str, tmp_path: Path) -> None:
    path = tmp_path / "doors.py"
    path.write_text(_PROGRAM.format(raised=_RAISED[raised], door=door), encoding="utf-8")

    def ask() -> Any:
        return fab.lower_bounds(wired(executed(path), [], Hardware()).program)

    error = _in_a_thread(ask)
    assert f"raised {raised}" in str(error)
    line = 1 + next(n for n, x in enumerate(path.read_text("utf-8").split("\n")) if "# here" in x)
    assert f"{path}:{line}: " in str(error)


def _fails(raised: str) -> Callable[..., Any]:
    def fails(*_: object) -> Any:
        names: dict[str, Any] = {}
        exec("import trio", names)
        raise eval(_RAISED[raised], names)

    return fails


_METHODS: Final = tuple(
    name
    for name, method in vars(ext.Observer).items()
    if inspect.isfunction(method) and not name.startswith("_")
)


def _observer(method: str, raised: str) -> ext.Observer:
    told: list[str] = []

    def fails(*_: object) -> Any:
        told.append(method)
        _fails(raised)()

    def watch(*_: object) -> Any:
        return fails if method == "transferred" else lambda *_: None

    body = {"watch": watch, "told": told, method: fails}
    observer: ext.Observer = type("Mine", (ext.Observer,), body)()
    return observer


@pytest.mark.parametrize(
    ("method", "raised"),
    crossed([(method,) for method in (*_METHODS, "transferred")], [*_RAISED], 3),
)
def test_error_in_an_observer_ends_the_run(method: str, raised: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    source = _PROGRAM.format(raised="ValueError()", door="none")
    path.write_text(source, encoding="utf-8")
    program = wired(executed(path), [], Hardware()).program
    observer = _observer(method, raised)
    result = _in_a_thread(lambda: fab.simulate(program, mode="timing", observers=[observer]))
    if not vars(type(observer))["told"]:
        assert result.status == "completed"
        return
    called = "watch" if method == "transferred" else method
    name = raised if raised != "BaseExceptionGroup" else "BaseExceptionGroup: two"
    if isinstance(result, fab.FabricError):
        assert method in ("begin", "watch")
        message = str(result)
    else:
        assert "error" == result.status
        message = result.error["message"]
    assert f"observer Mine: {called}() raised {name}" in message


class _Memory:
    def __init__(self, description: _Raising, *_: object) -> None:
        self._description = description
        self._under_way: list[ext.Unit] = []
        self._at("__init__")

    def _at(self, method: str) -> None:
        if self._description.method == method:
            _fails(self._description.raised)()

    @property
    def pending(self) -> bool:
        return bool(self._under_way)

    @property
    def bytes_moved(self) -> int:
        self._at("bytes_moved")
        return 0

    @property
    def final_cycle(self) -> int | None:
        self._at("final_cycle")
        return None

    def submit(self, unit: ext.Unit, _burst: ext.Burst) -> None:
        self._at("submit")
        self._under_way.append(unit)

    def advance(self, _horizon_cycle: int) -> list[ext.Unit]:
        self._at("advance")
        done, self._under_way = self._under_way, []
        for unit in done:
            unit.answered(unit.now + 3)
        return done

    def served(self, _unit: ext.Unit) -> int:
        self._at("served")
        return 0

    def counters(self) -> None:
        self._at("counters")


@dataclass(frozen=True, kw_only=True)
class _Raising(ext.OffChipDescription):
    model: ClassVar[str] = "raising"
    request_bytes: int = 32
    peak_bytes_per_cycle: int = 32
    method: str = ""
    raised: str = ""


ext.register_memory(_Raising, _Memory)


@pytest.mark.parametrize(
    ("method", "engine", "raised"),
    crossed(
        [
            *product(
                ["__init__", "submit", "advance", "counters", "bytes_moved", "final_cycle"],
                ["tasks", "compiled"],
            )
        ],
        [*_RAISED],
        3,
    ),
)
def test_error_in_a_memory_ends_the_run(
    method: str, raised: str, engine: Literal["tasks", "compiled"]
) -> None:
    def run() -> Any:
        hardware = Hardware(hbm=_Raising(method=method, raised=raised))
        with fab.hardware_scope(hardware), fab.Program("memory") as program:
            LinearOffChipStore("y")(LinearOffChipLoad(Tensor((4, 4)), (2, 2))())
        return fab.simulate(program, engine=engine)

    result = _in_a_thread(run)

    error = result if isinstance(result, fab.FabricError) else result.error["message"]
    # The error of an operator is the first error of a group.
    said = "SystemExit" if (method, raised) == ("submit", "BaseExceptionGroup") else raised
    assert f"raised {said}" in str(error) or f": {said}" in str(error)
    if not isinstance(result, fab.FabricError):
        assert "error" == result.status
        assert __file__ == result.error["file"] or Path(__file__).name in str(error)


class _Shows:
    def __init__(self, raised: str) -> None:
        self._fails = _fails(raised)

    async def run(self, _snapshot: object) -> None:
        self._fails()


def _copied() -> fab.Program:
    with fab.Program("copied") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(Tensor((4, 4)), (2, 2))())
    return program


@pytest.mark.parametrize(
    ("door", "raised"),
    crossed(["notify", "size", "place", "progress", "form", "open_run"], [*_RAISED], 1),
)
def test_error_in_a_given_function_is_named(door: str, raised: str, tmp_path: Path) -> None:
    def ask() -> Any:
        if door == "notify":
            return fab.simulate(CASES["pack_rows"].build(), notify=_fails(raised))
        if door == "size":
            return fab.size(_copied(), notify=_fails(raised))
        if door == "place":
            return fab.place(_copied(), fab.Mesh(columns=2, rows=2), notify=_fails(raised))
        if door == "progress":
            return fab.simulate(_copied(), progress=_Shows(raised))
        if door == "open_run":
            with fab.open_run(CASES["pack_rows"].build(), notify=_fails(raised)) as run:
                return run.finish()
        ext.export_form(f"{door} {raised}")(_fails(raised))
        trace = fab.simulate(_copied(), trace="events").trace()
        return fab.export_trace(trace, f"{door} {raised}", tmp_path / "run")

    result = _in_a_thread(ask)

    error = result if isinstance(result, fab.FabricError) else result.failure.error()
    who = {"progress": "progress _Shows: run()", "form": f"form 'form {raised}'"}
    said = "SystemExit" if (door, raised) == ("progress", "BaseExceptionGroup") else raised
    assert f"{who.get(door, 'notify')} raised {said}" in str(error)
    assert Path(__file__).name in str(error)

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Final

import click
import pytest
from structlog.processors import JSONRenderer

import fabric
import fabric as fab
from fabric.analysis.trace.selection import TraceOptions
from fabric.explore.study.evaluation import Identities
from fabric.explore.study.opening import StudyOptions, open_study
from fabric.extend import Observer
from fabric.graph.hardware.latency import Site
from fabric.graph.loading.program_file import load_program
from fabric.runs.execution import Execution
from fabric.runs.options import Options, Settings
from fabric.shell.cli import main
from fabric.shell.commands.options import OF_RUNS
from tests.fabric.test_magic import Shell
from tests.network.placed import write_placement

TEXT: Final = """\
import numpy as np

from fabric import Program
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU


def build(rows: int = 64) -> Program:
    with Program("options", mode="timing") as program:
        tiles = LinearOffChipLoad(np.ones((rows, 16)), tile=(16, 16))()
        LinearOffChipStore("y", name="store")(Map(SiLU())(tiles))
    return program
"""

VALUES: Final[dict[str, Any]] = {
    "mode": "functional",
    "exact": True,
    "depths": {"store.0": 3},
    "hops": {"store.0": fab.Hop(3, 4)},
    "placement": Path("placement.toml"),
    "on_deadlock": "grow",
    "livelock_cycles": 1234,
}

TYPED: Final = {
    "mode": ["--mode", "functional"],
    "exact": ["--exact"],
    "depths": ["--depth", "store.0=3"],
    "hops": ["--hop", "store.0=3+4"],
    "placement": ["--placement", "placement.toml", "--hardware", "mesh.toml"],
    "on_deadlock": ["--on-deadlock", "grow"],
    "livelock_cycles": ["--livelock-cycles", "1234"],
}

Seen = list[Settings]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found: Seen = []
    begun = Execution.__init__

    def begin(self: Execution, program: fab.Program, settings: Settings, *rest: Any) -> None:
        found.append(settings)
        begun(self, program, settings, *rest)

    monkeypatch.setattr(Execution, "__init__", begin)
    return found


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("mesh.toml").write_text("[network]\ncolumns = 2\nrows = 2\n", encoding="utf-8")
    sites = {"linear_off_chip_load_1": Site(0, 1), "silu_1": Site(1, 0), "store": Site(0, 0)}
    write_placement(Path("placement.toml"), "options", sites)
    path = tmp_path / "program_of_options.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


def _program(file: Path, option: str = "") -> fab.Program:
    return load_program(file, [], fab.load_hardware(_hardware(option) or "paper")).program


def _hardware(option: str) -> Path | None:
    return Path("mesh.toml") if option == "placement" else None


def _opened(program: fab.Program, **given: Any) -> None:
    with fab.open_run(program, **given) as run:
        run.finish()


def _sized(program: fab.Program, **given: Any) -> None:
    found = fab.size(program, goal="deadlock-free", held_out={"apart": program}, **given)
    if "depths" in given:
        assert found.depths == found.depths | given["depths"]


def test_every_option_is_tried() -> None:
    assert [each.name for each in fields(Options)] == list(VALUES) == list(TYPED)
    plain = Options()
    assert [] == [name for name, value in VALUES.items() if getattr(plain, name) == value]


class TestFunctions:
    TAKERS: ClassVar[dict[str, Callable[..., object]]] = {
        "simulate": fab.simulate,
        "open_run": _opened,
        "assert_completes": fab.assert_completes,
        "size": _sized,
    }
    WITHOUT: ClassVar[dict[str, dict[str, str]]] = {
        name: vars(getattr(fabric, name))["without"] for name in TAKERS
    }

    @pytest.mark.parametrize("option", VALUES)
    @pytest.mark.parametrize("taker", TAKERS)
    def test_function_honours_or_refuses_each_option(
        self, taker: str, option: str, file: Path, seen: Seen
    ) -> None:
        given = {option: VALUES[option]}
        run, why = self.TAKERS[taker], self.WITHOUT[taker].get(option)
        if why is None:
            run(_program(file, option), **given)
            assert seen
            # `size` chooses the depths of all channels; the given depths are a part of its result.
            if (taker, option) != ("size", "depths"):
                assert any(getattr(each, option) == VALUES[option] for each in seen)
                assert all(
                    getattr(each, option) == VALUES[option] for each in seen if option != "exact"
                )
            return
        with pytest.raises(fab.FabricError, match=f"{taker}: {option} is given: {why}"):
            run(_program(file), **given)
        assert seen == []
        text = " ".join(str(getattr(fabric, taker).__doc__).split())
        assert f"It takes no ``{option}``: {why}." in text

    def test_watching_options_reach_every_run(self, file: Path, seen: Seen, tmp_path: Path) -> None:
        notices: list[str] = []
        observer = Observer()
        given: dict[str, Any] = {
            "trace": TraceOptions(nodes="store"),
            "observers": [observer],
            "log_dir": tmp_path / "logs",
            "log": [JSONRenderer()],
            "notify": notices.append,
            "progress": None,
            "parameters": {"rows": 64},
            "program_file": "it.py",
        }
        own = {each.name for each in fields(Settings)} - {each.name for each in fields(Options)}
        assert own == {*given, "engine"}
        for run in (fab.simulate, _opened, fab.assert_completes):
            run(_program(file), **given)
        assert len(seen) == 3
        for name, value in given.items():
            values = [getattr(each, name) for each in seen]
            if name == "observers":
                assert all(observer in each for each in values)
            elif name == "notify":
                for tell in values:
                    tell("it")
                assert notices[-3:] == ["it"] * 3
            else:
                assert values == [value] * 3
        assert [each.engine for each in seen] == ["compiled", "tasks", "compiled"]


class TestStudies:
    @pytest.mark.parametrize("option", VALUES)
    def test_study_honours_or_refuses_each_option(
        self, option: str, file: Path, seen: Seen
    ) -> None:
        given: dict[str, Any] = {option: VALUES[option]}
        if option in fab.Study.without:
            with pytest.raises(fab.ConfigurationError, match=f"{option} is given: "):
                fab.Study(program=file, space=fab.grid(rows=[64]), **given)
            assert f"takes no {option}" in " ".join(str(fab.Study.__doc__).split())
            return
        plain = fab.Study(program=file, space=fab.grid(rows=[64]))
        given["hardware"] = _hardware(option)
        study = fab.Study(program=file, space=fab.grid(rows=[64]), **given)
        assert fab.run_point(study, study.point(0)).status == "completed"
        assert VALUES[option] == getattr(seen[0], option)
        setting = {"rows": 64}
        assert Identities(plain).of(setting) != Identities(study).of(setting)

    @pytest.mark.parametrize("text", ["3+", "0+1", "three"])
    def test_wrong_latency_of_a_point_is_refused(self, text: str, file: Path) -> None:
        study = fab.Study(program=file, space=fab.grid({"hop.store.0": [text]}))
        found = fab.run_point(study, study.point(0))
        assert found.status == "refused"
        assert "hop.store.0 is" in str(found.reason)
        assert "expected cycles forward and back" in str(found.reason)


class TestCommands:
    @pytest.mark.parametrize("option", VALUES)
    @pytest.mark.parametrize("command", ["run", "size", "study", "%%fabric"])
    def test_command_honours_each_option(
        self,
        command: str,
        option: str,
        file: Path,
        seen: Seen,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        typed = TYPED[option]
        if command == "study" and option in ("depths", "hops"):
            typed = ["-p", f"{typed[0].removeprefix('--')}.{typed[1]}"]
        status = self._status(command, file, typed, monkeypatch)
        without = {"size": TestFunctions.WITHOUT["size"], "study": fab.Study.without}.get(
            command, {}
        )
        if option in without:
            assert (status, seen) == (2, [])
            assert "No such option" in capsys.readouterr().err
            return
        assert status == 0
        if (command, option) == ("size", "depths"):
            assert 3 == json.loads(capsys.readouterr().out)["depths"]["store.0"]
        else:
            assert VALUES[option] == getattr(seen[0], option)

    def _status(
        self, command: str, file: Path, typed: Sequence[str], monkeypatch: pytest.MonkeyPatch
    ) -> int:
        folder = str(file.parent / "logs")
        if command == "run":
            return main(["run", str(file), "--log-dir", folder, *typed])
        if command == "size":
            return main(["size", str(file), "--goal", "deadlock-free", "--json", *typed])
        if command == "%%fabric":
            on_mesh = "with hardware_scope(Hardware(network=Mesh(columns=2, rows=2))), Program("
            imports = "from fabric import Hardware, Mesh, hardware_scope\n"
            text = imports + TEXT.replace("with Program(", on_mesh)
            if "--hardware" in typed:
                Shell().magic(" ".join(typed[: typed.index("--hardware")]), text)
            else:
                Shell().magic(" ".join(typed), TEXT)
            return 0
        answered: list[str] = []

        def opened(path: Path, asked: StudyOptions) -> fab.Study:
            study = open_study(path, asked)
            answered.append(fab.run_point(study, study.point(0)).status)
            raise fab.ConfigurationError("that is enough")

        monkeypatch.setattr("fabric.explore.study.opening.open_study", opened)
        status = main(["study", str(file), "--vary", "rows=64", *typed])
        return 0 if answered == ["completed"] else status

    def test_defaults_of_commands_are_those_of_functions(self) -> None:
        for name, decorate in OF_RUNS.items():
            command = click.command()(decorate(lambda **_: None))
            given = command.make_context("it", []).params
            assert {name: getattr(Options, name) or None} == {
                each: value or None for each, value in given.items()
            }

"""Options of runs: whoever runs programs honours each of them, or refuses it and says why."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final

import click
import numpy as np
import pytest
from structlog.processors import JSONRenderer

import fabric
from fabric import (
    ConfigurationError,
    FabricError,
    Hop,
    Program,
    Study,
    assert_completes,
    grid,
    load_hardware,
    open_run,
    run_point,
    simulate,
    size,
)
from fabric.analysis.trace.selection import TraceOptions
from fabric.explore.sizing.checker import check
from fabric.explore.sizing.proofs import write_proofs
from fabric.explore.study.evaluation import Identities
from fabric.explore.study.opening import Asked, open_study
from fabric.extend import Observer
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.elaborate import elaborate
from fabric.runs.execution import Execution
from fabric.runs.options import Options, Settings
from fabric.shell.cli import main
from fabric.shell.commands.options import (
    OF_RUNS,
    depth_option,
    factors,
    hold_out_option,
    links_factor,
    pieces_option,
    sizes,
)
from fabric.timing.network import Site
from tests.fabric.sizing.networks import network, program_of, shape
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
    "hops": {"store.0": Hop(3, 4)},
    "placement": Path("placement.toml"),
    "on_deadlock": "grow",
    "livelock_cycles": 1234,
}
"""Of each option one that is not its default."""

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
    """Return the settings of all runs from now on."""
    found: Seen = []
    begun = Execution.__init__

    def begin(self: Execution, program: Program, settings: Settings, *rest: Any) -> None:
        found.append(settings)
        begun(self, program, settings, *rest)

    monkeypatch.setattr(Execution, "__init__", begin)
    return found


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a program; beside it are a mesh, and where its units are on that."""
    monkeypatch.chdir(tmp_path)
    Path("mesh.toml").write_text("[network]\ncolumns = 2\nrows = 2\n", encoding="utf-8")
    sites = {"linear_off_chip_load_1": Site(0, 1), "silu_1": Site(1, 0), "store": Site(0, 0)}
    write_placement(Path("placement.toml"), "options", sites)
    path = tmp_path / "program_of_options.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


def _program(file: Path, option: str = "") -> Program:
    """Return the program, on hardware that the option is for."""
    return load_program(file, [], load_hardware(_hardware(option) or "paper")).program


def _hardware(option: str) -> Path | None:
    return Path("mesh.toml") if option == "placement" else None


def _opened(program: Program, **given: Any) -> None:
    with open_run(program, **given) as run:
        run.finish()


def _sized(program: Program, **given: Any) -> None:
    found = size(program, goal="deadlock-free", held_out={"apart": program}, **given)
    if "depths" in given:
        assert found.depths == found.depths | given["depths"]


def test_numbers_of_options() -> None:
    """Sizes are numbers from 0 on, whole where they can be; factors end with x; the last counts."""
    context, option = click.Context(click.Command("c")), click.Option(["-s"], metavar="NAME=VALUE")
    most = "9" * 999
    given = ("a=17/6", "b=2.50", "c=6/3", "d=0", "x=y=1.123456", f"f={most}", "a=1")
    found = sizes(context, option, given)
    expected = {"a": 1, "b": Fraction(5, 2), "c": 2, "d": 0, "f": int(most)}
    assert {**expected, "x=y": Fraction(1_123_456, 1_000_000)} == found
    assert [int] * 4 == [type(found[name]) for name in "acdf"]
    assert {"a": 0.5, "b": 999_999.0} == factors(context, option, ("a=2x", "b=999999x", "a=0.5x"))
    for read, wrong in (
        *(
            (sizes, text)
            for text in ("1/0", "-1", "", "1.1234567", f"{most}9", "1/1234567890", "x")
        ),
        *((factors, text) for text in ("2", "x", "-1x", "1234567x", "1.1234567x", "1e3x")),
    ):
        for name in ("a", ""):
            with pytest.raises(click.BadParameter, match="expected NAME=VALUE"):
                read(context, option, (f"{name}={wrong if name else 1}",))


def test_limits_of_options() -> None:
    """What is as much as can be read is taken, and one more is refused, as nothing is."""

    def read(option: Callable[[Any], Any], *words: str) -> dict[str, Any]:
        command = click.command("c")(option(lambda **given: given))
        found: dict[str, Any] = command.main(list(words), standalone_mode=False)
        return found

    links = click.option("--links", metavar="FACTORx", default="1x", callback=links_factor)
    most, nine = "9" * 999, "9" * 9
    taken: tuple[tuple[Callable[[Any], Any], tuple[str, ...], object], ...] = (
        (
            depth_option(""),
            ("--depth", "a.0=1", "--depth", f"b={most}"),
            {"a.0": 1, "b": int(most)},
        ),
        (pieces_option, (), None),
        (pieces_option, ("--pieces", "16x8"), (16, 8)),
        (pieces_option, ("--pieces", f"{nine}x{nine}"), (int(nine), int(nine))),
        (links, (), 1.0),
        (links, ("--links", "0.5x"), 0.5),
        (links, ("--links", "unlimited"), math.inf),
        (hold_out_option(""), (), 0),
        (hold_out_option(""), ("--hold-out", "0"), 0),
    )
    for option, words, expected in taken:
        assert [expected] == list(read(option, *words).values())
    for refused, name, texts in (
        (depth_option(""), "--depth", (f"b={most}9", "b=0")),
        (pieces_option, "--pieces", (f"{nine}x{nine}9", "x8", "8x", "8", "")),
        (links, "--links", ("0x", "2", "")),
        (hold_out_option(""), "--hold-out", ("-1",)),
    ):
        for text in texts:
            with pytest.raises(click.BadParameter):
                read(refused, name, text)


def test_every_option_is_tried() -> None:
    """The tables of this file have them all."""
    assert [each.name for each in fields(Options)] == list(VALUES) == list(TYPED)
    plain = Options()
    assert [] == [name for name, value in VALUES.items() if getattr(plain, name) == value]


class TestFunctions:
    TAKERS: ClassVar[dict[str, Callable[..., object]]] = {
        "simulate": simulate,
        "open_run": _opened,
        "assert_completes": assert_completes,
        "size": _sized,
    }
    WITHOUT: ClassVar[dict[str, dict[str, str]]] = {
        name: vars(getattr(fabric, name))["without"] for name in TAKERS
    }

    @pytest.mark.parametrize("option", VALUES)
    @pytest.mark.parametrize("taker", TAKERS)
    def test_honoured_or_refused(self, taker: str, option: str, file: Path, seen: Seen) -> None:
        """Every run has it; or it is refused, with the reason that the documentation gives."""
        given = {option: VALUES[option]}
        run, why = self.TAKERS[taker], self.WITHOUT[taker].get(option)
        if why is None:
            run(_program(file, option), **given)
            assert seen
            # Sizing sets the depths of all channels; those that are given are among its result.
            if (taker, option) != ("size", "depths"):
                assert any(getattr(each, option) == VALUES[option] for each in seen)
                assert all(
                    getattr(each, option) == VALUES[option] for each in seen if option != "exact"
                )
            return
        with pytest.raises(FabricError, match=f"{taker}: {option} is given: {why}"):
            run(_program(file), **given)
        assert seen == []
        text = " ".join(str(getattr(fabric, taker).__doc__).split())
        assert f"It takes no ``{option}``: {why}." in text

    @pytest.mark.parametrize("taker", [simulate, open_run, assert_completes, size])
    def test_documented(self, taker: Callable[..., object]) -> None:
        """What each takes stands in its docstring, once, with a meaning."""
        text = inspect.getdoc(taker) or ""
        for name in inspect.signature(taker).parameters:
            assert 1 == text.count(f"\n    {name}: ")
            assert f"\n    {name}: \n" not in text

    def test_watching(self, file: Path, seen: Seen, tmp_path: Path) -> None:
        """Who watches, and where it is written, is handed on by all that run a program once."""
        told: list[str] = []
        heard = Observer()
        given: dict[str, Any] = {
            "trace": TraceOptions(nodes="store"),
            "observers": [heard],
            "log_dir": tmp_path / "logs",
            "log": [JSONRenderer()],
            "notify": told.append,
            "progress": None,
            "parameters": {"rows": 64},
            "program_file": "it.py",
        }
        own = {each.name for each in fields(Settings)} - {each.name for each in fields(Options)}
        assert own == {*given, "engine"}
        for run in (simulate, _opened, assert_completes):
            run(_program(file), **given)
        assert len(seen) == 3
        for name, value in given.items():
            values = [getattr(each, name) for each in seen]
            if name == "observers":
                assert all(heard in each for each in values)
            elif name == "notify":
                for tell in values:
                    tell("it")
                assert told[-3:] == ["it"] * 3
            else:
                assert values == [value] * 3
        assert [each.engine for each in seen] == ["compiled", "tasks", "compiled"]

    def test_none_means_nothing(self, file: Path) -> None:
        """Whoever hands options on need not know which were given."""
        assert simulate(_program(file), depths=None, hops=None).cycles == (
            simulate(_program(file)).cycles
        )

    def test_unknown(self, file: Path) -> None:
        """What is no option is refused, with those that are; a text is no hop."""
        wrongly: Any = size
        with pytest.raises(FabricError, match=r"size: hop is given: .*did you mean hops"):
            wrongly(_program(file), hop={})
        with pytest.raises(FabricError, match=r"size: hops is the dict .*: expected a dict from"):
            wrongly(_program(file), hops={"store.0": "3+4"})
        for run in (simulate, size):
            with pytest.raises(ConfigurationError, match=r"nobody\.0"):
                run(_program(file), hops={"nobody.0": Hop(2)})


class TestStudies:
    @pytest.mark.parametrize("option", VALUES)
    def test_honoured_or_refused(self, option: str, file: Path, seen: Seen) -> None:
        """Every point has it; or the study is refused. What is kept of others is another thing."""
        given: dict[str, Any] = {option: VALUES[option]}
        if option in Study.without:
            with pytest.raises(ConfigurationError, match=f"{option} is given: "):
                Study(program=file, space=grid(rows=[64]), **given)
            assert f"takes no {option}" in " ".join(str(Study.__doc__).split())
            return
        plain = Study(program=file, space=grid(rows=[64]))
        given["hardware"] = _hardware(option)
        study = Study(program=file, space=grid(rows=[64]), **given)
        assert run_point(study, study.point(0)).status == "completed"
        assert VALUES[option] == getattr(seen[0], option)
        setting = {"rows": 64}
        assert Identities(plain).of(setting) != Identities(study).of(setting)

    def test_identity_is_of_all(self, file: Path) -> None:
        """Two studies have one identity where their options are equal, in whatever order."""
        one, other = (
            {"store.0": Hop(2), "silu_1.0": Hop(3)},
            {"silu_1.0": Hop(3), "store.0": Hop(2)},
        )
        found = {
            Identities(Study(program=file, space=grid(rows=[64]), hops=hops)).of({"rows": 64})
            for hops in (one, other)
        }
        assert 1 == len(found)

    def test_hops(self, file: Path) -> None:
        """Numbers of a point are those of a run with its hops: the study's, fixed or varied."""
        expected = simulate(_program(file), hops=VALUES["hops"])
        assert expected.cycles != simulate(_program(file)).cycles
        name = "hop.store.0"
        study = Study(program=file, space=grid({name: ["1+1", "3+4"]}), hops={"store.0": Hop(9, 9)})
        numbers = [run_point(study, study.point(at)).numbers for at in range(2)]
        assert [each["cycles"] for each in numbers] == [
            simulate(_program(file)).cycles,
            expected.cycles,
        ]
        fixed = Study(program=file, space=grid(rows=[64]), fixed={name: "3+4"})
        assert run_point(fixed, fixed.point(0)).numbers == numbers[1]

    @pytest.mark.parametrize("text", ["3", "3+", "0+1", "1+0", "-1+2", "3+4+5", "three", ""])
    def test_no_hop(self, text: str, file: Path) -> None:
        """A point with another text is refused."""
        study = Study(program=file, space=grid({"hop.store.0": [text]}))
        found = run_point(study, study.point(0))
        assert found.status == "refused"
        assert "hop.store.0 is" in str(found.reason)
        assert "expected cycles forward and back" in str(found.reason)


class TestCommands:
    @pytest.mark.parametrize("option", VALUES)
    @pytest.mark.parametrize("command", ["run", "size", "study", "%%fabric"])
    def test_honoured_or_unknown(
        self,
        command: str,
        option: str,
        file: Path,
        seen: Seen,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A command takes what its function does; depths and hops of a study are of its points."""
        typed = TYPED[option]
        if command == "study" and option in ("depths", "hops"):
            typed = ["-p", f"{typed[0].removeprefix('--')}.{typed[1]}"]
        status = self._status(command, file, typed, monkeypatch)
        without = {"size": TestFunctions.WITHOUT["size"], "study": Study.without}.get(command, {})
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

        def opened(path: Path, asked: Asked) -> Study:
            study = open_study(path, asked)
            answered.append(run_point(study, study.point(0)).status)
            raise ConfigurationError("that is enough")

        monkeypatch.setattr("fabric.shell.studying.open_study", opened)
        status = main(["study", str(file), "--vary", "rows=64", *typed])
        return 0 if answered == ["completed"] else status

    @pytest.mark.parametrize("text", ["store.0", "store.0=3", "=3+4", "store.0=0+1"])
    def test_no_hop(self, text: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """What is typed, and what was expected."""
        assert 2 == main(["run", str(file), "--hop", text])
        assert "expected CHANNEL=FORWARD+BACK" in " ".join(capsys.readouterr().err.split())

    def test_defaults(self) -> None:
        """What a command takes where nothing is typed is what its function does."""
        for name, decorate in OF_RUNS.items():
            command = click.command()(decorate(lambda **_: None))
            given = command.make_context("it", []).params
            assert {name: getattr(Options, name) or None} == {
                each: value or None for each, value in given.items()
            }


class TestSizes:
    @pytest.fixture
    def wired(self) -> Program:
        """Return a network of blocking reads, of which the record tells all."""
        random = Random(5)
        return program_of(network(random, shape(random)))

    def test_hops(self, wired: Program, tmp_path: Path) -> None:
        """Depths keep the goal in runs with the hops; the certificate is of those, and holds."""
        source = Random(1)
        hops = {
            edge.key: Hop(source.randint(2, 5), source.randint(2, 5))
            for edge in elaborate(wired).edges
        }
        found, plain = size(wired, hops=hops), size(wired)
        ran = simulate(wired, depths=found.depths, hops=hops)
        assert found.truth == "proved"
        assert found.hops == {name: str(hop) for name, hop in hops.items()}
        assert ran.cycles == found.inputs[0].cycles == found.inputs[0].cycles_unbounded
        assert simulate(wired, hops=hops).cycles == found.inputs[0].cycles_before
        assert found.inputs[0].cycles != plain.inputs[0].cycles
        assert plain.hops == {}
        for channel in found.channels:
            if channel.binds == "goal":
                less = found.depths | {channel.option: channel.depth - 1}
                assert (simulate(wired, depths=less, hops=hops).cycles or 0) > (ran.cycles or 0)
        (certificate,) = write_proofs(found, tmp_path / "proof.npz")
        assert [] == check(certificate)
        with np.load(certificate) as arrays:
            claimed = dict(zip(arrays["options"].tolist(), arrays["channels"][:, 2:4], strict=True))
            assert int(arrays["cycles"]) == ran.cycles
        assert {name: Hop(*map(int, each)) for name, each in claimed.items()} == hops

    def test_said(self, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """What is printed and written says with which hops the depths do."""
        depths = tmp_path / "depths.toml"
        typed = ["--goal", "deadlock-free", "--hop", "store.0=3+4", "-o", str(depths)]
        assert 0 == main(["size", str(file), *typed])
        assert "For runs with --hop store.0=3+4." in capsys.readouterr().out
        assert "run --depths` with --hop store.0=3+4\n" in depths.read_text(encoding="utf-8")

from __future__ import annotations

import json
import runpy
import signal
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec
import pydot
import pytest

from fabric import Hardware, OperatorError, Program, hardware_scope, simulate
from fabric.analysis.deadlock import remedy, trial
from fabric.analysis.deadlock.document import DeadlockReport
from fabric.analysis.deadlock.text import report_lines
from fabric.analysis.deadlock.trial import Search, TrialOutcome
from fabric.extend import Deadlock, Ports
from fabric.graph.hardware.description import FlatDescription
from fabric.graph.wiring.elaborate import elaborate
from fabric.runs import explaining
from fabric.shell.cli import main
from fabric.timing.machine.terminations import Terminations
from operators import EagerMerge, LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.deadlock import parts
from tests.deadlock.cases import CASES, fork_join, ring
from tests.deadlock.parts import Script, feedback, gather, sink, source
from tests.drawing.geometry import clashes, drawn
from tests.profiles import spread

PROGRAM = str(Path(__file__).parent / "pack_rows_program.py")


class TestException:
    def test_deadlock_raised_has_short_form_and_whole_report(self) -> None:
        report = simulate(CASES["pack_rows"].build())

        with pytest.raises(Deadlock) as caught:
            report.raise_for_status()
        short = (
            "FAB-D001 cycle 5 loop broadcast_a_rows_0>a_join>a_relay_0>a_pack>broadcast_a_rows_0 "
            "full a_join.1(2) fix a_join.1=8(checked)"
        )
        assert short == str(caught.value)
        assert report.deadlock == caught.value.report

    def test_failed_run_raises_its_error_with_the_line(self) -> None:
        with Program("wrong") as program:
            Script(("s7",), rounds=1, counts=(1,), name="wrong")()
            sink("y", program.nodes[0].outputs[0])

        report = simulate(program)
        with pytest.raises(Exception, match="IndexError") as caught:
            report.raise_for_status()
        assert report.error is not None
        assert report.error["line"] == caught.value.line  # type: ignore[attr-defined]
        assert not isinstance(caught.value, OperatorError)


class TestFiles:
    @pytest.mark.parametrize(
        "name", spread(["slots_and_room", "pack_rows", "long_tail", "loop_of_40", "ring_of_1"], 1)
    )
    def test_pictures_of_a_deadlock_have_every_stuck_unit(self, name: str, tmp_path: Path) -> None:
        report = simulate(CASES[name].build(), log_dir=tmp_path)
        assert report.log_dir is not None
        folder = Path(report.log_dir)

        written = json.loads((folder / "deadlock.json").read_text(encoding="utf-8"))
        found = msgspec.convert(written, DeadlockReport)
        names = {unit.unit for loop in found.loops for unit in loop.units}
        names |= {unit.unit for unit in found.behind}
        svg = ET.parse(folder / "deadlock.svg").getroot()
        boxes = [each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")]
        dot = (folder / "deadlock.dot").read_text(encoding="utf-8")
        assert report.deadlock == written
        assert names == names & set(boxes)
        assert ("on-chip capacity" in boxes) == (name == "slots_and_room")
        text = (folder / "deadlock.svg").read_text(encoding="utf-8")
        assert [] == list(clashes(drawn(text)))
        (graph,) = pydot.graph_from_dot_data(dot) or []
        labels = [node.get("label") for node in graph.get_nodes()]
        assert names == {name for name in names if any(f">{name}<" in str(each) for each in labels)}

    def test_report_is_written_before_the_search_for_a_remedy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = []
        whole = Search._try

        def look(search: Search, *args: Any, **kwargs: Any) -> TrialOutcome:
            (file,) = tmp_path.glob("*/deadlock.json")
            found.append(msgspec.json.decode(file.read_bytes(), type=DeadlockReport))
            return whole(search, *args, **kwargs)

        monkeypatch.setattr(Search, "_try", look)
        report = simulate(CASES["pack_rows"].build(), log_dir=tmp_path)

        assert report.deadlock is not None
        assert {"the search for a remedy has not ended"} == {each.remedy.why_not for each in found}
        assert [report.deadlock["loops"]] * len(found) == [
            each.as_json()["loops"] for each in found
        ]

    def test_report_on_a_full_disk_stays_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = Path.write_text
        given: list[str] = []

        def fill(path: Path, text: str, **kwargs: str) -> int:
            # Each writer writes a temporary file of its own, and renames it.
            name = path.name.split(".json")[0]
            given.append(name)
            if given.count(name) < 2 or name != "deadlock":
                return whole(path, text, **kwargs)
            whole(path, text[:100], **kwargs)
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_text", fill)
        report = simulate(CASES["pack_rows"].build(), log_dir=tmp_path)

        assert report.log_dir is not None
        kept = msgspec.json.decode(
            (Path(report.log_dir) / "deadlock.json").read_bytes(), type=DeadlockReport
        )
        assert "the search for a remedy has not ended" == kept.remedy.why_not
        assert [] == list(Path(report.log_dir).glob("*.tmp"))


class TestGrow:
    def test_grow_runs_again_with_the_depths_found(self) -> None:
        found = simulate(CASES["two_at_once"].build(), on_deadlock="grow")
        again = simulate(CASES["two_at_once"].build(), depths={"a_join.1": 4, "b_join.1": 6})

        assert ("completed", 0, None) == (found.status, found.exit_status, found.deadlock)
        assert (again.cycles, again.channels_counters) == (found.cycles, found.channels_counters)
        assert (
            "stopped at cycle 5 (FAB-D001); ran again with --depth a_join.1=4 --depth b_join.1=6",
        ) == found.warnings

    def test_grow_applies_nothing_if_depths_are_not_enough(self) -> None:
        found = simulate(CASES["slots_and_room"].build(), on_deadlock="grow")

        assert ("deadlock", 3) == (found.status, found.exit_status)
        assert (
            "--on-deadlock grow only deepens channels, but the remedy changes more",
        ) == found.warnings

    def test_grow_on_the_command_line_equals_the_printed_depth(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert 3 == main(["run", PROGRAM])
        printed = capsys.readouterr().out
        option, faster = [word for word in printed.split() if word.startswith("join.1=")]
        assert "remedy (checked by a re-run: completes at cycle 75)" in printed
        assert 0 == main(["run", PROGRAM, "--depth", option, "--json"])
        by_hand = json.loads(capsys.readouterr().out)
        assert 0 == main(["run", PROGRAM, "--on-deadlock", "grow", "--json"])
        grown = json.loads(capsys.readouterr().out)

        assert 0 == main(["run", PROGRAM, "--depth", faster, "--json"])
        cycles = json.loads(capsys.readouterr().out)["cycles"]
        line = f"{100 - 100 * cycles / 75:.0f} % fewer cycles with --depth {faster} completes"
        assert f"{line} at cycle {cycles}" in " ".join(printed.split())

        assert (75, 75) == (by_hand["cycles"], grown["cycles"])
        assert (None, None) == (by_hand["deadlock"], grown["deadlock"])

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_search_interrupted_by_a_signal_keeps_the_deadlock(
        self, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run, step, steps = Search._try, parts._step, iter(range(20, -1, -1))
        tried = []

        def try_it(search: Search, *args: Any, **kwargs: Any) -> TrialOutcome:
            tried.append(args)
            return run(search, *args, **kwargs)

        async def go_on(ports: Ports, name: str) -> bool:
            if tried and not next(steps, -1):
                signal.raise_signal(number)
            return await step(ports, name)

        monkeypatch.setattr(Search, "_try", try_it)
        monkeypatch.setattr(parts, "_step", go_on)
        with Terminations().handled():
            report = simulate(CASES["pack_rows"].build())
        found = report.deadlock
        assert found is not None
        assert (number, 128 + number) == (report.signal, report.exit_status)

        expected = "the search for a remedy was interrupted"
        assert (1, "FAB-D001", [], expected) == (
            len(tried),
            found["code"],
            found["remedy"]["depths"],
            found["remedy"]["why_not"],
        )

    def test_remedy_that_fails_reports_the_error(self) -> None:
        with Program("fails") as program:
            rows = source("rows", 8)
            tiles = gather("pack", rows, 4)
            steps = ("r0", *["r1"] * 4, "s7")
            sink("y", Script(steps, counts=(2,), name="join")(tiles, rows)[0])
        found = simulate(program).deadlock
        assert found is not None

        expected = "no depth helps: with unbounded channels the program fails: join: IndexError: "
        assert found["remedy"]["why_not"].startswith(expected)

    def test_search_beyond_its_effort_keeps_a_capacity_that_completes(self) -> None:
        program = CASES["two_buffers"].build()
        found = remedy.find_remedy(elaborate(program), {}, {}, frozenset(), effort=200)

        assert found.capacity is not None
        more = CASES["two_buffers"].build(capacity_bytes=found.capacity.after_bytes)
        assert ("completed", found.cycles) == (simulate(more).status, simulate(more).cycles)
        assert not found.irreducible
        expected = f"gave up lowering further after {found.trials} runs and 400,000 elements"
        assert expected == found.why_not


class TestEveryChannel:
    @pytest.mark.parametrize(
        ("parameters", "given", "write"),
        spread(
            [
                ({"channel_depth": None}, None, "-p channel_depth=512"),
                ({}, None, "[channel] depth = 512"),
                ({"n": 3}, 2, f"{__file__}:{{line}}: Program(..., channel_depth=512)"),
            ],
            1,
        ),
        ids=["parameter", "hardware", "program"],
    )
    def test_depth_of_every_channel_names_what_to_change(
        self,
        parameters: dict[str, object],
        given: int | None,
        write: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        for module in (trial, explaining):
            monkeypatch.setattr(module, "EFFORT_ELEMENTS", 3_000)

        def build(depth: int | None) -> Program:
            with Program("deep", channel_depth=depth) as program:
                sink("y", fork_join("a", size=300, relays=0, count=600))
                sink("z", EagerMerge()([source("b", 1), source("c", 1)])[0])
            return program

        program = build(given)
        report = simulate(program, parameters=parameters)
        assert report.deadlock is not None
        found = report.deadlock["remedy"]["every_channel"]
        deeper = simulate(build(found["after"]))

        assert (2, 512, write.format(line=program.place.line)) == (
            found["before"],
            found["after"],
            found["write"],
        )
        assert ("completed", found["cycles"]) == (deeper.status, deeper.cycles)
        assert "deadlock" == simulate(build(found["after"] // 2)).status
        text = report_lines(msgspec.convert(report.deadlock, DeadlockReport))
        assert f"  remedy (checked by a re-run: completes at cycle {found['cycles']:,})" in text
        assert f"    depth of every channel 2 -> 512  {found['write']}" in text


class TestLivelock:
    def test_loop_that_works_is_not_a_livelock(self) -> None:
        with Program("slow") as program:
            loop = feedback(1)
            steps = ("r0", "s0", "c900")
            again, done = Script(
                steps, once=("s0", "s1"), rounds=1_000, counts=(1, 1), name="work"
            )(loop)
            loop.connect(again)
            sink("y", done)

        assert "completed" == simulate(program, livelock_cycles=10_000).status

    def test_stream_into_a_sink_is_not_a_livelock(self) -> None:
        with Program("long") as program:
            # Without charged work, which would be progress, too.
            stream = Script(("s0",), rounds=11_000, counts=(11_000,), name="x")()[0]
            (passed,) = Script(("r0", "s0"), counts=(11_000,), name="between")(stream)
            Script(("r0",), counts=(), name="y")(passed)

        assert "completed" == simulate(program, livelock_cycles=10_000).status


class TestEnds:
    def test_elements_left_over_are_a_warning(self) -> None:
        with Program("left-over") as program:
            Script(("r0",), rounds=2, counts=(), name="y")(source("x", 5))

        found = simulate(program)
        assert ("completed", 0) == (found.status, found.exit_status)
        assert ("FAB-D004: x.0 -> y.0: 3 elements were left over: y had ended",) == found.warnings

    def test_units_stuck_beside_moving_ones_are_logged_early(self, tmp_path: Path) -> None:
        slow = Hardware(hbm=FlatDescription(latency_cycles=400_000))
        with hardware_scope(slow), Program("partial") as program:
            ring("stuck", 2)
            LinearOffChipStore("y")(LinearOffChipLoad(Tensor((96, 64)), tile=(16, 64))())

        report = simulate(program, log_dir=tmp_path)
        assert report.log_dir is not None
        lines = (Path(report.log_dir) / "events.jsonl").read_text(encoding="utf-8").splitlines()
        events = [json.loads(line) for line in lines]
        found = [each for each in events if each["event"] == "partial_deadlock"]
        assert [["stuck_0", "stuck_1"]] == [each["loop"] for each in found]
        assert found[0]["cycle"] < 2_000_000


class TestText:
    @pytest.mark.parametrize(
        ("written", "statement"),
        [
            ("loop.connect(stream)", "loop.connect(Initial(True, keep_length=True)(stream))"),
            (
                "loops[0].connect(streams[0])",
                "loops[0].connect(Initial(True, keep_length=True)(streams[0]))",
            ),
            ("_ = loop.connect(stream)", ""),
            ("loop.connect(*streams)", ""),
            ("loop.connect(stream if streams else loop)", ""),
            # A line of the greatest length, and a longer line.
            (
                f"loop.connect(named['{'n' * 44}'])",
                f"loop.connect(Initial(True, keep_length=True)(named['{'n' * 44}']))",
            ),
            (f"loop.connect(named['{'n' * 45}'])", ""),
        ],
    )
    def test_remedy_of_a_loop_rewrites_a_plain_connect(
        self, written: str, statement: str, tmp_path: Path
    ) -> None:
        lines = (
            "from types import SimpleNamespace",
            "from fabric import Program",
            "from tests.deadlock.parts import feedback, relay",
            "def close(loop, stream): return loop.connect(stream)",
            "with Program('loop') as program:",
            "    loop = feedback(6)",
            "    stream = relay('relay', loop)",
            "    loops, streams, connect = [loop], [stream], loop.connect",
            "    closing = SimpleNamespace(close=connect)",
            "    named = {'n' * count: stream for count in range(99)}",
            f"    {written}",
        )
        file = tmp_path / "loop.py"
        file.write_text("\n".join(lines), encoding="utf-8")
        report = simulate(runpy.run_path(str(file))["program"])
        assert report.deadlock is not None
        (front,) = report.deadlock["remedy"]["initial"]

        assert statement == front["statement"]

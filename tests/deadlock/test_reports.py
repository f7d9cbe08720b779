"""What comes with a deadlock: files, exception, growth, livelocks, warnings, logs."""

from __future__ import annotations

import json
import runpy
import signal
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

# Any: fields of an outcome.
from typing import Any

import msgspec
import pydot
import pytest

from fabric import (
    Hardware,
    OperatorError,
    Program,
    Report,
    hardware_scope,
    simulate,
)
from fabric.analysis.deadlock import picture, remedy, trial
from fabric.analysis.deadlock.document import (
    NOT_SOUGHT,
    BlockedUnit,
    Capacity,
    DeadlockReport,
    Depth,
    Event,
    EveryChannel,
    Front,
    Loop,
    LoopChannel,
    Remedy,
)
from fabric.analysis.deadlock.text import LINES, one_line, report_lines
from fabric.analysis.deadlock.trial import Outcome, Trial
from fabric.extend import Deadlock, Ports
from fabric.graph.hardware.description import FlatDescription
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.stream import Feedback
from fabric.runs import explaining
from fabric.shell.cli import main
from fabric.timing.machine.terminations import Terminations
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.deadlock import parts
from tests.deadlock.cases import CASES, fork_join, on_a_small_chip, ring, round_and_round
from tests.deadlock.parts import Script, feedback, gather, relay, sink, source
from tests.drawing.geometry import clashes, drawn
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule

_STEPS_LATER = 20
"""Of operators, by when some of them are parked."""

PROGRAM = str(Path(__file__).parent / "pack_rows_program.py")


def stuck(name: str) -> Report:
    """Run a case as it is."""
    return simulate(CASES[name].build())


class TestException:
    def test_deadlock(self) -> None:
        """A library user gets an exception: the short form, and the whole report as data."""
        report = stuck("pack_rows")

        with pytest.raises(Deadlock) as caught:
            report.raise_for_status()
        short = (
            "FAB-D001 cycle 5 loop broadcast_a_rows_0>a_join>a_relay_0>a_pack>broadcast_a_rows_0 "
            "full a_join.1(2) fix a_join.1=8(checked)"
        )
        assert short == str(caught.value)
        assert report.deadlock == caught.value.report

    def test_completed(self) -> None:
        """A run that completed raises nothing."""
        with Program("fine") as program:
            sink("y", source("x", 3))

        simulate(program).raise_for_status()

    def test_failed(self) -> None:
        """A run that failed raises its error, with the place."""
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
        "name", spread(["pack_rows", "twelve_alike", "long_tail", "two_buffers"], 2)
    )
    def test_pictures(self, name: str, tmp_path: Path) -> None:
        """The data can be read back; the pictures have every unit that does not go on."""
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
        text = (folder / "deadlock.svg").read_text(encoding="utf-8")
        assert [] == list(clashes(drawn(text)))
        (graph,) = pydot.graph_from_dot_data(dot) or []
        assert names == {node.get_name().strip('"') for node in graph.get_nodes()} - {"node"}

    @pytest.mark.parametrize(
        "name", ["long_tail", "loop_of_40", "pack_rows", "ring_of_1", "ring_of_2", "three_rings"]
    )
    def test_golden_pictures(self, name: str, golden: Callable[[str, str], None]) -> None:
        """Rings and what waits behind them, as looked at; no line runs through a box."""
        report = simulate(CASES[name].build())
        found = msgspec.convert(report.deadlock, DeadlockReport)

        looked_at = drawn(picture.svg(found))
        assert looked_at.boxes
        assert [] == list(clashes(looked_at))
        golden(f"{name}.svg", picture.svg(found).replace(found.summary, "SUMMARY"))
        golden(f"{name}.dot", picture.dot(found))

    def test_channels(self) -> None:
        """Every wait in a loop names its channel, and how much that holds."""
        report = simulate(CASES["pack_rows"].build())
        found = msgspec.convert(report.deadlock, DeadlockReport)
        texts = [text for text, _ in drawn(picture.svg(found)).texts]

        told = {"a_join.1": "2 of 2 held", "a_relay_0.0": "0 of 2 held", "a_pack.0": "0 of 2 held"}
        assert told.items() <= dict(pairwise(texts)).items()
        assert r'label="a_join.1\n2 of 2 held"' in picture.dot(found)

    def test_many(self) -> None:
        """Of very many units some are drawn, and how many is said."""
        report = simulate(CASES["three_rings"].build())
        found = msgspec.convert(report.deadlock, DeadlockReport)
        (first, *_) = found.loops[0].units
        units = [
            replace(first, unit=f"u{k}", waits_for=[f"u{(k + 1) % 5_000}"]) for k in range(5_000)
        ]
        waiting = [replace(first, unit=f"v{k}", waits_for=["u0"]) for k in range(5_000)]
        many = replace(found, loops=[replace(found.loops[0], units=units)], behind=waiting)
        boxes = drawn(picture.svg(many)).boxes

        assert 400 == len(boxes)
        assert "waits in a loop (200 of 5,000 drawn)" in picture.svg(many)
        assert "waits behind it (200 of 5,000 drawn)" in picture.svg(many)

    def test_written_before_the_search(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is known is in the folder while a remedy is looked for, should that be killed."""
        found = []
        whole = Trial.run

        def look(trial: Trial) -> Outcome:
            (file,) = tmp_path.glob("*/deadlock.json")
            found.append(msgspec.json.decode(file.read_bytes(), type=DeadlockReport))
            return whole(trial)

        monkeypatch.setattr(Trial, "run", look)
        report = simulate(CASES["pack_rows"].build(), log_dir=tmp_path)

        assert report.deadlock is not None
        assert {"the search for a remedy has not ended"} == {each.remedy.why_not for each in found}
        assert [report.deadlock["loops"]] * len(found) == [
            each.as_json()["loops"] for each in found
        ]

    def test_written_whole_or_not_at_all(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where there is no room for the report with its remedy, the one without it stays."""
        whole = Path.write_text
        given: list[str] = []

        def fill(path: Path, text: str, **kwargs: str) -> int:
            # Each writer has a file of its own, which takes the place of this one.
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

    def test_cannot_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file that cannot be written is a warning; the report is the same."""
        whole = Path.write_text

        def refuse(path: Path, *args: str, **kwargs: str) -> int:
            if path.name.startswith("deadlock.svg"):
                raise OSError(28, "No space left on device")
            return whole(path, *args, **kwargs)

        monkeypatch.setattr(Path, "write_text", refuse)
        report = simulate(CASES["ring_of_1"].build(), log_dir=tmp_path)

        assert (
            f"{report.log_dir}/deadlock.svg could not be written: No space left on device",
        ) == report.warnings
        assert report.deadlock is not None


class TestGrow:
    def test_completes(self) -> None:
        """The program runs again from cycle 0 with the depths found, and says so."""
        found = simulate(CASES["two_at_once"].build(), on_deadlock="grow")
        again = simulate(CASES["two_at_once"].build(), depths={"a_join.1": 4, "b_join.1": 6})

        assert ("completed", 0, None) == (found.status, found.exit_status, found.deadlock)
        assert (again.cycles, again.channels_counters) == (found.cycles, found.channels_counters)
        assert (
            "stopped at cycle 5 (FAB-D001); ran again with --depth a_join.1=4 --depth b_join.1=6",
        ) == found.warnings

    def test_no_depth_helps(self) -> None:
        """Where no depth helps it is reported as ever."""
        found = simulate(CASES["cut_off_sub_tensor"].build(), on_deadlock="grow")

        assert ("deadlock", 3, ()) == (found.status, found.exit_status, found.warnings)

    def test_more_than_depths(self) -> None:
        """Where the remedy takes more than depths, none of it is applied, and that is said."""
        found = simulate(CASES["slots_and_room"].build(), on_deadlock="grow")

        assert ("deadlock", 3) == (found.status, found.exit_status)
        assert (
            "--on-deadlock grow deepens channels: the remedy takes more than that",
        ) == found.warnings

    def test_command_line(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The option that is printed is one to type; --on-deadlock grow does it at once."""
        monkeypatch.chdir(tmp_path)
        assert 3 == main(["run", PROGRAM])
        printed = capsys.readouterr().out
        (option,) = [word for word in printed.split() if word.startswith("join.1=")]
        assert "remedy (checked by a re-run: completes at cycle 75)" in printed
        assert 0 == main(["run", PROGRAM, "--depth", option, "--json"])
        by_hand = json.loads(capsys.readouterr().out)
        assert 0 == main(["run", PROGRAM, "--on-deadlock", "grow", "--json"])
        grown = json.loads(capsys.readouterr().out)

        assert (75, 75) == (by_hand["cycles"], grown["cycles"])
        assert (None, None) == (by_hand["deadlock"], grown["deadlock"])

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_interrupted(self, number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
        """Ctrl-C while depths are tried ends the search; both are reported."""
        run, step, steps = Trial.run, parts._step, iter(range(_STEPS_LATER, -1, -1))
        tried = []

        def try_it(trial: Trial) -> Outcome:
            tried.append(trial)
            return run(trial)

        async def go_on(ports: Ports, name: str) -> bool:
            if tried and not next(steps, -1):
                signal.raise_signal(number)
            return await step(ports, name)

        monkeypatch.setattr(Trial, "run", try_it)
        monkeypatch.setattr(parts, "_step", go_on)
        with Terminations().handled():
            report = stuck("pack_rows")
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

    def test_fails(self) -> None:
        """Where deeper channels lead to an error, the error is told."""
        with Program("fails") as program:
            rows = source("rows", 8)
            tiles = gather("pack", rows, 4)
            steps = ("r0", *["r1"] * 4, "s7")
            sink("y", Script(steps, counts=(2,), name="join")(tiles, rows)[0])
        found = simulate(program).deadlock
        assert found is not None

        expected = "no depth helps: with deeper channels it fails: join: IndexError: "
        assert found["remedy"]["why_not"].startswith(expected)

    def test_effort(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Depths are lowered as far as the effort goes, and the report says that it gave up."""
        monkeypatch.setattr(trial, "EFFORT_ELEMENTS", 3_000)
        monkeypatch.setattr(remedy, "EFFORT_ELEMENTS", 3_000)
        program = CASES["deep_remedy"].build()
        found = remedy.find_remedy(elaborate(program), {}, {}, frozenset(), effort=3_000)

        (depth,) = found.depths
        assert (False, True) == (found.irreducible, 300 <= depth.after)
        assert "completed" == simulate(program, depths={depth.option: depth.after}).status
        assert (
            f"gave up lowering the depths further after {found.trials} runs and 3,000 elements"
        ) == found.why_not
        # Nobody has said that build() takes a depth.
        assert found.every_channel is not None
        assert "[channel] depth = 512" == found.every_channel.write

    @pytest.mark.parametrize(("wanted", "begun"), [(16, [16]), (17, [])])
    def test_most_elements_in_front(self, wanted: int, begun: list[int]) -> None:
        """Sixteen elements are put in front of a loop at most."""
        with Program("many") as program:
            loop = feedback(2 * wanted)
            steps = ("r0", *["r1"] * wanted, *["s0"] * wanted, "s1")
            turn = Script(steps, rounds=2, counts=(2 * wanted, 2), name="turn")
            again, done = turn(source("x", 2), loop)
            loop.connect(again)
            sink("y", done)
        found = remedy.find_remedy(elaborate(program), {}, {}, frozenset())

        assert begun == [front.count for front in found.initial]
        assert bool(begun) == (found.cycles is not None)

    def test_more_and_more(self) -> None:
        """Where every growth lets more in, and no clock beats, the effort is all that ends it."""
        with Program("growing") as program:
            loop = feedback(1)
            (out,) = Script(("s0", "s0", "r0"), name="a")(loop)
            (back,) = Script(("s0", "s0", "r0"), name="b")(out)
            loop.connect(back)
        found = remedy.find_remedy(
            elaborate(program), {}, {}, frozenset({frozenset("ab")}), effort=3_000
        )

        assert found.why_not is not None
        assert ((), 1) == (tuple(found.depths), found.trials)
        assert found.why_not.startswith("no depth helps: with a.0=")

    @pytest.mark.parametrize(
        ("figures", "depths", "more", "told"),
        [
            ({"ending": "interrupted"}, {"b.0": 4}, (),
             "gave up looking after 0 runs and 400,000 elements"),
            ({"ending": "interrupted"}, {}, ("room", "front"),
             "with any on-chip capacity, connect(AT) it had not ended when the search gave up"),
            ({"ending": "interrupted"}, {"b.0": 4}, ("room",),
             "with b.0=4, any on-chip capacity it had not ended when the search gave up"),
            ({"ending": "livelock"}, {"b.0": 4}, (),
             "with deeper channels it moves for ever and gets nowhere"),
            ({"ending": "livelock"}, {"b.0": 1_000, "a.1": 3}, ("front",),
             "with a.1=3, b.0=1,000, connect(AT) it moves for ever and gets nowhere"),
            ({"ending": "error", "failure": "x: gone"}, {"b.0": 4}, (),
             "with deeper channels it fails: x: gone"),
            ({"ending": "error", "failure": "x: gone"}, {}, ("room",),
             "with any on-chip capacity it fails: x: gone"),
            ({"ending": "completed"}, {}, (),
             "a run in timing mode completes with the depths given"),
            ({"loops": frozenset({frozenset("dc"), frozenset("eb")})}, {"b.0": 4}, (),
             "with b.0=4 the program still stops, at b"),
            ({"loops": frozenset({frozenset("dc")})}, {}, (), ""),
        ],
    )  # fmt: skip
    def test_why_not(
        self,
        figures: dict[str, Any],
        depths: dict[str, int],
        more: tuple[str, ...],
        told: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """What was tried, where it is more than depths, and what came of it."""
        with on_a_small_chip(4096, "why") as program:
            loop = feedback(2)
            loop.connect(Script(("r0", "s0"), counts=(2,), name="turn")(loop)[0])
        plan = elaborate(program)
        (closing,) = (each for node in plan.nodes for each in node.inputs)
        assert isinstance(closing, Feedback)

        def explored(search: trial.Search) -> tuple[trial.Change, Outcome]:
            change = search.unchanged.deeper(depths)
            change = change.roomy(None) if "room" in more else change
            change = change.begun(closing, 2) if "front" in more else change
            ended: dict[str, Any] = {
                "ending": "deadlock", "grown": {}, "cycle": 9, "loops": frozenset(),
                "lacks_room": False, "feedbacks": (), "hopeless": False, "elements": 1,
                "enough_bytes": 0, "failure": None,
            }  # fmt: skip
            # Nothing was changed: whatever came of it is no remedy.
            return change, Outcome(**(ended | figures))

        monkeypatch.setattr(remedy, "_explore", explored)
        found = remedy.find_remedy(plan, {}, {}, frozenset(), effort=None)
        place = closing.connected_at
        assert place is not None
        front = f"connect(Initial(True, 2, keep_length=True)(turn.0)) at {place.brief}"
        expected = told.replace("connect(AT)", front)
        if not told.startswith("gave up"):
            expected = f"no depth helps: {expected}" if told else "no depth helps"
        assert expected == found.why_not
        assert ([], [], None, None, 0) == (
            found.depths, found.initial, found.capacity, found.every_channel, found.trials,
        )  # fmt: skip


class TestTrial:
    """One run of a search for depths: how channels grow in it, and what ends it."""

    def tried(
        self, program: Program, *, effort: int | None = None, may_go_round: bool = False
    ) -> Outcome:
        """Return what came of letting the channels of a program grow."""
        whole = Trial(
            elaborate(program), {}, {}, grow=True, effort=effort, capacity_bytes=None,
            may_go_round=may_go_round,
        )  # fmt: skip
        return whole.run()

    @pytest.mark.parametrize("size", [8, 9, 17, 18, 60])
    def test_growth(self, size: int) -> None:
        """A channel grows slot by slot up to 16, and above that by an eighth of what is above 8."""
        with Program("wide") as program:
            sink("y", fork_join("a", size=size, relays=0, count=size))
        found = self.tried(program)
        depth = 2
        while depth < size:
            depth += 1 + max(0, depth - 8) // 8

        assert ("completed", {"a_join.1": depth}) == (found.ending, found.grown)

    @pytest.mark.parametrize(("effort", "ending"), [(150, "interrupted"), (None, "completed")])
    def test_effort(self, effort: int | None, ending: str) -> None:
        """It is looked at every 100,000 cycles how many elements a run has delivered."""
        with Program("slow") as program:
            slow = Script(("s0", "c1000"), rounds=300, counts=(300,), name="slow")
            sink("y", slow()[0])
        found = self.tried(program, effort=effort)

        assert ending == found.ending
        # After 200,000 cycles there are more than 150 for the first time.
        assert (300 if effort is None else 200) == pytest.approx(found.elements, abs=2)

    def test_elements_that_go_round(self) -> None:
        """Where no element comes out a run ends after 20,000 that went round."""
        found = self.tried(round_and_round(), may_go_round=True)

        assert "interrupted" == found.ending
        assert 20_000 < found.elements < 40_000

    def test_doubling_ends_with_a_failure(self) -> None:
        """Deeper channels do not help a program that fails with them: one run tells."""
        with Program("fails") as program:
            rows = source("rows", 8)
            tiles = gather("pack", rows, 4)
            sink("y", Script(("r0", *["r1"] * 4, "s7"), counts=(2,), name="join")(tiles, rows)[0])
        search = trial.Search(elaborate(program), {}, {}, None)

        assert (None, 1) == (search.deepen_all(), search.trials)


class TestEveryChannel:
    """Where the search gives up, one depth for all channels is tried: it is one thing to type."""

    @pytest.mark.parametrize(
        ("parameters", "given", "write"),
        [
            ({"channel_depth": None}, None, "-p channel_depth=512"),
            ({}, None, "[channel] depth = 512"),
            ({"n": 3}, 2, f"{__file__}:{{line}}: Program(..., channel_depth=512)"),
        ],
        ids=["parameter", "hardware", "program"],
    )
    def test_what_to_type(
        self,
        parameters: dict[str, object],
        given: int | None,
        write: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A parameter of build(), the hardware file, or the program, whichever decides it."""
        for module in (trial, remedy, explaining):
            monkeypatch.setattr(module, "EFFORT_ELEMENTS", 9_000)

        def build(depth: int | None) -> Program:
            with Program("deep", channel_depth=depth) as program:
                sink("y", fork_join("a", size=300, relays=0, count=600))
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

    def test_not_where_the_search_ends(self) -> None:
        """Where the depths were lowered as far as they go, there is no need for it."""
        report = stuck("deep_remedy")
        assert report.deadlock is not None

        assert report.deadlock["remedy"]["every_channel"] is None


class TestLivelock:
    def test_status(self) -> None:
        """A livelock is told apart from a deadlock, and has its exit status."""
        found = simulate(round_and_round(), livelock_cycles=10_000)

        assert ("livelock", 3) == (found.status, found.exit_status)

    @pytest.mark.parametrize("order", SCHEDULES)
    def test_schedules(self, order: str | int) -> None:
        """The report does not depend on where the loop was when it was stopped."""
        with schedule(order):
            found = simulate(round_and_round(), livelock_cycles=10_000).as_json()
        expected = simulate(round_and_round(), livelock_cycles=10_000).as_json()

        assert expected | {"wall_seconds": None} == found | {"wall_seconds": None}

    def test_log(self, tmp_path: Path) -> None:
        """The log does not depend on where the loop was, either, except for heartbeats."""
        texts = set()
        for order in SCHEDULES:
            with schedule(order):
                report = simulate(round_and_round(), livelock_cycles=10_000, log_dir=tmp_path)
            assert report.log_dir is not None
            text = (Path(report.log_dir) / "events.jsonl").read_text(encoding="utf-8")
            texts.add("".join(line for line in text.splitlines() if "heartbeat" not in line))

        assert 1 == len(texts)

    def test_work_is_progress(self) -> None:
        """A loop that works is slow, not stuck: it is let run to its end."""
        with Program("slow") as program:
            loop = feedback(1)
            steps = ("r0", "s0", "c900")
            again, done = Script(
                steps, once=("s0", "s1"), rounds=1_000, counts=(1, 1), name="work"
            )(loop)
            loop.connect(again)
            sink("y", done)

        assert "completed" == simulate(program, livelock_cycles=10_000).status

    def test_a_sink_is_progress(self) -> None:
        """A long stream of cheap elements is no livelock: a sink receives them."""
        with Program("long") as program:
            # Nobody charges work: that would be progress, too.
            stream = Script(("s0",), rounds=15_000, counts=(15_000,), name="x")()[0]
            (passed,) = Script(("r0", "s0"), counts=(15_000,), name="between")(stream)
            Script(("r0",), counts=(), name="y")(passed)

        assert "completed" == simulate(program, livelock_cycles=10_000).status


class TestEnds:
    def test_left_over(self) -> None:
        """Elements that nobody took are a warning of a run that completed."""
        with Program("left-over") as program:
            Script(("r0",), rounds=2, counts=(), name="y")(source("x", 5))

        found = simulate(program)
        assert ("completed", 0) == (found.status, found.exit_status)
        assert ("FAB-D004: x.0 -> y.0: 3 elements were left over: y had ended",) == found.warnings

    def test_inputs_drain_side_by_side(self) -> None:
        """Who has ended discards from all its inputs at once: none waits for another's end.

        The fork cannot end its first branch before the second one takes what is left.
        """
        with Program("drain", channel_depth=1) as program:
            stream = source("x", 20)
            Script(("r0", "r1"), rounds=1, counts=(), name="y")(stream, relay("late", stream))

        assert "completed" == simulate(program).status

    def test_partial(self, tmp_path: Path) -> None:
        """While others still move, the log says early who never will."""
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


def waiting(name: str, peer: str, operation: str = "receive", *, line: int = 1) -> BlockedUnit:
    """Return a unit that waits for another one, on the channel between them."""
    ends = (name, peer) if operation == "send" else (peer, name)
    channels = [] if operation in {"capacity", "circling"} else [f"{ends[0]}.0 -> {ends[1]}.1"]
    return BlockedUnit(
        name, "Relay", operation, False, channels, [peer], 1_000 + line, "by_hand.py", line,
        "12 bytes on chip", None, None,
    )  # fmt: skip


def looped(code: str, units: list[BlockedUnit], hint: str = "", held: int = 2) -> Loop:
    """Return a loop of units, each of whose channels holds so many of two elements."""
    names = [name for unit in units for name in unit.channels]
    channels = [
        LoopChannel(name, name.rpartition(" -> ")[2], 2, held, 1_234, 1_232, "24", "[4, 6]", None)
        for name in names
    ]
    return Loop(code, units, channels, f"{units[0].unit} began it.", hint)


def by_hand() -> DeadlockReport:
    """More of everything than is shown: units, channels, loops, changes, and what waits behind."""
    names = [f"unit_{number}" for number in range(13)]
    # Three of one kind are one row; ten rows are two more than there is room for, and one.
    lines = (0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    units = [
        waiting(name, peer, "send" if line % 2 else "receive", line=line)
        for name, peer, line in zip(names, [*names[1:], names[0]], lines, strict=True)
    ]
    others = [
        looped(
            "FAB-D001", [waiting(f"{kind}_{number}", f"{kind}_{number}", "send", line=20 + line)]
        )
        for line, (kind, count) in enumerate((("a", 1), ("b", 3), ("c", 1), ("d", 2)))
        for number in range(count)
    ]
    again = [replace(unit, unit=f"again_{unit.unit}") for unit in units]
    # More than six lines of a screen.
    told = " ".join(f"{name} could not have gone on before the one behind it." for name in names)
    behind = [
        waiting(f"{name}_{number}", "unit_0", line=30 + line)
        for line, (name, count) in enumerate(
            zip("zyxwvuts", (1, 2, 1, 1, 3, 1, 1, 1_001), strict=True)
        )
        for number in range(count)
    ]
    fronts = [
        Front("s", "[4] of bool", f"Initial({n})", "by_hand.py", 40 + n, n, 70 + n, n == 1)
        for n in range(1, 7)
    ]
    fronts[1] = replace(fronts[1], rejected_cycle=None, statement="loop.connect(Initial(2)(s))")
    depths = [Depth(f"unit_{n}.1", 2, 1_000 + n, 80 + n, n == 1) for n in range(1, 7)]
    remedy = Remedy(
        depths, Capacity(1_000, 2_048, 90, True), 12_345, True, 9, "", fronts,
        EveryChannel(2, 1_024, 12_000, "-p channel_depth=1024"),
    )  # fmt: skip
    events = [Event(1_000 + n, f"unit_{n}", f"did {n}") for n in range(6)]
    return one_line(
        DeadlockReport(
            1, "by hand", "FAB-D001", "capacity deadlock", 1_234,
            [replace(looped("FAB-D001", units), cause=told), looped("FAB-D001", again), *others],
            behind, 1_500, remedy, events, "",
        )
    )  # fmt: skip


class TestText:
    @pytest.mark.parametrize("columns", [None, 72])
    def test_by_hand(self, columns: int | None, golden: Callable[[str, str], None]) -> None:
        """Of what is too much for a screen so much is shown, and how much is left out is said."""
        found = by_hand()
        text = "\n".join([*report_lines(found, columns), "", found.summary, ""])
        golden(f"by_hand_{columns or 'wide'}.txt", text)

    def test_few_by_hand(self, golden: Callable[[str, str], None]) -> None:
        """What is just not too much is shown whole; what waits for memory or goes round says so."""
        found = by_hand()
        first, others = found.loops[0], found.loops[2:]
        units = [replace(unit, line=number) for number, unit in enumerate(first.units[:9])]
        units[7] = waiting("unit_7", "unit_0", "capacity")
        units[2] = replace(units[2], channels=[*units[2].channels, "unit_3.1 -> unit_2.0"])
        whole = looped("FAB-D006", units[:6] + units[7:], held=1)
        channels = [
            replace(whole.channels[0], ended_cycle=1_001, expected="D_0"),
            replace(whole.channels[1], shape="[24]"),
            *whole.channels[2:6],
        ]
        remedy = replace(
            found.remedy,
            depths=found.remedy.depths[:4],
            capacity=None,
            initial=[replace(found.remedy.initial[0], statement="")],
            every_channel=None,
        )
        fits = replace(
            found,
            loops=[replace(whole, channels=channels), *others[:5]],
            behind=found.behind[:8],
            remedy=remedy,
            last_events=found.last_events[:3],
        )
        circling = looped("FAB-L001", [waiting("alone", "other", "circling")])
        moving = replace(
            found, code="FAB-L001", kind="livelock (a heuristic)", loops=[circling], behind=[]
        )
        texts = []
        for report in (
            fits,
            replace(fits, remedy=replace(remedy, initial=[], why_not="nobody knows")),
            replace(moving, remedy=Remedy([], remedy.capacity, 7, True, 1, "")),
            replace(moving, remedy=Remedy([], None, None, False, 1, NOT_SOUGHT)),
        ):
            told = one_line(report)
            texts += [*report_lines(told), "", told.summary, ""]
        golden("few_by_hand.dot", picture.dot(fits))
        golden("few_by_hand.txt", "\n".join(texts))

    @pytest.mark.parametrize(
        ("more", "grows"),
        [
            ({}, True),
            ({"capacity": Capacity(1, 2, None, False)}, False),
            ({"initial": [Front("s", "[4]", "Initial(1)", "by_hand.py", 1, 1, 1, False)]}, False),
        ],
        ids=["depths", "capacity", "initial"],
    )
    def test_growing(self, more: dict[str, Any], grows: bool) -> None:
        """Growth is offered where depths alone are the remedy."""
        depths = [Depth(f"unit_{n}.1", 2, 4, None, False) for n in range(5)]
        remedy = replace(Remedy(depths, None, 7, True, 1, ""), **more)
        (line,) = [
            line
            for line in report_lines(replace(by_hand(), remedy=remedy))
            if line.startswith("    and 1 more in deadlock.json")
        ]
        assert grows == line.endswith("; --on-deadlock grow runs with all of them")

    def test_every_channel_alone(self) -> None:
        """A depth for all of them is a remedy, also where nothing was found channel by channel."""
        every = EveryChannel(2, 1_024, 12_000, "-p channel_depth=1024")
        remedy = Remedy([], None, None, False, 1, "no depth", every_channel=every)
        lines = report_lines(replace(by_hand(), remedy=remedy))
        at = lines.index("  remedy (checked by a re-run: completes at cycle 12,000)")

        assert "    depth of every channel 2 -> 1,024  -p channel_depth=1024" == lines[at + 1]
        assert not any("no depth" in line for line in lines)

    @pytest.mark.parametrize(
        ("written", "told"),
        [
            ("loop.connect(stream)", "loop.connect(Initial(True, keep_length=True)(stream))"),
            (
                "loops[0].connect(streams[0])",
                "loops[0].connect(Initial(True, keep_length=True)(streams[0]))",
            ),
            ("_ = loop.connect(stream)", ""),
            ("loop.connect(stream); connected = True", ""),
            ("connect(stream)", ""),
            ("close(loop, stream)", ""),
            ("closing.close(stream)", ""),
            ("loop.connect(stream=stream)", ""),
            ("loop.connect(*streams)", ""),
            ("loop.connect(stream if streams else loop)", ""),
            ("assert loop.connect(stream) is None", ""),
            # As long as a line may be, and longer.
            *(
                (
                    f"loop.connect(named['{name}'])",
                    f"loop.connect(Initial(True, keep_length=True)(named['{name}']))"
                    if fits
                    else "",
                )
                for name, fits in (("n" * 44, True), ("n" * 45, False))
            ),
        ],
    )
    def test_statement(self, written: str, told: str, tmp_path: Path) -> None:
        """The user's line with an element in front, where it is a plain ``connect``."""
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

        assert told == front["statement"]

    @pytest.mark.parametrize(
        ("count", "last"), [(3, "hint 2."), (4, "And so on for 2 more loops.")]
    )
    def test_hints(self, count: int, last: str) -> None:
        """One sentence for each hint, of more than three for the first two."""
        found = by_hand()
        loops = [
            looped("FAB-D002", [waiting(f"u{k}", f"u{k}", line=k)], f"hint {k}")
            for k in range(count)
        ]
        report = replace(found, loops=loops, remedy=Remedy([], None, None, False, 1, "no depth"))
        lines = report_lines(report)
        at = lines.index("  remedy")
        assert lines[at + 1 : at + 5] == [
            "    no depth.", "    hint 0.", "    hint 1.", f"    {last}",
        ]  # fmt: skip
        assert not lines[at + 5]

    def test_forty_lines(self) -> None:
        """However large the deadlock, the report fits on a screen."""
        with Program("large") as program:
            for lane in range(24):
                size = 3 + lane
                sink(f"y_{lane}", fork_join(f"l{lane}", size=size, relays=lane, count=size))

        report = simulate(program)
        lines = report_lines(msgspec.convert(report.deadlock, DeadlockReport))
        assert len(lines) <= LINES
        assert "\n".join(lines).isascii()

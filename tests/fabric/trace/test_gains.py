"""What would help: stages and changes against runs of programs that have them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

# Any: accounts and a trace that have what is asked for, nothing else.
from typing import Any

import pytest

from fabric import Hardware, Trace, simulate
from fabric.analysis.symbolic.metrics import metrics_of
from fabric.analysis.symbolic.substitution import Substitution
from fabric.analysis.trace.analysis.roots import Root
from fabric.analysis.trace.analysis.stalled import (
    SlowedUnit,
    StageFigures,
    slow_memory_of,
    stages_of,
)
from fabric.analysis.trace.analysis.what_if import Gain
from fabric.extend import OnChipDescription
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.telling.wording import Family
from fabric.timing.engine.off_chip import (
    BusCycles,
    ChannelTraffic,
    ClientTraffic,
    MemoryCounters,
)
from tests.fabric.test_pages import buffers_on
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import program, record

_STEPS = ("s0",), ("r0", "c4", "s0"), ("r0", "c10", "s0"), ("r0",)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return the trace of units in a row, two of which take their time."""
    return record(chain(*_STEPS, elements=50), tmp_path_factory.mktemp("slow"))[1]


class TestChanges:
    def test_half_the_work(self, slow: Trace) -> None:
        """Two are of one family; half of it is a run of units that work half as long."""
        gains = slow.stalls().gains
        assert gains is not None
        (family,) = (each for each in gains if each.kind == "family")
        half = chain(("s0",), ("r0", "c2", "s0"), ("r0", "c5", "s0"), ("r0",), elements=50)
        none = chain(("s0",), ("r0", "s0"), ("r0", "s0"), ("r0",), elements=50)

        assert "unit_1..2 took half as long" == family.change
        assert simulate(half).cycles == family.changed_cycles
        assert simulate(none).cycles == family.cycles

    def test_the_hbm(self, tmp_path: Path) -> None:
        """The memory comes first, whatever gains most; then families, then all channels."""
        trace = record(program("moe static"), tmp_path)[1]
        stalls = trace.stalls()
        kinds = [gain.kind for gain in stalls.gains or ()]

        assert "memory" == kinds[0]
        assert {"memory", "family", "depth"} >= {*kinds}
        (memory,) = (gain for gain in stalls.gains or () if gain.kind == "memory")
        assert "the HBM answered at once" == memory.change
        assert memory.changed_cycles == memory.cycles < trace.cycles

    def test_capacity(self, tmp_path: Path) -> None:
        """Room for all buffers takes what a run takes without a limit, about."""
        few = Hardware(on_chip=OnChipDescription(capacity_bytes=8))
        report, trace = record(buffers_on(few, 6, 2), tmp_path)
        room = simulate(buffers_on(Hardware(), 6, 2)).cycles
        (gain,) = (each for each in trace.stalls().gains or () if each.kind == "memory")

        assert "on-chip capacity were unlimited" == gain.change
        assert room == gain.cycles == gain.changed_cycles
        assert report.cycles is not None
        assert gain.cycles < (gain.half_cycles or 0) < report.cycles


class TestStages:
    def test_traffic_and_memory(self, tmp_path: Path) -> None:
        """What stages move and require is the program's, each byte once."""
        wired = program("moe static")
        report, trace = record(wired, tmp_path)
        stages = trace.stalls().folded.stages

        assert len(report.units) == sum(stage.units for stage in stages)
        assert report.hbm_bytes_moved == sum(stage.off_chip_bytes for stage in stages)
        assert report.on_chip_requirement_bytes == sum(stage.on_chip_bytes or 0 for stage in stages)

    def test_path(self, slow: Trace) -> None:
        """Shares are of the critical path, hops aside."""
        stalls = slow.stalls()
        path = sum(
            share.cycles for share in stalls.critical_path.shares if share.root.unit is not None
        )

        stages = stalls.folded.stages
        assert path == sum(stage.path_cycles for stage in stages)
        (stage,) = (stage for stage in stages if stage.units == 2)
        assert stage.headroom_cycles == stalls.cycles - min(
            gain.cycles for gain in stalls.gains or () if gain.kind == "family"
        )

    def test_a_stopped_run(self, tmp_path: Path) -> None:
        """Nothing is said of the headroom of a run that cannot be timed to its end."""
        trace = record(program("simplified_moe"), tmp_path, depths={"reassemble_1.2": 2})[1]

        assert {None} == {stage.headroom_cycles for stage in trace.stalls().folded.stages}

    def test_order(self) -> None:
        """By cycles of the path, then by headroom, traffic and memory; what is not known is 0."""
        figures = {
            # Cycles of the path, those saved, bytes off chip and on chip, by unit.
            "a": (5, 0, 0, 0), "b": (5, 1, 0, 0), "c": (5, None, 7, 0), "e": (0, None, 0, None),
            "d": (0, None, 0, 1), "f": (0, None, 8, None), "g": (9, None, 0, None),
            "h": (5, 0, 0, 2), "i": (5, 0, 3, 0),
        }  # fmt: skip
        names = list(figures)

        def of(unit: int, place: int) -> int:
            return figures[names[unit]][place] or 0

        units = range(len(names))
        accounts: Any = SimpleNamespace(
            names=SimpleNamespace(
                first=[*units],
                families=[Family(name, (unit,)) for unit, name in enumerate(names)],
                family_of=lambda unit: Family(names[unit], (unit,)),
                wired=[(f"{name}.py", 3) for name in names],
            ),
            on_path=lambda: {
                Root("unit", -1): 90,
                **{Root("unit", unit): of(unit, 0) for unit in units},
            },
            gains=[
                Gain("family", name, 100 - saved, None, False)
                for name, (_, saved, _, _) in figures.items()
                if saved
            ],
            tried=[unit for unit in units if figures[names[unit]][1] is not None],
            cycles=100,
        )
        trace: Any = SimpleNamespace(
            on_chip_bytes=[of(unit, 3) for unit in units],
            rows=lambda _: [(unit, of(unit, 2)) for unit in units if of(unit, 2)],
        )

        found = stages_of(trace, accounts)
        assert "gbcihafde" == "".join(stage.name for stage in found)
        assert StageFigures("b", "b.py", 3, 1, 5, 1, 0, 0) == found[1]
        assert StageFigures("c", "c.py", 3, 1, 5, None, 7, 0) == found[2]
        assert StageFigures("h", "h.py", 3, 1, 5, 0, 0, 2) == found[4]
        trace.on_chip_bytes = None
        assert {None} == {stage.on_chip_bytes for stage in stages_of(trace, accounts)}


class TestSlowMemory:
    """Why a memory was slow, of counters by hand."""

    def slow(
        self, bus: tuple[int, ...], *, hits: int = 0, conflicts: int = 0, waited: int = 5
    ) -> Any:
        """Return what is said of one channel, for which unit 1 waited, of three."""
        clients = (
            ClientTraffic(0, 10, 5, 0, 5, 40, 50, 60), ClientTraffic(1, 4, 1, 0, 3, 2, 6, 10),
            ClientTraffic(2, 0, 0, 0, 0, 0, 0, 0), ClientTraffic(3, 8, 0, 0, 2, 8, 4, 2),
        )  # fmt: skip
        channel = ChannelTraffic(hits + conflicts, 0, hits, 0, conflicts, BusCycles(*bus))
        counters = MemoryCounters((channel,), clients, 20, ())
        units = [
            SimpleNamespace(unit=0, hbm=0), SimpleNamespace(unit=1, hbm=waited),
            SimpleNamespace(unit=2, hbm=9), SimpleNamespace(unit=3, hbm=waited and 7),
        ]  # fmt: skip
        accounts: Any = SimpleNamespace(
            units=units, names=SimpleNamespace(units=["a", "d", "c", "b"])
        )
        assert slow_memory_of(None, accounts) is None
        return slow_memory_of(counters, accounts)

    def test_units(self) -> None:
        """Those that waited and asked, the longest first, with means of their requests."""
        assert self.slow((1, 0, 0, 0, 0, 0), waited=0) is None
        one, other = (
            SlowedUnit("b", 7, 8, 1.0, 0.5, 0.25, 25.0),
            SlowedUnit("d", 5, 4, 0.5, 1.5, 2.5, 75.0),
        )
        assert (one, other) == self.slow((1, 0, 0, 0, 0, 0)).units
        assert ("b", "d") == tuple(
            each.name for each in self.slow((1, 0, 0, 0, 0, 0), waited=7).units
        )
        assert ("d", "b") == tuple(
            each.name for each in self.slow((1, 0, 0, 0, 0, 0), waited=8).units
        )

    def test_nothing_was_moved(self) -> None:
        """Without a cycle of a bus there is nothing to say."""
        assert () == self.slow((0, 0, 0, 0, 0, 0), hits=4).findings

    @pytest.mark.parametrize(
        ("bus", "conflicts", "begin"),
        [
            # Data, refresh, turnaround, window, conflict, idle: of a hundred cycles.
            ((100, 0, 0, 0, 0, 0), 20, ""), ((86, 4, 0, 0, 0, 10), 20, ""),
            ((95, 5, 0, 0, 0, 0), 20, "Refresh"), ((96, 0, 4, 0, 0, 0), 20, ""),
            ((95, 0, 5, 0, 0, 0), 20, "Turnaround"), ((50, 0, 0, 0, 0, 50), 20, "Idle"),
            ((51, 0, 0, 0, 0, 49), 20, ""), ((91, 0, 0, 9, 0, 0), 20, ""),
            ((90, 0, 0, 10, 0, 0), 19, "Window full"), ((91, 0, 0, 0, 9, 0), 20, ""),
            ((90, 0, 0, 10, 0, 0), 20, "Window full, Row conflicts"),
            ((90, 0, 0, 0, 10, 0), 19, "Rows and commands"),
            ((90, 0, 0, 0, 10, 0), 20, "Rows and commands, Row conflicts"),
            ((80, 0, 0, 10, 10, 0), 0, "Rows and commands"),
            ((79, 0, 0, 11, 10, 0), 0, "Window full, Rows and commands"),
            ((79, 0, 0, 10, 11, 0), 99, "Rows and commands, Row conflicts"),
            ((30, 5, 5, 5, 5, 50), 20, "Turnaround, Refresh, Idle"),
        ],
    )  # fmt: skip
    def test_findings(self, bus: tuple[int, ...], conflicts: int, begin: str) -> None:
        """A sentence for each use from its share on; for row conflicts where they lose cycles."""
        spent, rows, *found = self.slow(bus, hits=100 - conflicts, conflicts=conflicts).findings
        assert spent.startswith("Cycles of its buses: data ")
        assert rows.startswith("Of its requests: row hits ")
        assert begin == ", ".join(each.split(":")[0] for each in found)

    def test_no_requests(self) -> None:
        """Nothing is said of the conflicts of a memory that has served nothing."""
        assert 3 == len(self.slow((90, 0, 0, 0, 10, 0)).findings)


def test_requirement_of_operators() -> None:
    """Sizes that nobody knows leave all of it out."""
    plan = elaborate(program("swiglu"))
    metrics = metrics_of(plan, Substitution({}))

    assert sum(metrics.on_chip_bytes) == metrics.paper.on_chip_bytes
    unknown = metrics_of(elaborate(program("simplified_moe")), Substitution({}))
    assert (len(unknown.operators) == len(unknown.on_chip_bytes)) == isinstance(
        unknown.paper.on_chip_bytes, int
    )

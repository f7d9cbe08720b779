from __future__ import annotations

from pathlib import Path

import pytest

from fabric import Hardware, Program
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.graph.loading.program_file import load_program
from tests.compiled.both import both
from tests.outcomes import outcome_under_every_schedule
from tests.profiles import spread
from tests.programs.loading import PROGRAMS

_EIGHT = BankedDescription(channels=8)
_NARROW = BankedDescription(
    channels=1,
    read_window_bursts=4,
    write_window_bursts=4,
    requests_per_bundle=4,
    mapping="row-bank-rank-column-channel",
)
_PROGRAMS: list[tuple[str, dict[str, object], BankedDescription]] = [
    ("moe", {"batch": 4, "tile_n": 4}, _EIGHT),
    ("moe", {"batch": 4, "tiling": "dynamic"}, _NARROW),
    *(
        (name, {}, hbm)
        for name in ("swiglu", "ragged_attention", "graph_layer")
        for hbm in (_EIGHT, _NARROW)
    ),
]


def _program(name: str, hbm: BankedDescription, parameters: dict[str, object]) -> Program:
    given = [f"{key}={value}" for key, value in parameters.items()]
    return load_program(PROGRAMS / f"{name}.py", given, Hardware(hbm=hbm)).program


class TestOneReport:
    @pytest.mark.parametrize(("name", "parameters", "hbm"), spread(_PROGRAMS[::-1], 1))
    def test_compiled_report_equals_that_of_tasks(
        self, name: str, parameters: dict[str, object], hbm: BankedDescription, tmp_path: Path
    ) -> None:
        found = both(lambda: _program(name, hbm, parameters), tmp_path)
        assert "completed" == found.outcome["report"].status
        assert found.compiled
        assert not found.gave_up

    @pytest.mark.parametrize("name", [pytest.param("moe", marks=pytest.mark.deep), "swiglu"])
    def test_report_is_equal_under_every_schedule(self, name: str, tmp_path: Path) -> None:
        parameters: dict[str, object] = {"batch": 4} if name == "moe" else {}
        outcome_under_every_schedule(
            lambda: _program(name, _EIGHT, parameters), tmp_path, mode="timing", engine="tasks"
        )

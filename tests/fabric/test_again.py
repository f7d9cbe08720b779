from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fabric import Hardware, Report, simulate
from fabric.graph.loading.program_file import load_program

_PROGRAMS = Path(__file__).parents[2] / "programs"


def _same(report: Report) -> Report:
    return replace(report, wall_seconds=None)


@pytest.mark.parametrize("name", ["simplified_moe", "swiglu", "top2_moe", "dynamic_tiling"])
def test_other_depths_without_other_wiring(name: str) -> None:
    program = load_program(_PROGRAMS / f"{name}.py", (), Hardware()).program
    first = simulate(program)
    channel = first.channels_counters[-1].name.partition(" -> ")[2]
    depths = {channel: 7}
    fresh = load_program(_PROGRAMS / f"{name}.py", (), Hardware()).program

    assert _same(simulate(fresh, depths=depths)) == _same(simulate(program, depths=depths))
    assert _same(first) == _same(simulate(program))


def test_nothing_is_prepared_twice() -> None:
    script = (
        "import sys\n"
        "from fabric import Hardware, simulate\n"
        "from fabric.timing.engine.machine_code import MachineCode\n"
        "from fabric.graph.loading.program_file import load_program\n"
        "linked = []\n"
        "link = MachineCode.link\n"
        "def counted(code):\n"
        "    linked.append(code)\n"
        "    return link(code)\n"
        "MachineCode.link = counted\n"
        "def run():\n"
        f"    loaded = load_program({str(_PROGRAMS / 'simplified_moe.py')!r}, (), Hardware())\n"
        "    simulate(loaded.program)\n"
        "run()\n"
        "known, loops = set(sys.modules), len(linked)\n"
        "run()\n"
        "print(loops > 0, len(linked) - loops, set(sys.modules) - known)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )

    assert "True 0 set()\n" == done.stdout

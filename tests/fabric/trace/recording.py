from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fabric import Hardware, Program, Report, simulate
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.graph.loading.program_file import load_program
from tests.deadlock.cases import CASES

_ROOT: Final = Path(__file__).parents[3]

PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "simplified_moe": (),
    "simplified_moe tokens=40": ("tokens=40", "experts=4"),
    "swiglu": ("batch=32", "hidden=64", "inter=64"),
    "moe static": ("model=tiny", "batch=16", "tile_n=4"),
    "moe regions": ("model=tiny", "batch=16", "tile_n=4", "regions=2"),
    "moe dynamic": ("model=tiny", "batch=16", "tiling=dynamic"),
    "attention": ("requests=4", "regions=2"),
}


def program(name: str) -> Program:
    if name in CASES:
        return CASES[name].build()
    file = _ROOT / "programs" / f"{name.split(maxsplit=1)[0]}.py"
    return load_program(str(file), PROGRAMS.get(name, ()), Hardware()).program


def record(
    wired: Program,
    folder: Path,
    options: TraceOptions | None = None,
    depths: Mapping[str, int] | None = None,
    **settings: Any,
) -> tuple[Report, Trace]:
    options = TraceOptions() if options is None else options
    report = simulate(wired, log_dir=folder, trace=options, depths=depths, **settings)
    assert report.log_dir is not None
    return report, Trace(Path(report.log_dir))


def pairs(values: list[Any]) -> list[tuple[Any, Any]]:
    return list(itertools.pairwise(values))


def until_traced(run: subprocess.Popen[Any], folder: Path) -> None:
    while not list(folder.glob("states-*.parquet")):
        assert run.poll() is None
        time.sleep(0.05)

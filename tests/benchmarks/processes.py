"""Processor seconds of commands, each in a child process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]

BASE: Final = ("-c", "import numpy, trio, structlog")

QWEN: Final = (
    "model=qwen3-30b-a3b",
    "batch=64",
    "tile_n=64",
    "routing=programs/data/traces/expert_routing/qwen_b64/032_012.npz",
)
"""Parameters of ``programs/moe.py`` for a layer of 2,444 operators."""


class Taken(NamedTuple):
    seconds: float
    printed: str


def taken_by(*arguments: str) -> Taken:
    """Run Python with ``arguments`` in the repository.

    BLAS has one thread, as in commands. Further threads would wait for work, which takes processor
    time.
    """
    keeping = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    keeping.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=keeping,
            stdout=printed,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, arguments
        printed.seek(0)
        text = printed.read().decode()
    return Taken(usage.ru_utime + usage.ru_stime, text)


def best_of(rounds: int, *commands: Sequence[str]) -> tuple[float, ...]:
    for command in commands:
        taken_by(*command)
    times = [[taken_by(*command).seconds for command in commands] for _ in range(rounds)]
    return tuple(min(column) for column in zip(*times, strict=True))

"""What sizing has to find, found by trying all that there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import count, islice, product
from random import Random

import numpy as np

from fabric.retiming.record import Record
from fabric.retiming.recording import Recording
from fabric.retiming.retimer import NO_LIMIT
from fabric.runs.execution import Execution, Settings
from fabric.sizing.goal import Goal
from fabric.sizing.objective import Objective
from fabric.sizing.problem import Depths, Limit, Problem, Slot, Variable
from fabric.wiring.elaborate import elaborate
from tests.fabric.sizing.by_hand import cycles_of
from tests.fabric.sizing.networks import Network, network, options_of, program_of, shape

__all__ = ["GOALS", "Case", "cases", "run"]

GOALS = tuple(map(Goal.parse, ("same-cycles", "slowdown=1.1", "deadlock-free")))

_VECTORS = 100_000
"""Networks with more vectors of depths than this are left out."""


def run(network: Network, depths: Sequence[int]) -> tuple[str, Record | None]:
    """Return how a run of a network ends, and its record where it completes."""
    program = program_of(network)
    recording = Recording(elaborate(program))
    options = dict(zip(options_of(network.shape), depths, strict=True))
    settings = Settings(
        functional=False,
        depths=options,
        hops={},
        progress=None,
        livelock_cycles=1_000_000,
        trace=None,
        observers=(recording,),
        compiles=False,
    )
    execution = Execution(program, settings, lambda _: None)
    status = execution.execute()
    return status, recording.record(execution.machine) if status == "completed" else None

"""Channels that take one element a cycle and give one: both engines and re-timing agree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Hardware, Program, lower_bounds, simulate
from fabric.explore.sizing import running
from fabric.extend import ChannelDescription
from fabric.graph.wiring.program import hardware_scope
from fabric.runs.options import Options
from fabric.timing.retiming import events as e
from fabric.timing.retiming.retimer import Retimer
from tests.compiled.both import both
from tests.compiled.test_both_engines import SHIPPED, check_network, check_program, hopped
from tests.deadlock.test_random import Network, networks
from tests.profiles import examples, spread
from tests.programs.loading import program as shipped

WIRES = Hardware(channel=ChannelDescription(interval_cycles=1))


@pytest.fixture(autouse=True)
def wires() -> Iterator[None]:
    """Let all programs have channels of wires."""
    with hardware_scope(WIRES):
        yield


def program(name: str, **parameters: object) -> Program:
    """Return a shipped program on the file that says the same."""
    return shipped(name, "wires.toml", **parameters)


@pytest.mark.parametrize(("name", "parameters"), spread(SHIPPED, 4))
def test_shipped(name: str, parameters: dict[str, Any], tmp_path: Path) -> None:
    """Shipped programs under both engines: reports, states and logs."""
    found = both(lambda: program(name, **parameters), tmp_path)

    assert found.compiled
    assert found.said["report"].hardware["channel"]["interval_cycles"] == 1


@examples(quick=8, deep=60)
@given(data=st.binary(min_size=300, max_size=300))
def test_programs(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Random programs under any depths and hops, some of which get stuck."""
    with hardware_scope(WIRES):
        check_program(data, tmp_path_factory.mktemp("programs"))


@examples(quick=8, deep=60)
@given(network=networks(merging=True))
def test_networks(network: Network, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Random networks with feedback and merges."""
    check_network(network, tmp_path_factory.mktemp("networks"))


def apart(stamps: np.ndarray, base: np.ndarray) -> bool:
    """Whether the stamps of each channel are at least a cycle apart."""
    return all((np.diff(each) >= 1).all() for each in np.split(stamps, base[1:-1]))


@pytest.mark.parametrize(
    "name", ["simplified_moe", pytest.param("top2_moe", marks=pytest.mark.deep)]
)
@pytest.mark.parametrize("seed", spread(range(5), 2))
def test_retiming(name: str, seed: int) -> None:
    """A record timed again is the run, also with depths that it did not have."""

    def build() -> Program:
        return program(name)

    drawn = hopped(build, random.Random(f"{name} {seed}"))
    depths = dict.fromkeys(drawn["depths"], 12)
    ran = running.recorded(build(), depths, Options(hops=drawn["hops"]))
    record = ran.record
    assert record is not None
    retimer = Retimer(record)

    assert retimer.time(record.depths).cycles == record.cycles
    sent = (record.events[:, 0] & e.KIND) == e.SEND
    taken = (record.events[:, 0] & e.KIND) == e.TAKE
    for kind in (sent, taken):
        clocks = retimer.clocks[: len(record.events)][kind]
        channel = (record.events[:, 0] >> e.SHIFT)[kind]
        order = np.argsort(channel, kind="stable")
        first = np.flatnonzero(np.diff(channel[order], prepend=-1))
        assert apart(clocks[order], np.append(first, len(order)))
    assert retimer.blamed(retimer.time(record.depths)) is not None


@pytest.mark.parametrize("name", ["simplified_moe", "swiglu"])
def test_bounds(name: str) -> None:
    """What no run beats on the paper's channels none beats on these, which are slower here."""
    built = program(name)
    slow = simulate(built, mode="timing").cycles
    fast = simulate(shipped(name), mode="timing").cycles

    assert slow is not None
    assert fast is not None
    assert lower_bounds(built).at_least["cycles"] <= slow
    assert fast <= slow

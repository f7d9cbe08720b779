from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Hardware, Program
from fabric.explore.sizing import running
from fabric.graph.hardware.file import load_hardware
from fabric.graph.wiring.program import hardware_scope
from fabric.runs.options import Options
from fabric.timing.retiming.retimer import Retimer
from tests.compiled.both import both
from tests.compiled.test_both_engines import SHIPPED, check_network, check_program, hopped
from tests.deadlock.test_random import Network, networks
from tests.profiles import examples, spread
from tests.programs.loading import PROGRAMS
from tests.programs.loading import program as shipped

FILES = "wires.toml", "registered.toml"
WIRES = [load_hardware(PROGRAMS / "hardware" / file) for file in FILES]


@pytest.mark.parametrize(("name", "parameters"), spread(SHIPPED[::3], 2))
@pytest.mark.parametrize("file", FILES)
def test_shipped_programs_on_wires_are_equal_in_both_engines(
    name: str, parameters: dict[str, Any], file: str, tmp_path: Path
) -> None:
    with hardware_scope(load_hardware(PROGRAMS / "hardware" / file)):
        found = both(lambda: shipped(name, file, **parameters), tmp_path)

    assert found.compiled
    assert found.outcome["report"].hardware["channel"]["interval_cycles"] == 1


@examples(quick=4, deep=60)
@given(data=st.binary(min_size=300, max_size=300), hardware=st.sampled_from(WIRES))
def test_random_programs_on_wires_are_equal_in_both_engines(
    data: bytes, hardware: Hardware, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with hardware_scope(hardware):
        check_program(data, tmp_path_factory.mktemp("programs"))


@examples(quick=4, deep=60)
@given(network=networks(merging=True), hardware=st.sampled_from(WIRES))
def test_random_networks_on_wires_are_equal_in_both_engines(
    network: Network, hardware: Hardware, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with hardware_scope(hardware):
        check_network(network, tmp_path_factory.mktemp("networks"))


@pytest.mark.parametrize(
    "name", ["simplified_moe", pytest.param("top2_moe", marks=pytest.mark.deep)]
)
@pytest.mark.parametrize("seed", spread(range(5), 2))
@pytest.mark.parametrize("file", FILES)
def test_record_on_wires_timed_again_equals_the_run(name: str, seed: int, file: str) -> None:
    def build() -> Program:
        return shipped(name, file)

    drawn = hopped(build, random.Random(f"{name} {seed}"))
    depths = dict.fromkeys(drawn["depths"], 12)
    ran = running.recorded(build(), depths, Options(hops=drawn["hops"]))
    assert ran.record is not None

    assert Retimer(ran.record).time(ran.record.depths).cycles == ran.record.cycles

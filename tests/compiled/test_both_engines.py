from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Hop, Program, StreamType, simulate
from fabric.analysis.deadlock.cause import find_stuck
from fabric.graph.wiring.elaborate import elaborate
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from operators.tiles.integers import INTEGER, integer
from tests import definitions
from tests.compiled.both import both, described
from tests.deadlock.cases import CASES as STUCK
from tests.deadlock.test_random import Network, networks
from tests.operators.cases import CASES
from tests.operators.driving import Case, Choices, Collect, Emit, encode
from tests.operators.random_programs import Random
from tests.own import Anything
from tests.profiles import examples, of_profile, spread
from tests.programs.loading import program
from tests.schedules import SCHEDULES, schedule

QUICK = examples(quick=5, deep=40)

SHIPPED: list[tuple[str, dict[str, Any]]] = [
    ("attention", {"requests": 8, "strategy": "dynamic"}),
    ("attention", {"requests": 8, "strategy": "coarse", "channel_depth": 3}),
    ("attention", {"requests": 6, "strategy": "interleaved", "regions": 2}),
    ("breadth_first_search", {}),
    ("breadth_first_search", {"graph": "random", "vertices": 9, "start": 1, "lists": "padded"}),
    ("buffer_twice", {"size": 32}),
    ("decoder", {"model": "tiny", "batch": 3, "regions": 2}),
    ("decoder", {"model": "tiny", "batch": 3, "tiling": "static", "parallelisation": "coarse"}),
    ("dynamic_tiling", {}),
    ("dynamic_tiling", {"tiling": "static"}),
    ("edit_distance", {"pairs": 6, "longest": 8, "lanes": 3}),
    ("edit_distance", {"pairs": 3, "longest": 5, "sequences": "padded"}),
    ("graph_layer", {}),
    ("graph_layer", {"graph": "power-law", "tiling": "static"}),
    ("matrix_vector", {"tile_n": 2}),
    ("matrix_vector", {"tiling": "dynamic", "header_bytes": 96}),
    ("moe", {"batch": 4, "tile_n": 4}),
    ("moe", {"batch": 4, "tiling": "dynamic"}),
    ("own_function", {}),
    ("own_operator", {}),
    ("ragged_attention", {}),
    ("simplified_moe", {}),
    ("sparse_matrix", {"columns": 3}),
    ("hash_join", {}),
    ("k_means", {"points": 16}),
    ("pagerank", {"iterations": 1}),
    ("sampled_product", {"rows": 16}),
    ("sparse_product", {"rows": 16, "block": 4}),
    ("sparse_product", {"rows": 16, "block": 4, "order": "gustavson"}),
    ("swiglu", {}),
    ("top2_moe", {}),
    ("top_k_attention", {"context": 128}),
    ("tpch_q6", {"rows": 512}),
]

Seen = list[list[Any]]


def hopped(build: Callable[[], Program], random: random.Random) -> dict[str, Any]:
    keys = [edge.key for edge in elaborate(build()).edges]
    depth = random.choice([None, 1, 2, 5, 100_000])
    return {
        "depths": {key: depth or random.randint(1, 4) for key in keys},
        "hops": {key: Hop(random.randint(1, 4), random.randint(1, 4)) for key in keys},
    }


class TestPrograms:
    @pytest.mark.parametrize(("name", "parameters"), spread(SHIPPED, 4))
    def test_shipped_programs_are_equal_in_both_engines(
        self, name: str, parameters: dict[str, Any], tmp_path: Path
    ) -> None:
        found = both(lambda: program(name, **parameters), tmp_path)

        assert not found.gave_up
        assert found.compiled

    @pytest.mark.parametrize("name", ["top2_moe", "ragged_attention"])
    @pytest.mark.parametrize("order", SCHEDULES)
    def test_programs_with_any_depths_are_equal_under_every_schedule(
        self, name: str, order: str | int, tmp_path: Path
    ) -> None:
        def build() -> Program:
            return program(name)

        drawn = hopped(build, random.Random(f"{name} {order}"))
        with schedule(order):
            both(build, tmp_path, **drawn)

    def test_program_is_run_again_by_either_engine(self) -> None:
        built = program("simplified_moe")
        found = [
            simulate(built, mode="timing", engine=engine).as_json() | {"wall_seconds": None}
            for engine in ("compiled", "tasks", "compiled")
        ]
        assert [found[0]] * 3 == found


class TestStuck:
    @pytest.mark.parametrize("name", spread(STUCK, 4))
    def test_stuck_programs_end_in_equal_states(self, name: str) -> None:
        case = STUCK[name]
        found = []
        for compiles in (False, True):
            settings = Settings(
                mode="timing",
                depths=case.given,
                livelock_cycles=10_000,
                engine="compiled" if compiles else "tasks",
            )
            ran = Execution(case.build(), settings)
            status = ran.execute()
            moving = ran.watch.moving
            livelock = status == "livelock"
            # A livelock is stopped in a different state in every run.
            state = ran.state.program if livelock else (ran.state, find_stuck(ran.state))
            found.append((status, moving, state))
        assert found[0] == found[1]

    @pytest.mark.parametrize("name", ["packed_experts", "cut_off_sub_tensor"])
    def test_reports_of_stuck_programs_are_equal(self, name: str, tmp_path: Path) -> None:
        case = STUCK[name]
        found = both(case.build, tmp_path, depths=case.given)

        assert found.compiled
        assert found.outcome["report"].status == "deadlock"


def check_program(data: bytes, folder: Path) -> None:
    seen: Seen = []

    def build() -> Program:
        made = Random(Choices(data), functional=False)
        seen.extend(end[0] for end in made.ends)
        return made.program

    drawn = hopped(build, random.Random(data))
    seen.clear()
    both(build, folder, **drawn)
    half = len(seen) // 2
    assert list(map(described, seen[:half])) == list(map(described, seen[half:]))


def check_network(network: Network, folder: Path) -> None:
    both(lambda: network.program, folder, depths=network.depths)


class TestRandom:
    @QUICK
    @given(data=st.binary(min_size=300, max_size=300))
    def test_random_programs_are_equal_in_both_engines(
        self, data: bytes, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        check_program(data, tmp_path_factory.mktemp("programs"))

    @examples(quick=7, deep=60)
    @given(network=networks(merging=True))
    def test_random_networks_are_equal_in_both_engines(
        self, network: Network, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        check_network(network, tmp_path_factory.mktemp("networks"))


def wired(case: Case, seen: Seen) -> None:
    streams = []
    for drawn, kind in case.inputs:
        tensor = drawn.tensor
        if isinstance(kind, Anything):
            tensor = definitions.map_values(_number, drawn.dims, tensor)
            kind = INTEGER  # noqa: PLW2901 - the type of what is sent
        elements = encode(tensor, drawn.dims, case.choices.maybe)
        gaps = case.choices.pick(((0,), (1,), (0, 0, 5), (7, 0)))
        streams.append(Emit(StreamType(drawn.shape, kind), elements, gaps)())
    outputs = case.wire(*streams)
    for stream in (outputs,) if not isinstance(outputs, tuple | list) else outputs:
        seen.append([])
        Collect(seen[-1])(stream)


def _number(value: Any) -> Any:
    return integer(value) if type(value) is int else value


@pytest.mark.parametrize("name", CASES)
def test_every_operator_is_equal_in_both_engines(name: str, tmp_path: Path) -> None:
    seen: Seen = []

    def build() -> Program:
        source = random.Random(name)
        with Program("cases", mode="timing") as made:
            for _ in range(of_profile(quick=4, deep=12)):
                wired(CASES[name](Choices(source.randbytes(48))), seen)
        return made

    drawn = hopped(build, random.Random(name))
    seen.clear()
    both(build, tmp_path, **drawn)
    half = len(seen) // 2
    assert list(map(described, seen[:half])) == list(map(described, seen[half:]))

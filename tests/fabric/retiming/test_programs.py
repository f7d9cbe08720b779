"""Compares re-timed records of shipped programs with runs, cycle for cycle."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from fabric import Program
from fabric.extend import FixedDescription
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.elaborate import elaborate
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import Retimer
from tests.fabric.retiming.real import UNBOUNDED, depths_of, recorded, run, timed
from tests.profiles import spread
from tests.programs.loading import OF_TORCH, PROGRAMS

SHIPPED: Final[dict[str, dict[str, Any]]] = {
    "attention": {"requests": 16},
    "attention interleaved": {"strategy": "interleaved", "requests": 16},
    "attention coarse": {"strategy": "coarse", "requests": 16},
    "breadth_first_search": {},
    "buffer_twice": {},
    "decoder": {"model": "tiny", "batch": 4},
    "dynamic_tiling": {},
    "edit_distance": {},
    "graph_layer": {},
    "hash_join": {},
    "k_means": {"points": 24},
    "matrix_vector": {},
    "moe": {"model": "tiny", "batch": 32},
    "moe dynamic": {"model": "tiny", "batch": 32, "tiling": "dynamic"},
    "moe shared": {"model": "tiny", "batch": 32, "regions": 2},
    "moe_or_attention": {"requests": 16},
    "own_function": {},
    "own_operator": {},
    "pagerank": {"iterations": 1},
    "placed": {"model": "tiny", "batch": 32},
    "ragged_attention": {},
    "sampled_product": {"rows": 16},
    "simplified_moe": {},
    "sparse_matrix": {},
    "sparse_product": {"rows": 16, "block": 4},
    "sparse_product gustavson": {"rows": 16, "block": 4, "order": "gustavson"},
    "swiglu": {},
    "swiglu_in_pieces": {"batch": 32, "hidden": 32, "inter": 64, "tile_inter": 32},
    "top2_moe": {},
    "top_k_attention": {"context": 128},
    "tpch_q6": {"rows": 512},
}

UNCONTENDED: Final = Hardware(hbm=FixedDescription(latency_cycles=23, bytes_per_cycle=1024))

BURSTS: Final = "the HBM serves bursts as they come"

ARRIVALS: Final = frozenset(
    (
        *("attention", "decoder", "edit_distance", "moe", "moe dynamic", "moe shared"),
        *("moe_or_attention", "placed", "swiglu_in_pieces", "top2_moe"),
    )
)


def _program(name: str, hardware: Hardware) -> Program:
    given = [f"{key}={value}" for key, value in SHIPPED[name].items()]
    return load_program(PROGRAMS / f"{name.split(maxsplit=1)[0]}.py", given, hardware).program


def _uniform(program: Program, depth: int) -> dict[str, int]:
    return {edge.key: depth for edge in elaborate(program).edges}


def test_every_shipped_program_is_retimed() -> None:
    there = {path.stem for path in PROGRAMS.glob("*.py")} - OF_TORCH
    assert there == {name.split()[0] for name in SHIPPED}


@pytest.mark.parametrize("depth", spread([2, UNBOUNDED], 1))
@pytest.mark.parametrize("name", spread(SHIPPED, 3))
def test_retiming_at_recorded_depths_equals_the_run(name: str, depth: int) -> None:
    program = _program(name, Hardware())
    record, ran = recorded(program, _uniform(program, depth))
    if record is None:
        assert depth < UNBOUNDED
        return

    assert ran == timed(Retimer(record), record.depths.tolist())
    assert ran == run(program, _uniform(program, depth), compiles=True)
    assert ran.cycles == record.cycles


@pytest.mark.parametrize("name", spread(SHIPPED, 4))
def test_programs_with_merges_report_arbitration(name: str) -> None:
    program = _program(name, Hardware())
    record, _ = recorded(program, _uniform(program, UNBOUNDED))
    assert record is not None
    *merges, bursts = record.arbitrated
    assert BURSTS == bursts
    assert (name in ARRIVALS) == bool(merges)
    said = (" takes whichever input comes first", " take whichever input comes first")
    assert all(each.endswith(said) for each in merges)


@pytest.mark.parametrize("recorded_depth", spread([2, UNBOUNDED], 1))
@pytest.mark.parametrize("name", spread(sorted(SHIPPED.keys() - ARRIVALS), 2))
def test_retiming_under_other_depths_equals_runs(name: str, recorded_depth: int) -> None:
    program = _program(name, UNCONTENDED)
    record, _ = recorded(program, _uniform(program, recorded_depth))
    if record is None:
        assert recorded_depth < UNBOUNDED
        return
    assert (BURSTS,) == record.arbitrated
    retimer = Retimer(record)
    endings = set()
    for depths in _others(record, random.Random(name)):
        ran = run(program, depths, compiles=True)
        assert ran.ends_as(timed(retimer, depths_of(record, depths)))
        endings.add(ran.cycles)
    # With equal cycles for all depths, the loop would have compared nothing.
    assert len(endings) > 1 or name in {"breadth_first_search", "own_operator"}


def _others(record: Record, chance: random.Random) -> list[dict[str, int]]:
    options = [channel.option for channel in record.channels]
    even = [dict.fromkeys(options, depth) for depth in (1, 2, 3, 4, UNBOUNDED)]
    uneven = [{option: chance.choice((1, 1, 2, 3, 5)) for option in options} for _ in range(4)]
    few = [
        dict.fromkeys(options, UNBOUNDED) | dict.fromkeys(chance.choices(options, k=2), 1)
        for _ in range(2)
    ]
    return even + uneven + few

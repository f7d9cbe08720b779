"""The paper's layers and its attention on a mesh, placed in one of four ways.

``place`` searches for good sites of the units, ``random`` draws sites, ``rows`` applies the default
rule for units without a site, and ``together`` puts all units on one site, so that every channel is
one hop long and uses no link. On hardware without a mesh, units have no sites.

Run:      python -m fabric run programs/placed.py --hardware mesh_paper -p model=mixtral-8x7b
Computes: what moe_or_attention.py computes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import moe_or_attention
from layers.models import ModelName

from fabric import Program, place
from fabric.extend import Bounds

Sites: TypeAlias = Mapping[str, tuple[int, int]]

Way = Literal["place", "random", "rows", "together"]

_searched: Final[dict[tuple[object, ...], Sites]] = {}
"""The results of searches, by their parameters. A search takes long for a large layer."""


def build(
    part: Literal["moe", "attention"] = "moe",
    placement: Way = "place",
    placement_seed: int = 0,
    model: ModelName = "qwen3-30b-a3b",
    batch: Annotated[int, Bounds(1)] = 64,
    tiling: Literal["static", "dynamic"] = "static",
    tile_n: int | None = None,
    flops_per_cycle: int | None = None,
    routing: Path | None = None,
    strategy: Literal["coarse", "interleaved", "dynamic"] = "dynamic",
    kv: Path | None = None,
    requests: Annotated[int | None, Bounds(1)] = None,
    seed: Annotated[int, Bounds(0)] = 0,
) -> Program:
    """Wire a layer of experts or the attention, and put its units on sites.

    ``part`` is ``moe`` or ``attention``, and ``placement`` is one of the four ways. The seed of
    ``place`` and ``random`` is ``placement_seed``. All other parameters are as in
    ``moe_or_attention.py``.
    """
    program = moe_or_attention.build(
        part,
        model,
        batch,
        tiling,
        tile_n,
        flops_per_cycle=flops_per_cycle,
        routing=routing,
        strategy=strategy,
        kv=kv,
        requests=requests,
        seed=seed,
    )
    mesh = program.hardware.network
    if mesh is None:
        return program
    if placement == "together":
        program.put({node.name: mesh.edge[0] for node in program.nodes})
    elif placement == "random":
        program.put(_random(program, placement_seed))
    elif placement == "place":
        if mesh.die_columns is None and mesh.die_rows is None:
            # If all links have the same width, the width does not change which sites are best.
            mesh = replace(mesh, link_bytes_per_cycle=None, injection_bytes_per_cycle=None)
        of_program = (part, model, batch, tiling, tile_n, flops_per_cycle)
        key = (*of_program, routing, strategy, kv, requests, seed, mesh, placement_seed)
        if key not in _searched:
            _searched[key] = place(program, mesh, seed=placement_seed).sites
        program.put(_searched[key])
    return program


def _random(program: Program, seed: int) -> Sites:
    """Return random sites, with off-chip units on the edge, and no site above its limit."""
    mesh = program.hardware.network
    assert mesh is not None
    drawn = random.Random(seed)
    ports = [node.name for node in program.nodes if node.operator.off_chip is not None]
    others = [node.name for node in program.nodes if node.operator.off_chip is None]
    most = mesh.units_per_site or max(
        -(-len(program.nodes) // len(mesh.sites)), -(-len(ports) // len(mesh.edge))
    )
    at_ports = drawn.sample([*mesh.edge] * most, len(ports))
    free = [*mesh.sites] * most
    for site in at_ports:
        free.remove(site)
    return dict(zip([*ports, *others], [*at_ports, *drawn.sample(free, len(others))], strict=True))

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

import operators as op
from fabric import Hardware, Program, ProgramError, Tile, dtype_named
from fabric.extend import ChannelDescription
from fabric.graph.wiring.program import hardware_scope
from operators.functions import steps
from operators.functions.choosing import SelectorOf, TakenAlong, TopPlaces
from operators.functions.flash_attention import AttentionScores, MaskScores, Quotient
from operators.functions.matmul import ScaledAdd
from operators.functions.ordering import Along, Running
from operators.functions.row_functions import LayerNorm, Reduced, RMSNorm, Softmax, Variance
from operators.functions.steps import Chain, Columns, ComplexProduct, Cut, Joined, Placed, Pointwise
from operators.rtl.blocks import token
from operators.rtl.chains import chain_function
from operators.rtl.hardware import design, run, write

WIRES = Hardware(channel=ChannelDescription(interval_cycles=1))
BF16, FLOAT32, INT64 = (dtype_named(each) for each in ("bfloat16", "float32", "int64"))
NORMS = [(BF16, 1e-5), (FLOAT32, 1e-6)]

ADD = Pointwise((0, 1), BF16, "add")
CHAINS = [
    (Chain(2, (ADD, Pointwise((2,), BF16, "gelu"))), [(6, 8), (6, 8)]),
    (Chain(2, (ADD, Pointwise((2, 0), BF16, "mul"))), [(1, 8), (6, 1)]),
    (Chain(2, (ADD, Cut((2,), BF16, 1, 3), Joined((3, 0, 1), BF16))), [(6, 1), (1, 8)]),
    (Chain(2, (ComplexProduct((0, 1), FLOAT32), Columns((2,), BF16, (1, 1, 0)))), [(6, 8), (1, 8)]),
    (Chain(2, (Placed((0,), BF16, 12, 4), Pointwise((2, 1), BF16, "add"))), [(6, 8), (12, 4)]),
    (Chain(1, (Placed((0,), BF16, 12, 4),)), [(6, 8)]),
    (Chain(1, (Reduced((0,), BF16, name="mean"),)), [(6, 8)]),
    (Chain(1, (Reduced((0,), BF16, name="amax"), Pointwise((0, 1), BF16, "sub"))), [(6, 8)]),
    (Chain(1, (Reduced((0,), BF16, (2, 3, 8), (0, 2), "sum"),)), [(6, 8)]),
    (
        Chain(2, (Reduced((0,), BF16, (2, 3, 8), (0, 2)), Pointwise((2, 1), BF16, "add"))),
        [(6, 8), (3, 1)],
    ),
    (Chain(1, (Reduced((0,), BF16, (2, 3, 8), (1,), "mean"),)), [(6, 8)]),
    (Chain(1, (Variance((0,), BF16),)), [(6, 8)]),
    (Chain(1, (Variance((0,), BF16, (2, 3, 8), (1,), root=True),)), [(6, 8)]),
    (Chain(1, (Softmax((0,), BF16),)), [(6, 8)]),
    (Chain(1, (Softmax((0,), BF16, logarithm=True),)), [(6, 8)]),
    (Chain(2, (RMSNorm((0, 1), BF16, 1e-6),)), [(6, 8), (1, 8)]),
    (Chain(3, (LayerNorm((0, 1, 2), BF16, 1e-5, True),)), [(6, 8), (1, 8), (1, 8)]),
    (Chain(1, (LayerNorm((0,), BF16, 1e-5, False),)), [(6, 8)]),
    (Chain(1, (TopPlaces((0,), INT64, 3), TakenAlong((0, 1), BF16))), [(6, 8)]),
]

OTHERS: list[tuple[str, op.Function, list[tuple[int, int]]]] = [
    ("ScaledAdd1", ScaledAdd(), [(6, 8), (1, 8)]),
    ("ScaledAdd2", ScaledAdd(0.5), [(6, 8), (6, 1)]),
    ("ScaledAdd3", ScaledAdd(0.5, 2.0), [(6, 8), (6, 8)]),
    ("AttentionScores", AttentionScores(0.25), [(6, 8), (5, 8)]),
    ("MaskScores", MaskScores(), [(6, 8), (3, 8)]),
    ("Quotient", Quotient("bfloat16"), [(6, 8), (6, 1)]),
]


def evaluated(hardware: Any, tiles: list[Tile]) -> list[int]:
    module, tokens = Module(), [token(f"operand_{number}") for number in range(len(tiles))]
    said = [*hardware.sizes(*tokens), hardware.operations(*tokens)]
    wires = [Signal(64, name=f"wire_{number}") for number in range(len(said))]
    module.d.comb += [wire.eq(each) for wire, each in zip(wires, said, strict=True)]
    for operand, tile in zip(tokens, tiles, strict=True):
        for name in ("rows", "cols", "valid_rows", "valid_cols"):
            module.d.comb += getattr(operand, name).eq(getattr(tile, name))
    found: list[int] = []

    async def reading(context: Any) -> None:
        await context.delay(1e-9)
        found.extend(context.get(wire) for wire in wires)

    simulator = Simulator(module)
    simulator.add_testbench(reading)
    simulator.run()
    return found


def tiles_of(shapes: list[tuple[int, int]], random: Random) -> list[Tile]:
    return [
        Tile(
            rows, cols, BF16, valid_rows=random.randint(1, rows), valid_cols=random.randint(1, cols)
        )
        for rows, cols in shapes
    ]


def said_of(function: op.Function, tiles: list[Tile]) -> list[Any]:
    result: Any = function.apply(*tiles)
    sizes = [result.rows, result.cols, result.valid_rows, result.valid_cols]
    return [*sizes, function.flops(*tiles)]


@pytest.mark.parametrize(("function", "shapes"), CHAINS)
def test_sizes_and_operations_of_a_chain_equal_the_fabric(
    function: Chain, shapes: list[tuple[int, int]]
) -> None:
    random = Random(1)
    for _ in range(4):
        tiles = tiles_of(shapes, random)

        assert evaluated(chain_function(function)[1], tiles) == said_of(function, tiles)


def test_module_names_differ_if_the_hardware_differs() -> None:
    def named(*found: Chain) -> set[str]:
        return {chain_function(each)[0] for each in found}

    norms = [Chain(1, (LayerNorm((0,), dtype, eps, False),)) for dtype, eps in NORMS]
    assert len(named(*norms)) == 1
    assert len(named(*(each for each, _ in CHAINS))) == len(CHAINS)
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", each) for each in named(*norms))
    others = [
        Chain(2, (ADD, Pointwise((2,), BF16, "neg"))),
        Chain(2, (ADD, Pointwise((1,), BF16, "neg"))),
        Chain(3, (ADD, Pointwise((2,), BF16, "neg"))),
        *(Chain(2, (ADD, Cut((2,), BF16, 0, count))) for count in (1, 2)),
    ]
    assert len(named(*others)) == len(others)


def wired(functions: list[tuple[op.Function, list[tuple[int, int]]]]) -> Program:
    with hardware_scope(WIRES), Program("functions", mode="timing") as built:
        for number, (function, shapes) in enumerate(functions):
            tiles = [
                op.LinearOffChipLoad(
                    op.Tensor((2 * rows, cols), dtype="bfloat16"), tile=(rows, cols)
                )()
                for rows, cols in shapes
            ]
            result = op.Map(function, flops_per_cycle=3)(*tiles)
            op.LinearOffChipStore(f"y{number}")(result)
    return built


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (Along((0,), BF16, Running("sum"), ((1, 8),), (1,), (8,)), "with Running"),
        (TopPlaces((0,), INT64, 1), "that gives an integer"),
    ],
)
def test_step_without_hardware_is_refused(step: steps.Step, why: str) -> None:
    built = wired([(Chain(1, (step,)), [(1, 8)])])
    with pytest.raises(ProgramError, match=f"has no hardware module for a Chain {why}"):
        design(built)


@pytest.mark.deep
def test_chains_under_verilator_equal_the_run(tmp_path: Path) -> None:
    others = [(function, shapes) for _, function, shapes in OTHERS]
    built = wired([*CHAINS, *others, (op.PadRows(9), [(6, 8)])])
    with hardware_scope(WIRES), built:
        choice = np.array([[1], [0], [1]])
        places = op.LinearOffChipLoad(choice, tile=(1, 1))()
        given = op.Selectors(choice[:, :, np.newaxis], width=2)()
        route = op.Map(SelectorOf())(places, given)
        items = op.LinearOffChipLoad(op.Tensor((3, 1), dtype="bfloat16"), tile=(1, 1))()
        for number, each in enumerate(op.Partition(2)(items, route)):
            op.LinearOffChipStore(f"part{number}")(op.Promote(0)(each))
    made = design(built)

    found = run(made, write(made, tmp_path), tmp_path)

    assert found.equal, found

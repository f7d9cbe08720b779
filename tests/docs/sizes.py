"""The bytes of channels in the programs that come with step-fabric.

``python -m tests.docs.sizes`` writes ``channel_sizes.csv`` in some minutes.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final, NamedTuple

from fabric import size
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import load_program

TABLE: Final = Path(__file__).with_name("channel_sizes.csv")

_QWEN: Final = "routing=programs/data/traces/expert_routing/qwen_b64/032_012.npz"

COLUMNS: Final = (
    *("program", "channels", "as_wired_bytes", "search", "exact", "high_water", "paper_lp"),
    *("misses_the_goal", "lower_bound_bytes", "cycles_as_wired", "cycles"),
)


class Sized(NamedTuple):
    file: str
    parameters: tuple[str, ...] = ()
    is_long: bool = False


PROGRAMS: Final = (
    Sized("attention", is_long=True),
    Sized("breadth_first_search"),
    Sized("buffer_twice"),
    Sized("decoder", ("model=tiny",), is_long=True),
    Sized("dynamic_tiling"),
    Sized("edit_distance"),
    Sized("graph_layer"),
    Sized("matrix_vector"),
    Sized("moe", ("model=tiny", "batch=32"), is_long=True),
    Sized("moe", ("tile_n=64", _QWEN), is_long=True),
    Sized("moe", ("tiling=dynamic", _QWEN), is_long=True),
    Sized("own_function"),
    Sized("own_operator"),
    Sized("ragged_attention"),
    Sized("simplified_moe"),
    Sized("sparse_matrix"),
    Sized("swiglu"),
    Sized("top2_moe"),
)


def row(program: Sized) -> list[str]:
    loaded = load_program(f"programs/{program.file}.py", program.parameters, Hardware())
    sized, paper = size(loaded.program), size(loaded.program, method="paper-lp")
    name = " ".join([program.file, *(each.split("/")[0] for each in program.parameters)])
    methods = [*sized.methods, paper.methods[-1]]
    cells = [
        name.replace("routing=programs", "with a published routing"),
        len(sized.channels),
        sized.cost_before,
        *(total.cost for total in methods),
        " ".join(total.method for total in methods if not total.keeps),
        sized.lower_bound,
        sized.inputs[0].cycles_before,
        sized.inputs[0].cycles,
    ]
    return [*map(str, cells)]


if __name__ == "__main__":
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *map(row, PROGRAMS)])

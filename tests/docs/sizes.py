"""The table of what the channels of the shipped programs need, as a page of the documentation.

``python -m tests.docs.sizes`` writes it in some minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from fabric import size
from fabric.explore.sizing.result import MethodTotal
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import load_program

_ROOT: Final = Path(__file__).parents[2]
PAGE: Final = _ROOT / "docs" / "pages" / "reference" / "channel-sizes.md"

_QWEN: Final = "routing=programs/data/traces/expert_routing/qwen_b64/032_012.npz"

_COLUMNS: Final = (
    *("program", "channels", "as wired", "search", "exact", "high-water", "paper-lp"),
    *("lower bound", "cycles as wired", "cycles"),
)

_ABOUT: Final = f"""\
<!-- Written by `python -m tests.docs.sizes`. -->
# Bytes of channels

This table shows the bytes that the channels of each program take. *As wired* has the depths in the
program, with slots for the largest element. The next four columns show what the methods of `size`
find for the goal `same-cycles`: a run takes no longer than with unbounded channels. With bytes in
*italics* a run misses that goal or gets stuck. The depths as wired may miss it too; then `search`
may take more bytes. The lower bound is what a run needs to end at all; if a merge takes whatever
comes first, it is one slot for each channel. Everything was run. The last column has the cycles
with the depths from `search`.

| {" | ".join(_COLUMNS)} |
|---{"|---:" * (len(_COLUMNS) - 1)}|
"""


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


def row(program: Sized) -> str:
    loaded = load_program(f"programs/{program.file}.py", program.parameters, Hardware())
    found, paper = size(loaded.program), size(loaded.program, method="paper-lp")
    name = " ".join([program.file, *(each.split("/")[0] for each in program.parameters)])
    cells = [
        name.replace("routing=programs", "with a published routing"),
        f"{len(found.channels):,}",
        f"{found.cost_before:,}",
        *map(_method, [*found.methods, paper.methods[-1]]),
        f"{found.lower_bound:,}",
        _cycles(found.inputs[0].cycles_before),
        _cycles(found.inputs[0].cycles),
    ]
    return f"| {' | '.join(cells)} |"


def _method(total: MethodTotal) -> str:
    return f"{total.cost:,}" if total.keeps else f"*{total.cost:,}*"


def _cycles(cycles: int | None) -> str:
    return "stuck" if cycles is None else f"{cycles:,}"


if __name__ == "__main__":
    PAGE.write_text(_ABOUT + "".join(f"{row(each)}\n" for each in PROGRAMS), encoding="utf-8")

"""The table of what the channels of the shipped programs need, as a page of the documentation.

``python -m tests.docs.sizes`` writes it anew, which takes some minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["PAGE", "PROGRAMS", "Sized", "row"]

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "pages" / "reference" / "channel-sizes.md"

_QWEN: Final = "routing=programs/data/traces/expert_routing/qwen_b64/032_012.npz"
_MIXTRAL: Final = "routing=programs/data/traces/expert_routing/mixtral_b64/020_039.npz"


class Sized(NamedTuple):
    """A program that is sized.

    Attributes:
        file: of it, in ``programs/``.
        parameters: of its build().
        depth: what the paper or the authors' artifact gives its channels; 0 for its own.
    """

    file: str
    parameters: tuple[str, ...] = ()


PROGRAMS: Final = (
    Sized("attention"),
    Sized("breadth_first_search"),
    Sized("buffer_twice"),
    Sized("decoder", ("model=tiny",)),
    Sized("dynamic_tiling"),
    Sized("edit_distance"),
    Sized("graph_layer"),
    Sized("matrix_vector"),
    Sized("moe", ("model=tiny", "batch=32")),
    Sized("moe", ("tile_n=64", _QWEN)),
    Sized("moe", ("tiling=dynamic", _QWEN)),
    Sized("own_function"),
    Sized("own_operator"),
    Sized("ragged_attention"),
    Sized("simplified_moe"),
    Sized("sparse_matrix"),
    Sized("swiglu"),
    Sized("top2_moe"),
)

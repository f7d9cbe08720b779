"""Do dynamic tiles, dynamic attention and shared regions keep their gain in a server?

The paper compares isolated batches of 64 and 1,024. Here a server of a whole model gets the
requests of two production services. At the lowest load, it seldom serves two requests at a time. At
the highest load, requests arrive faster than it serves them. Compute units have 1,024 FLOPs per
cycle. ``docs/pages/reference/results.md`` has the answer.

Run: python -m fabric serve programs/questions/serving.py -o serving
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric.serving import FabricDescription, RequestDescription, Server, ServiceLevel, Serving

PROGRAMS: Final = Path(__file__).parents[1]
DATA: Final = PROGRAMS / "data"
REQUESTS: Final = 2000
ALL: Final = "the same, shared regions"  # as "dynamic tiles and attention"
SMALL: Final = "static, small tiles"
LARGE: Final = "static, large tiles"
COARSE: Final = "dynamic tiles, coarse attention"
IN_TURN: Final = "dynamic tiles"


@dataclass(frozen=True)
class Model:
    """A model as in the paper's figure 17, except that Mixtral's experts share regions, too.

    Attributes:
        name: its name in ``decoder.py``.
        shared: the number of regions if experts share them.
        tile_f: columns of a weight tile of an expert.
        small, large: rows of static tiles with the memory, or with the cycles, of dynamic tiles.
        key_heads, heads: the numbers of heads, of 128 columns each.
        measured: designs for which one step of each run is also simulated, to measure errors.
        rates: requests per second, by trace.
    """

    name: str
    layers: int
    experts: int
    shared: int
    tile_f: int
    small: int
    large: int
    key_heads: int
    heads: int
    routing: str
    measured: tuple[str, ...]
    rates: Mapping[str, tuple[float, ...]]

    @property
    def designs(self) -> dict[str, dict[str, str | int]]:
        static: dict[str, str | int] = {
            "tiling": "static",
            "regions": self.experts,
            "parallelisation": "interleaved",
        }
        dynamic = static | {"tiling": "dynamic"}
        both = dynamic | {"parallelisation": "dynamic"}
        return {
            SMALL: static | {"tile_n": self.small},
            LARGE: static | {"tile_n": self.large},
            COARSE: dynamic | {"parallelisation": "coarse"},
            IN_TURN: dynamic,
            "dynamic tiles and attention": both,
            ALL: both | {"regions": self.shared},
        }


MODELS: Final = (
    Model(
        "qwen3-30b-a3b",
        48,
        128,
        32,
        48,
        8,
        64,
        4,
        32,
        "qwen_b1024/022_016.npz",
        (SMALL, ALL),
        {"conv": (0.05, 0.3, 0.6, 0.8, 1.0, 1.3), "code": (0.005, 0.02, 0.05, 0.2, 0.6)},
    ),
    Model(
        "mixtral-8x7b",
        32,
        8,
        4,
        64,
        16,
        32,
        8,
        32,
        "mixtral_b1024/019_009.npz",
        (ALL,),
        {"conv": (0.02, 0.1, 0.2, 0.3, 0.4, 0.5), "code": (0.002, 0.01, 0.03, 0.1, 0.3)},
    ),
)


def servings() -> list[Serving]:
    return [_serving(model, trace) for model in MODELS for trace in model.rates]


def _serving(model: Model, trace: str) -> Serving:
    table = DATA / f"published/serving/AzureLLMInferenceTrace_{trace}.csv.gz"
    return Serving(
        name=f"{model.name} {trace}",
        question="Do dynamic tiles, dynamic attention and shared regions keep their gain?",
        requests=RequestDescription(file=table, count=REQUESTS, rates=model.rates[trace]),
        server=Server(max_num_seqs=64, max_num_batched_tokens=256),
        level=ServiceLevel(time_to_first_token_seconds=10.0, time_per_token_seconds=0.5),
        designs={name: _cost(model, name) for name in model.designs},
    )


def _cost(model: Model, design: str) -> FabricDescription:
    return FabricDescription(
        program=PROGRAMS / "decoder.py",
        hardware=PROGRAMS / "hardware/paper_priced.toml",
        parameters={
            "model": model.name,
            "tile_f": model.tile_f,
            "tile_p": 16,
            "attention_regions": 4,
            "flops_per_cycle": 1024,
            # With the default of 2, static tiles for 256 tokens of one prompt deadlock.
            "channel_depth": 1024,
            **model.designs[design],
        },
        layers=model.layers,
        routing=DATA / "traces/expert_routing" / model.routing,
        decode_requests=(1, 8, 64),
        cache_tokens=(64, 4096),
        prefill_tokens=(256,),
        cache_bytes_per_token=2 * 2 * 128 * model.key_heads,  # keys and values in bfloat16
        # Each column of each head takes two products and two sums.
        attention_flops_per_pair=4 * 128 * model.heads,
        # A region has a unit for scores and one for weighted sums.
        attention_flops_per_cycle=4 * 2 * 1024,
        # Both traces take cache lengths from one trace, so they share the simulated layers.
        spread=DATA / "published/serving/AzureLLMInferenceTrace_conv.csv.gz",
        exact_steps=1 if design in model.measured else 0,
    )

"""Compares the scheduler with the log of a vLLM run: ``python -m tests.serving.validation``.

Steps take the measured times of layers on that GPU. Rules and sizes come from vLLM and from the
run's configuration. No number is fitted to the log. Each of ``VARIANTS`` adds or leaves out a rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fabric.explore.serving.measured_costs import LayerTables, TableDescription
from fabric.explore.serving.requests import Requests, read_requests
from fabric.explore.serving.served import Served, Spread, serve
from fabric.explore.serving.server import Server, StepCost

DATA: Final = Path(__file__).parents[2] / "programs/data/published/serving"

SERVER: Final = Server(
    replicas=2, max_num_seqs=128, max_num_batched_tokens=2048, async_scheduling=True, lockstep=True
)
"""From ``vllm_meta.json``: vLLM 0.19 schedules asynchronously by default, and replicas that share
experts step together. The cache was never full.
"""

TABLES: Final = TableDescription(
    attention=DATA / "rtxpro6000_attention.csv",
    dense=DATA / "rtxpro6000_dense.csv",
    moe=DATA / "rtxpro6000_moe.csv",
    per_sequence=DATA / "rtxpro6000_per_sequence.csv",
    layers=48,
    in_each_layer={
        "layernorm": 2,
        "qkv_proj": 1,
        "qk_norm": 1,
        "rotary_emb": 1,
        "o_proj": 1,
    },
    in_each_step={"embedding": 1, "final_layernorm": 1},
    experts=128,
    experts_of_a_token=8,
    exchange_bytes_per_token=2 * 2048.0,  # hidden columns in bfloat16
    link_bytes_per_second=16e9,
    link_latency_seconds=20e-6,
    # Sizes of vLLM's CUDA graphs, up to twice max_num_seqs.
    graph_tokens=(1, 2, 4, *range(8, 257, 8)),
    outside="edge",
)

ASKED: Final[Mapping[str, Mapping[str, float]]] = {
    "time to first token": {"mean": 8.0, "median": 12.0},
    "time per token": {"mean": 1.5},
    "latency": {"mean": 1.5},
}

CACHED_PART: Final = 9_056 / 258_691
"""Prompt tokens that vLLM found in its cache, from the run's statistics (``vllm/timeseries.csv``,
``prompt_cached_throughput`` in casys-kaist/LLMServingSim). Which tokens
is not recorded."""

Times = Mapping[str, NDArray[np.float64]]


def _without_prefixes(requests: Requests) -> Requests:
    shorter = np.maximum(1, np.rint(requests.prompt_tokens * (1 - CACHED_PART)).astype(np.int64))
    return replace(requests, prompt_tokens=shorter)


def _same(requests: Requests) -> Requests:
    return requests


VARIANTS: Final[Mapping[str, tuple[Server, TableDescription, Callable[[Requests], Requests]]]] = {
    "all rules": (SERVER, TABLES, _same),
    "steps put together when the one before has ended": (
        replace(SERVER, async_scheduling=False),
        TABLES,
        _same,
    ),
    "no padding to CUDA graphs": (SERVER, replace(TABLES, graph_tokens=()), _same),
    "no time between the GPUs": (
        SERVER,
        replace(TABLES, link_bytes_per_second=None, link_latency_seconds=0.0),
        _same,
    ),
    "3.5 % of each prompt in the cache already": (SERVER, TABLES, _without_prefixes),
}


def log_times() -> Times:
    lines = (DATA / "vllm_requests.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    queued, first, last, outputs = (
        np.array([row[name] for row in rows])
        for name in ("queued_ts", "first_token_ts", "last_token_ts", "output_toks")
    )
    return _times(queued, first, last, outputs)


@lru_cache
def served(variant: str = "all rules") -> Served:
    server, tables, prompts = VARIANTS[variant]
    cost: StepCost = LayerTables(tables)
    return serve(prompts(read_requests(DATA / "sharegpt_300_sps10_lengths.csv")), server, cost)


def differences(variant: str = "all rules") -> dict[str, dict[str, float]]:
    ours = served(variant)
    times = _times(
        ours.taken_seconds, ours.first_seconds, ours.last_seconds, ours.requests.output_tokens
    )
    return {
        name: {
            point: 100 * (getattr(Spread.of(times[name]), point) / value - 1)
            for point, value in vars(Spread.of(theirs)).items()
        }
        for name, theirs in log_times().items()
    }


def _times(
    queued: NDArray[np.float64],
    first: NDArray[np.float64],
    last: NDArray[np.float64],
    outputs: NDArray[np.int64],
) -> Times:
    return {
        "time to first token": first - queued,
        "time per token": (last - first) / (outputs - 1),
        "latency": last - queued,
    }


def main() -> None:
    ours = served()
    times = _times(
        ours.taken_seconds, ours.first_seconds, ours.last_seconds, ours.requests.output_tokens
    )
    above = differences()
    print("300 requests, 10 a second, 2 replicas of Qwen3-30B-A3B; milliseconds\n")
    print(f"{'':28}{'vLLM':>12}{'ours':>12}{'%':>8}{'limit, %':>10}")
    for name, theirs in log_times().items():
        log, mine = vars(Spread.of(theirs)), vars(Spread.of(times[name]))
        for point in log:
            limit = ASKED[name].get(point)
            print(
                f"{name + ', ' + point:28}{1e3 * log[point]:12.1f}{1e3 * mine[point]:12.1f}"
                f"{above[name][point]:+8.1f}{'' if limit is None else f'±{limit:g}':>10}"
            )
    print("\nVariants of the rules: percent above the log's")
    print(f"{'':52}{'first, mean':>13}{'median':>9}{'per token':>11}{'latency':>9}")
    for variant in VARIANTS:
        of = differences(variant)
        print(
            f"{variant:52}{of['time to first token']['mean']:+13.1f}"
            f"{of['time to first token']['median']:+9.1f}"
            f"{of['time per token']['mean']:+11.1f}{of['latency']['mean']:+9.1f}"
        )
    for note in LayerTables(TABLES).notes():
        print(note)


if __name__ == "__main__":
    main()

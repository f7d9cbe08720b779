from __future__ import annotations

import json

import pytest

from tests.serving.validation import ASKED, DATA, SERVER, differences


def test_server_equals_the_logged_one() -> None:
    arguments = json.loads((DATA / "vllm_meta.json").read_text())["engine_kwargs"]
    assert SERVER.replicas == arguments["data_parallel_size"]
    assert SERVER.max_num_seqs == arguments["max_num_seqs"]
    assert SERVER.max_num_batched_tokens == arguments["max_num_batched_tokens"]
    assert SERVER.lockstep == arguments["enable_expert_parallel"]


@pytest.mark.parametrize(
    ("name", "point", "reached"),
    [
        ("time to first token", "mean", 10.3),  # the limit was 8
        ("time to first token", "median", 6.4),
        ("time per token", "mean", 0.9),
        ("latency", "mean", 1.2),
    ],
)
def test_difference_from_the_log_is_as_reported(name: str, point: str, reached: float) -> None:
    assert differences()[name][point] == pytest.approx(reached, abs=0.05)


def test_difference_with_cached_prefixes_is_within_the_goal() -> None:
    found = differences("3.5 % of each prompt in the cache already")
    for name, points in ASKED.items():
        for point, most in points.items():
            assert abs(found[name][point]) <= most

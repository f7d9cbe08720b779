from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import layers.torch_parts  # noqa: F401 - one test takes it away
import numpy as np
import pytest

from fabric import ConfigurationError, Cost, Report, simulate
from tests.programs.loading import DATA, program

TRACES = DATA / "traces"


def run(mode: str, **parameters: Any) -> Report:
    return simulate(program("torch_model", **parameters), mode=mode)


def traffic(report: Report) -> int:
    assert report.off_chip_traffic_bytes is not None
    return report.off_chip_traffic_bytes


@pytest.mark.parametrize(
    "parameters",
    [
        {"model": "gpt2", "phase": "decode", "part": "ends"},
        {"model": "gemma3", "part": "layers", "context": 9},
        {"model": "gemma3", "part": "layers", "first_layer": 1, "phase": "decode", "context": 9},
        {"model": "llama", "batch": 1, "context": 1, "layers": 1},
        {"model": "qwen3", "batch": 1, "context": 1, "phase": "decode", "part": "layers"},
        {"model": "mixtral", "batch": 1, "context": 1, "part": "layers"},
        {"model": "qwen3-moe", "batch": 3, "context": 5, "part": "layers", "ragged": "static"},
    ],
    ids=str,
)
def test_torch_model_part_is_verified(parameters: dict[str, Any]) -> None:
    computed, timed = run("functional", **parameters), run("timing", **parameters)

    assert computed.verified, computed.verification
    assert computed.cycles == timed.cycles


def test_torch_model_reads_caches_up_to_their_lengths(tmp_path: Path) -> None:
    lengths = np.array([1, 30, 7, 64])
    file = tmp_path / "lengths.npy"
    np.save(file, lengths)
    given: dict[str, Any] = {"model": "llama", "phase": "decode", "part": "layers", "batch": 4}
    tile = {"tile_keys": 8, "dtype": "float32"}

    ragged = run("functional", kv=file, **given, **tile)
    longest = run("timing", context=64, **given, **tile)

    assert ragged.verified
    # Keys and values, two heads, 8 columns of 4 bytes. If a request begins within a tile, each head
    # reads a mask of the tile's keys, a byte for each key.
    unread = sum((64 - length) // 8 * 8 for length in lengths)
    masks = 8 * sum(length % 8 > 0 for length in lengths)
    saved = traffic(longest) - traffic(ragged)
    assert unread * 2 * 8 * 2 * 4 - masks * 2 == saved


def test_torch_model_routing_decides_which_experts_are_read(tmp_path: Path) -> None:
    file = tmp_path / "routing.npz"
    np.savez(file, data=np.tile([3, 0], (6, 1)))
    given: dict[str, Any] = {"model": "mixtral", "part": "layers", "batch": 6, "context": 1}

    two = run("timing", **given, routing=file)
    np.savez(file, data=[[3, 0], [0, 1], [1, 2], [2, 3], [3, 1], [0, 2]])
    four = run("timing", **given, routing=file)

    # Two idle experts, each with three matrices of 32 x 48 numbers of two bytes.
    assert 2 * 3 * 32 * 48 * 2 == traffic(four) - traffic(two)


def test_torch_model_with_a_recorded_routing_completes() -> None:
    report = run(
        "timing",
        model="mixtral",
        size="full",
        part="layers",
        phase="decode",
        batch=64,
        context=64,
        routing=TRACES / "expert_routing/mixtral_b64/008_010.npz",
    )

    assert "completed" == report.status
    assert 32 == report.stands_for_runs
    assert 64 == report.tokens


def test_cost_of_a_whole_model_reads_all_weights_once() -> None:
    given: dict[str, Any] = {"model": "qwen3", "size": "full", "phase": "decode", "batch": 1}

    cost = Cost.of(*(run("timing", part=part, context=1, **given) for part in ("ends", "layers")))

    # The head, 151,936 x 1,024, is tied to the embedding. The head and all layers are read
    # completely.
    read = 2 * (595_776_000 + 1024)
    assert [1, 28] == [each.runs for each in cost.parts]
    assert 1 == cost.tokens
    assert read == pytest.approx(cost.off_chip_traffic_bytes, rel=0.02)
    assert cost.off_chip_traffic_bytes >= 2 * 595_776_000


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"batch": 0}, "batch is 0: expected 1 to 2,147,483,647"),
        (
            {"context": 257},
            "a request takes 257: expected at most 256, the positions of gpt2",
        ),
        (
            {"context": 256, "phase": "decode"},
            "a request takes 257: expected at most 256, the positions of gpt2",
        ),
        ({"part": "ends", "layers": 1}, "layers is 1: expected none with part=ends"),
        (
            {"part": "layers", "first_layer": 2},
            "first_layer is 2 and layers is 1: expected layers of 2",
        ),
        (
            {"dtype": "float8_e4m3fn"},
            "dtype is float8_e4m3fn, in which PyTorch does not compute: expected a model "
            "without weights",
        ),
    ],
)
def test_torch_model_refuses_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        program("torch_model", **parameters)

    assert message in str(refused.value)


def test_torch_model_without_transformers_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)

    with pytest.raises(ConfigurationError, match=r"transformers, which is not installed: expected"):
        program("torch_model")

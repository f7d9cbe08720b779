"""Whole models of ``torch_model.py``, which run in parts, one after the other."""

from __future__ import annotations

from typing import Final, TypeAlias

from fabric import Findings

Setting: TypeAlias = dict[str, str | int | float | bool | None]

PARTS: Final[dict[str, dict[int, int]]] = {
    "gpt2": {0: 24},
    "llama": {0: 22},
    "qwen3": {0: 28},
    "gemma3": {0: 22, 5: 4},
    "qwen3-moe": {0: 48},
    "mixtral": {0: 32},
}
"""The kinds of layers of each model: the number of the first one, and how many are equal to it."""


def parts_of(model: str) -> list[tuple[Setting, int]]:
    """Return the parts of a model, and how many times each runs in a step of the model."""
    ends: Setting = {"part": "ends", "first_layer": 0}
    layers: list[tuple[Setting, int]] = [
        ({"part": "layers", "first_layer": first}, count) for first, count in PARTS[model].items()
    ]
    return [(ends, 1), *layers]


def total(findings: Findings, metric: str, model: str, setting: Setting) -> float | None:
    """Return the sum of a metric over all parts of a model.

    None if a part did not complete or lacks the metric. For example, joules need a price for each
    operator.
    """
    values = [(findings.value(metric, **setting, **part), times) for part, times in parts_of(model)]
    known = [times * value for value, times in values if value is not None]
    return sum(known) if len(known) == len(values) else None

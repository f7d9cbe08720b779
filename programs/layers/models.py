"""Sizes of the mixture-of-experts models of the paper (section 5.1), and a small one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = ["MODELS", "Model", "ModelName"]

ModelName: TypeAlias = Literal["qwen3-30b-a3b", "mixtral-8x7b", "tiny"]


@dataclass(frozen=True)
class Model:
    """One mixture-of-experts layer.

    Attributes:
        hidden: columns of the input and the output.
        inter: columns between gate/up and down.
        experts: how many there are.
        top_k: how many a token goes to.
    """

    hidden: int
    inter: int
    experts: int
    top_k: int


MODELS: Final[dict[ModelName, Model]] = {
    "qwen3-30b-a3b": Model(hidden=2048, inter=768, experts=128, top_k=8),
    "mixtral-8x7b": Model(hidden=4096, inter=14336, experts=8, top_k=2),
    "tiny": Model(hidden=64, inter=128, experts=8, top_k=2),
}

"""Sizes of the mixture-of-experts models of the paper (section 5.1), and a small one.

Those of the attention and the number of layers are from the models' published configurations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = ["ATTENTION", "MODELS", "Attention", "Model", "ModelName"]

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


@dataclass(frozen=True)
class Attention:
    """The attention of a model's layers, and how many layers there are.

    Attributes:
        layers: of the model.
        key_heads: key-value heads.
        queries: query heads that share a key-value head.
        head_dim: columns of a head.
        head_norm: queries and keys of a head are normalised.
        rotary_base: of the rotary embedding's angles.
    """

    layers: int
    key_heads: int
    queries: int
    head_dim: int
    head_norm: bool
    rotary_base: float


ATTENTION: Final[dict[ModelName, Attention]] = {
    "qwen3-30b-a3b": Attention(48, 4, 8, 128, head_norm=True, rotary_base=1e6),
    "mixtral-8x7b": Attention(32, 8, 4, 128, head_norm=False, rotary_base=1e6),
    "tiny": Attention(2, 2, 2, 16, head_norm=True, rotary_base=1e4),
}

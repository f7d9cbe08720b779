"""Sizes of the mixture-of-experts models of the paper (section 5.1), and a small one.

The sizes of attention and the number of layers are from the models' published configurations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from fabric import ConfigurationError

MOST: Final = 2**31 - 1
"""The largest value of any size."""

ModelName: TypeAlias = Literal["qwen3-30b-a3b", "mixtral-8x7b", "tiny"]


@dataclass(frozen=True)
class Model:
    """The sizes of a mixture-of-experts layer.

    Attributes:
        hidden: columns of the input and the output.
        inter: columns of the results of the gate and up projections.
        top_k: experts per token.
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
        key_heads: key-value heads.
        queries: query heads that share a key-value head.
        head_dim: columns of a head.
        head_norm: whether queries and keys of a head are normalised.
        rotary_base: the base of the angles of the rotary embedding.
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


def layer(
    model: ModelName, experts: int | None, top_k: int | None, hidden: int | None, inter: int | None
) -> Model:
    """Return the sizes of a model's layer. Sizes that are not None replace the model's."""
    sizes = {"experts": experts, "top_k": top_k, "hidden": hidden, "inter": inter}
    size = replace(MODELS[model], **_checked(sizes))
    if size.top_k > size.experts:
        raise ConfigurationError(
            f"top_k is {size.top_k}: expected at most the number of experts, {size.experts}"
        )
    return size


def attends(
    model: ModelName, heads: int | None, key_heads: int | None, head_dim: int | None
) -> Attention:
    """Return the attention of a model's layers. Sizes that are not None replace the model's.

    ``heads`` is the number of query heads of all ``key_heads`` together.
    """
    own = ATTENTION[model]
    sizes = {
        "heads": own.key_heads * own.queries,
        "key_heads": own.key_heads,
        "head_dim": own.head_dim,
    } | _checked({"heads": heads, "key_heads": key_heads, "head_dim": head_dim})
    if sizes["heads"] % sizes["key_heads"]:
        raise ConfigurationError(
            f"heads is {sizes['heads']}: expected a multiple of key_heads, {sizes['key_heads']}"
        )
    if sizes["head_dim"] % 2:
        raise ConfigurationError(
            f"head_dim is {sizes['head_dim']}: expected an even number, for the rotary embedding"
        )
    queries = sizes["heads"] // sizes["key_heads"]
    return replace(own, key_heads=sizes["key_heads"], queries=queries, head_dim=sizes["head_dim"])


def _checked(sizes: dict[str, int | None]) -> dict[str, int]:
    """Return the sizes that are not None."""
    checked = {name: size for name, size in sizes.items() if size is not None}
    for name, size in checked.items():
        if not 1 <= size <= MOST:
            raise ConfigurationError(f"{name} is {size}: expected 1 to {MOST:,}")
    return checked

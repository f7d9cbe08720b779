"""Sizes of PyTorch models, by the names in transformers' configurations.

The full sizes are from the models' published configurations: openai-community/gpt2-medium,
TinyLlama/TinyLlama-1.1B-Chat-v1.0, Qwen/Qwen3-0.6B, google/gemma-3-1b-it, Qwen/Qwen3-30B-A3B and
mistralai/Mixtral-8x7B-v0.1. GPT-2, Llama and Gemma are as in StreamTensor (arXiv 2509.13694v2,
section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

ModelName: TypeAlias = Literal["gpt2", "llama", "qwen3", "gemma3", "qwen3-moe", "mixtral"]

Sizes: TypeAlias = Mapping[str, Any]

FAMILIES: Final[Mapping[ModelName, str]] = MappingProxyType(
    {
        "gpt2": "gpt2",
        "llama": "llama",
        "qwen3": "qwen3",
        "gemma3": "gemma3_text",
        "qwen3-moe": "qwen3_moe",
        "mixtral": "mixtral",
    }
)
"""The families' names in transformers."""

_GEMMA_ROTARY: Final = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    "full_attention": {"rope_type": "default", "rope_theta": 1e6},
}

FULL: Final[Mapping[ModelName, Sizes]] = MappingProxyType(
    {
        "gpt2": {
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "max_position_embeddings": 1024,
            "vocab_size": 50257,
        },
        "llama": {
            "hidden_size": 2048,
            "intermediate_size": 5632,
            "num_hidden_layers": 22,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "head_dim": 64,
            "max_position_embeddings": 2048,
            "rms_norm_eps": 1e-5,
            "rope_theta": 1e4,
            "vocab_size": 32000,
        },
        "qwen3": {
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 40960,
            "rope_theta": 1e6,
            "tie_word_embeddings": True,
            "vocab_size": 151936,
        },
        "gemma3": {
            "hidden_size": 1152,
            "intermediate_size": 6912,
            "num_hidden_layers": 26,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "max_position_embeddings": 32768,
            "query_pre_attn_scalar": 256,
            "sliding_window": 512,
            "sliding_window_pattern": 6,
            "rope_parameters": _GEMMA_ROTARY,
            "vocab_size": 262144,
        },
        "qwen3-moe": {
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "moe_intermediate_size": 768,
            "num_hidden_layers": 48,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "norm_topk_prob": True,
            "max_position_embeddings": 40960,
            "rope_theta": 1e6,
            "vocab_size": 151936,
        },
        "mixtral": {
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
            "max_position_embeddings": 32768,
            "rms_norm_eps": 1e-5,
            "rope_theta": 1e6,
            "sliding_window": None,
            "vocab_size": 32000,
        },
    }
)

_TINY: Final = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "vocab_size": 97,
}

TINY: Final[Mapping[ModelName, Sizes]] = MappingProxyType(
    {
        "gpt2": {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 256,
            "vocab_size": 97,
        },
        "llama": _TINY,
        "qwen3": {**_TINY, "tie_word_embeddings": True},
        "gemma3": {
            **_TINY,
            "num_key_value_heads": 1,
            "query_pre_attn_scalar": 8,
            "sliding_window": 4,
            "sliding_window_pattern": 2,
            "rope_parameters": _GEMMA_ROTARY,
        },
        "qwen3-moe": {
            **_TINY,
            "moe_intermediate_size": 16,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "norm_topk_prob": True,
        },
        "mixtral": {**_TINY, "num_local_experts": 4, "num_experts_per_tok": 2},
    }
)
"""Small sizes with the special features of each model: grouped heads, tied tables, windows."""


def layers_of(sizes: Sizes) -> int:
    return int(sizes["num_hidden_layers"])


def alike(sizes: Sizes, layer: int) -> list[int]:
    """Return the layers that are equal to ``layer``. Five of six layers of Gemma have windows."""
    pattern = int(sizes.get("sliding_window_pattern", 1))
    slides = (layer + 1) % pattern != 0
    return [other for other in range(layers_of(sizes)) if ((other + 1) % pattern != 0) == slides]


def experts_of(sizes: Sizes) -> tuple[int, int]:
    """Return the experts per layer and per token; zeros for models without experts."""
    experts = sizes.get("num_experts", sizes.get("num_local_experts", 0))
    return int(experts), int(sizes.get("num_experts_per_tok", 0))

"""Single layers of transformers."""

from __future__ import annotations

from typing import Any

import torch
from transformers import MixtralConfig, Qwen3MoeConfig
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeExperts, Qwen3MoeSparseMoeBlock


def config(hidden: int, inner: int, experts: int, hits: int) -> Any:
    found = Qwen3MoeConfig(
        hidden_size=hidden,
        moe_intermediate_size=inner,
        num_experts=experts,
        num_experts_per_tok=hits,
    )
    found._experts_implementation = "grouped_mm"
    return found


def qwen(hidden: int, inner: int, experts: int, hits: int) -> Any:
    return Qwen3MoeSparseMoeBlock(config(hidden, inner, experts, hits)).eval()


def qwen_experts(hidden: int, inner: int, experts: int, hits: int) -> Any:
    return Qwen3MoeExperts(config(hidden, inner, experts, hits)).eval()


def mixtral(hidden: int, inner: int, experts: int, hits: int) -> Any:
    found = MixtralConfig(
        hidden_size=hidden,
        intermediate_size=inner,
        num_local_experts=experts,
        num_experts_per_tok=hits,
    )
    found._experts_implementation = "grouped_mm"
    return MixtralSparseMoeBlock(found).eval()


def filled(module: Any, dtype: torch.dtype) -> Any:
    module = module.to(dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    return module

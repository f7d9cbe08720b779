# mypy: disallow-subclassing-any=False

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
from layers.torch_parts import _Cache as Cache
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.cache_utils import EncoderDecoderCache

from fabric import simulate
from operators.torch import from_torch
from tests.profiles import spread

_SIZES: Final = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "vocab_size": 97,
}
_GROUPED: Final = {**_SIZES, "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}
_LATENT: Final = {
    **_SIZES,
    "num_hidden_layers": 2,
    "num_key_value_heads": 4,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 16,
    "n_shared_experts": 1,
    "n_routed_experts": 8,
    "n_group": 4,
    "topk_group": 2,
    "num_experts_per_tok": 2,
    "kv_lora_rank": 8,
    "q_lora_rank": 12,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
_EXPERTS: Final = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}

CACHED: Final[dict[str, dict[str, Any]]] = {
    "phi3": _GROUPED,
    "gpt_oss": {**_GROUPED, **_EXPERTS, "layer_types": ["full_attention"]},
    "deepseek_v3": _LATENT,
    "falcon": {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "vocab_size": 97,
        "new_decoder_architecture": False,
    },
    "cohere": _GROUPED,
    "llama4_text": {
        **_GROUPED,
        "intermediate_size_mlp": 48,
        "num_local_experts": 4,
        "num_experts_per_tok": 1,
    },
    "deepseek_v2": _LATENT,
    "phimoe": {**_GROUPED, **_EXPERTS},
    "gpt_neox": _SIZES,
}

MAMBA: Final = {
    "hidden_size": 32,
    "num_heads": 4,
    "head_dim": 16,
    "state_size": 8,
    "n_groups": 2,
    "num_hidden_layers": 1,
    "vocab_size": 97,
    "chunk_size": 4,
    "expand": 2,
}
VISION: Final = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "image_size": 16,
    "patch_size": 8,
}
SEEING: Final[dict[str, dict[str, Any]]] = {
    "vit": VISION,
    "resnet": {
        "embedding_size": 8,
        "hidden_sizes": [8, 12, 16, 20],
        "depths": [2, 2, 2, 2],
        "layer_type": "basic",
        "image_size": 32,
    },
    "swin": {
        "image_size": 16,
        "patch_size": 2,
        "embed_dim": 8,
        "depths": [2, 1],
        "num_heads": [2, 2],
        "window_size": 4,
    },
}


class _Called(torch.nn.Module):
    def __init__(self, model: Any, function: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.function = model, function

    def forward(self, *given: Any) -> Any:
        return self.function(self.model, *given)


def _drawn(model: Any) -> Any:
    for parameter in model.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.1)
    return model.eval()


def _verified(model: Any, function: Callable[..., Any], *given: Any) -> bool:
    return bool(simulate(from_torch(_Called(model, function), given), mode="functional").verified)


def _step(model: Any, ids: Any, positions: Any, *past: Any) -> tuple[Any, ...]:
    cache = Cache(past)
    called = {"position_ids": positions, "past_key_values": cache, "use_cache": True}
    return (model(input_ids=ids, **called).logits, *cache.added)


@pytest.mark.parametrize(
    ("name", "phase"),
    spread([(name, phase) for name in CACHED for phase in ("prefill", "decode")], 2),
)
def test_cached_language_model_is_verified(name: str, phase: str) -> None:
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **CACHED[name])
    model = _drawn(AutoModelForCausalLM.from_config(config))
    assert _is_right(model, phase)


def _is_right(model: Any, phase: str) -> bool:
    ids, positions = torch.randint(3, 90, (2, 6)), torch.arange(6).expand(2, 6).contiguous()
    if phase == "prefill":
        return _verified(model, _step, ids[:, :5], positions[:, :5])
    with torch.no_grad():
        _, *past = _step(model, ids[:, :5], positions[:, :5])
    return _verified(model, _step, ids[:, 5:], positions[:, 5:], *past)


@pytest.mark.deep
def test_mamba_is_verified() -> None:
    torch.manual_seed(0)
    model = _drawn(AutoModelForCausalLM.from_config(AutoConfig.for_model("mamba2", **MAMBA)))
    ids = torch.randint(3, 90, (2, 7))

    def whole(model: Any, ids: Any) -> Any:
        return model(input_ids=ids, use_cache=False).logits

    assert _verified(model, whole, ids)
    with torch.no_grad():
        cache = model(input_ids=ids[:, :6], use_cache=True).cache_params
    (held,) = cache.layers

    def step(model: Any, ids: Any, window: Any, state: Any) -> Any:
        copied, layer = copy.copy(cache), copy.copy(held)
        vars(layer).update(
            {name: dict(value) for name, value in vars(held).items() if isinstance(value, dict)}
        )
        layer.conv_states = {0: window.clone()}
        layer.recurrent_states = {0: state.clone()}
        copied.layers = [layer]
        logits = model(input_ids=ids, cache_params=copied, use_cache=True).logits
        return logits, layer.conv_states[0], layer.recurrent_states[0]

    given = ids[:, 6:], held.conv_states[0], held.recurrent_states[0]
    with torch.no_grad():
        together = whole(model, ids)[:, -1:]
        torch.testing.assert_close(step(model, *given)[0], together, rtol=1e-4, atol=1e-5)
    assert _verified(model, step, *given)


class _LowRank(torch.nn.Module):
    def __init__(self, base: Any) -> None:
        super().__init__()
        self.base = base
        self.down = torch.nn.Linear(base.in_features, 4, bias=False)
        self.up = torch.nn.Linear(4, base.out_features, bias=False)

    def forward(self, x: Any) -> Any:
        return self.base(x) + 2.0 * self.up(self.down(x))


@pytest.mark.deep
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_low_rank_adapters_are_verified(phase: str) -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **_GROUPED))
    for layer in model.model.layers:
        layer.self_attn.q_proj = _LowRank(layer.self_attn.q_proj)
        layer.self_attn.v_proj = _LowRank(layer.self_attn.v_proj)

    assert _is_right(_drawn(model), phase)


@pytest.mark.deep
def test_whisper_is_verified() -> None:
    torch.manual_seed(0)
    heads = {f"{part}_attention_heads": 4 for part in ("encoder", "decoder")}
    layers = {f"{part}_layers": 1 for part in ("encoder", "decoder")}
    wide = {f"{part}_ffn_dim": 48 for part in ("encoder", "decoder")}
    tokens = {f"{name}_token_id": 1 for name in ("bos", "decoder_start")}
    config = AutoConfig.for_model(
        "whisper",
        d_model=32,
        vocab_size=97,
        max_source_positions=10,
        max_target_positions=20,
        num_mel_bins=8,
        pad_token_id=0,
        eos_token_id=2,
        **heads,
        **layers,
        **wide,
        **tokens,
    )

    model = _drawn(AutoModel.from_config(config))
    heard, ids = torch.randn(1, 8, 20), torch.randint(3, 90, (1, 4))

    def whole(model: Any, heard: Any, ids: Any) -> Any:
        return model(input_features=heard, decoder_input_ids=ids, use_cache=False)[0]

    assert _verified(model, whole, heard, ids)

    def step(model: Any, ids: Any, heard: Any, *past: Any) -> Any:
        cache = EncoderDecoderCache(Cache(past[:2]), Cache(past[2:]))
        cache.is_updated = dict.fromkeys(range(1), bool(past[2:]))
        found = model.decoder(
            input_ids=ids,
            encoder_hidden_states=heard,
            past_key_values=cache,
            use_cache=True,
            position_ids=torch.arange(3, 4)[None] if past else None,
        )
        added = cache.self_attention_cache.added, cache.cross_attention_cache.added
        return (found[0], *added[0], *added[1])

    with torch.no_grad():
        encoded = model.encoder(heard)[0]
        _, *past = step(model, ids[:, :3], encoded)
        last, *_ = step(model, ids[:, 3:], encoded, *past)
        torch.testing.assert_close(last, whole(model, heard, ids)[:, -1:], rtol=1e-4, atol=1e-5)
    assert _verified(model, step, ids[:, 3:], encoded, *past)


@pytest.mark.deep
@pytest.mark.parametrize("name", SEEING)
def test_vision_model_is_verified(name: str) -> None:
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **SEEING[name])
    size = SEEING[name]["image_size"]

    assert _verified(
        _drawn(AutoModel.from_config(config)),
        lambda model, image: model(pixel_values=image)[0],
        torch.randn(1, 3, size, size),
    )


MIXTURES: Final = {
    "olmoe": "OlmoeSparseMoeBlock",
    "mixtral": "MixtralSparseMoeBlock",
    "gpt_oss": "GptOssMLP",
    "deepseek_v3": "DeepseekV3MoE",
}


@pytest.mark.parametrize("name", spread(MIXTURES, 1))
def test_expert_block_is_verified(name: str) -> None:
    torch.manual_seed(0)
    sizes = _LATENT if name == "deepseek_v3" else {**_GROUPED, **_EXPERTS}
    config = AutoConfig.for_model(name, **sizes)
    models = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    module = getattr(models, MIXTURES[name])(config).eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    before = config._experts_implementation

    report = simulate(from_torch(module, (torch.randn(2, 5, 32),)), mode="functional")

    assert report.verified
    assert before == config._experts_implementation

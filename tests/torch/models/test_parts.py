from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from layers.torch_parts import LanguageModelPart, decoding, prefilling
from layers.torch_sizes import FAMILIES, FULL, TINY, ModelName, layers_of
from layers.torch_weights import model_of
from safetensors.torch import save_file, save_model

from fabric import ConfigurationError
from tests.profiles import spread

NAMES = list(FAMILIES)


def tiny(name: ModelName, layers: range = range(2), **changed: Any) -> Any:
    given = {"weights": None, "seed": 0, **changed}
    with torch.no_grad():
        return model_of(FAMILIES[name], TINY[name], layers, "float32", **given)


@pytest.mark.parametrize("name", NAMES)
def test_prefill_equals_the_model(name: ModelName) -> None:
    model = tiny(name)
    called = prefilling(model, "model", 2, 7, seed=3)

    with torch.no_grad():
        logits, *added = LanguageModelPart(model, "model")(*called[:3])
        expected = model(called.given).logits[:, -1:]

    torch.testing.assert_close(logits, expected)
    assert 2 * layers_of(TINY[name]) == len(added)


@pytest.mark.parametrize("name", spread(NAMES, 3))
def test_decode_continues_prefill(name: ModelName) -> None:
    model = tiny(name)
    lengths = np.array([5, 2, 7])
    called = decoding(model, "model", lengths, seed=0)
    whole = np.random.default_rng(1).integers(0, 97, (3, 8))
    past = [torch.full_like(each, 100.0) for each in called.past]
    expected = []
    with torch.no_grad():
        for request, length in enumerate(lengths):
            tokens = torch.from_numpy(whole[request, : length + 1])[None]
            expected.append(model(tokens).logits[0, -1])
            read = prefilling(model, "model", 1, int(length), seed=0)._replace(given=tokens[:, :-1])
            _, *added = LanguageModelPart(model, "model")(*read[:3])
            for all_of_them, own in zip(past, added, strict=True):
                all_of_them[request, :, 7 - length :] = own[0]
        new = torch.from_numpy(whole[np.arange(3), lengths])[:, None]
        logits, *_ = LanguageModelPart(model, "model")(new, called.positions, called.mask, *past)

    torch.testing.assert_close(logits[:, 0], torch.stack(expected))


@pytest.mark.parametrize("name", spread(NAMES, 2))
def test_parts_equal_the_whole_model(name: ModelName, tmp_path: Path) -> None:
    model = tiny(name)
    file = tmp_path / "weights.safetensors"
    save_model(model, file)
    called = prefilling(model, "model", 2, 6, seed=1)

    with torch.no_grad():
        seen: list[Any] = []
        body = model.base_model
        (getattr(body, "drop", None) or body.embed_tokens).register_forward_hook(
            lambda _module, _given, result: seen.append(result)
        )
        expected = LanguageModelPart(model, "model")(*called[:3])[0]
        hidden = seen[0]
        for layer in range(2):
            one = tiny(name, range(layer, layer + 1), weights=file)
            hidden = LanguageModelPart(one, "layers")(hidden, called.positions, None)[0]
        last = model.base_model.ln_f if name == "gpt2" else model.base_model.norm
        logits = model.lm_head(last(hidden))[:, -1:]

    torch.testing.assert_close(logits, expected)


@pytest.mark.parametrize("name", spread(NAMES, 1))
def test_weights_are_mapped_from_their_file(name: ModelName, tmp_path: Path) -> None:
    model = tiny(name)
    file = tmp_path / "weights.safetensors"
    save_model(model, file)
    ids = torch.arange(6)[None]

    read = tiny(name, weights=file, seed=None)

    with torch.no_grad():
        torch.testing.assert_close(read(ids).logits, model(ids).logits)
    for one, other in zip(read.parameters(), model.parameters(), strict=True):
        assert torch.equal(one, other)
    for parameter in read.parameters():
        assert file.name in _mapping_of(parameter.data_ptr())


def test_missing_weights_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "some.safetensors"
    held = tiny("llama").state_dict()
    del held["model.norm.weight"]
    save_file(held, file)

    with pytest.raises(ConfigurationError) as refused:
        tiny("llama", weights=file)

    assert f"{file} has no model.norm.weight: expected every weight" == str(refused.value)


def test_missing_weight_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere.safetensors: No such file"):
        tiny("llama", weights=tmp_path / "nowhere.safetensors")
    with pytest.raises(ConfigurationError, match=r"has no .* more of its weights: expected every"):
        tiny("llama", weights=tmp_path)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("gpt2", 0.355),
        ("llama", 1.100),
        ("qwen3", 0.596),
        ("gemma3", 1.000),
        ("qwen3-moe", 30.532),
        ("mixtral", 46.703),
    ],
)
def test_full_model_has_its_published_number_of_parameters(
    name: ModelName, billions: float
) -> None:
    sizes = FULL[name]
    every = range(layers_of(sizes))
    model = model_of(FAMILIES[name], sizes, every, "bfloat16", weights=None, seed=None)

    assert billions == round(model.num_parameters() / 1e9, 3)


def _mapping_of(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(each, 16) for each in line.split()[0].split("-"))
        if first <= address < last:
            return line
    return ""

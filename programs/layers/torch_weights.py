"""Models of transformers with weights from files, drawn, or none at all."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.initialization import no_init_weights

from fabric import ConfigurationError
from layers.torch_sizes import Sizes

__all__ = ["model_of"]


def model_of(
    family: str,
    sizes: Sizes,
    layers: range,
    dtype: str,
    *,
    weights: Path | None,
    seed: int | None,
) -> Any:
    """Return transformers' model of some layers, with embedding and head.

    Args:
        family: as transformers calls it.
        sizes: of its configuration.
        layers: which ones it has.
        dtype: of all weights.
        weights: a file of safetensors, or a folder of them, which is mapped.
        seed: of drawn weights; None for none, on the meta device. Not asked where there is a file.

    Raises:
        ConfigurationError: a file cannot be read or has not all weights.
    """
    # It warns of token numbers that belong to another size's vocabulary.
    logging.getLogger("transformers").setLevel(logging.ERROR)
    whole = AutoConfig.for_model(family, **sizes)
    own: dict[str, Any] = {**sizes, "num_hidden_layers": len(layers)}
    if getattr(whole, "layer_types", None):
        own["layer_types"] = [whole.layer_types[layer] for layer in layers]
    config = AutoConfig.for_model(family, **own)
    kind = getattr(torch, dtype)
    if weights is not None:
        with no_init_weights():
            model = AutoModelForCausalLM.from_config(config, dtype=kind)
        _load(model, weights, layers, kind)
    elif seed is None:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=kind)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = AutoModelForCausalLM.from_config(config, dtype=kind)
    return model.eval()


def _load(model: Any, weights: Path, layers: range, dtype: Any) -> None:
    """Give ``model`` the weights of the layers that it has, as they are in the file."""
    files = sorted(weights.glob("*.safetensors")) if weights.is_dir() else [weights]
    if not files:
        raise ConfigurationError(f"{weights} has no files: expected some of safetensors")
    held: dict[str, Any] = {}
    for file in files:
        held |= _mapped(file)
    prefix = f"{model.base_model_prefix}."
    wanted = set(model.state_dict())
    found = {}
    for name, tensor in held.items():
        own = _renumbered(name, layers)
        if own is None:
            continue
        found[own if own in wanted else prefix + own] = tensor
    missing, _ = model.load_state_dict(
        {name: each for name, each in found.items() if name in wanted}, strict=False, assign=True
    )
    model.tie_weights()
    lacking = [each for each in missing if model.state_dict()[each].data_ptr() not in {
        tensor.data_ptr() for tensor in found.values()
    }]
    if lacking:
        raise ConfigurationError(
            f"{weights} has no {lacking[0]} and {len(lacking) - 1} others: expected all weights"
        )
    model.to(dtype)


def _mapped(file: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            return {name: opened.get_tensor(name) for name in opened.keys()}
    except (OSError, SafetensorError) as error:
        raise ConfigurationError(f"{file}: {error}: expected a file of safetensors") from error


def _renumbered(name: str, layers: range) -> str | None:
    """Return a weight's name with its layer counted from the first one there is; None of others."""
    found = re.search(r"\b(?:layers|h)\.(\d+)\.", name)
    if found is None:
        return name
    number = int(found[1])
    if number not in layers:
        return None
    return f"{name[: found.start(1)]}{number - layers.start}{name[found.end(1) :]}"

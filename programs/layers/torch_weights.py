"""Models of transformers with weights from files, random weights, or no weights."""

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


def model_of(
    family: str,
    sizes: Sizes,
    layers: range,
    dtype: str,
    *,
    weights: Path | str | None,
    seed: int | None,
) -> Any:
    """Return transformers' model of some layers, with embedding and head.

    ``family`` and ``sizes`` are as in transformers' configurations. ``weights`` is a safetensors
    file, or a folder of several, which is mapped. Without it, weights are random, from ``seed``. If
    both are None, the model is on the meta device, without weights.
    """
    # transformers warns of token numbers that belong to another vocabulary.
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
        _load(model, Path(weights), layers, kind)
    elif seed is None:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config).to(kind)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = AutoModelForCausalLM.from_config(config, dtype=kind)
    return model.eval()


def _load(model: Any, weights: Path, layers: range, dtype: Any) -> None:
    """Load the weights of the model's layers from files."""
    files = sorted(weights.glob("*.safetensors")) if weights.is_dir() else [weights]
    names = set(model.state_dict())
    tensors: dict[str, Any] = {}
    for file in files:
        for name, tensor in _mapped(file).items():
            own = _renumbered(name, layers)
            # Files of a model without a head have names without a prefix.
            prefixed = f"{model.base_model_prefix}.{own}"
            tensors[prefixed if prefixed in names else str(own)] = tensor
    for one, other in model.all_tied_weights_keys.items():
        for name, twin in ((one, other), (other, one)):
            if name not in tensors and twin in tensors:
                tensors[name] = tensors[twin]
    own_tensors = {name: tensor for name, tensor in tensors.items() if name in names}
    missing, _ = model.load_state_dict(own_tensors, strict=False, assign=True)
    if missing:
        others = f" and {len(missing) - 1} more of its weights" if len(missing) > 1 else ""
        raise ConfigurationError(f"{weights} has no {missing[0]}{others}: expected every weight")
    model.tie_weights()
    model.to(dtype)


def _mapped(file: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            names = opened.keys()
            return {name: opened.get_tensor(name) for name in names}
    except (OSError, SafetensorError) as error:
        raise ConfigurationError(f"{file}: {error}: expected a file of safetensors") from error


def _renumbered(name: str, layers: range) -> str | None:
    """Return the name of a weight, with its layer counted from the first of ``layers``.

    None for a weight of another layer.
    """
    numbered = re.search(r"\b(?:layers|h)\.(\d+)\.", name)
    if numbered is None:
        return name
    number = int(numbered[1])
    if number not in layers:
        return None
    return f"{name[: numbered.start(1)]}{number - layers.start}{name[numbered.end(1) :]}"

"""A language model of PyTorch, by its family's name: reading prompts, or making one token each.

Six families, as transformers has them: GPT-2, Llama, Qwen3, Gemma 3, Qwen3-MoE and Mixtral. In
``prefill`` every request brings ``context`` tokens; in ``decode`` it brings one, behind a cache of
keys and values. What comes out are the logits of each request's last token, and the keys and
values of all new ones.

Tiny models have drawn weights, and in functional mode every output is compared with what PyTorch
computes. Full ones have none, unless a file gives them, and run in timing mode. A full model is run
in parts: its ``ends`` (embedding, last norm, head) once, and its ``layers`` one at a time; a run of
one layer stands for all that are like it. Run on the same hardware one after the other, as
``layers/torch_runs.py`` lists them, they add up to the model.

Needs the extra torch.

Run:      python -m fabric run programs/torch_model.py -p model=qwen3 --mode functional
          python -m fabric run programs/torch_model.py -p size=full -p part=layers -p phase=decode
Computes: what the model computes in PyTorch
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from layers.cache_lengths import read_lengths
from layers.torch_sizes import FAMILIES, FULL, TINY, ModelName, layers_of

from fabric import ConfigurationError, Program

MOST = 2**31 - 1


def build(
    model: ModelName = "gpt2",
    size: Literal["tiny", "full"] = "tiny",
    phase: Literal["prefill", "decode"] = "prefill",
    part: Literal["model", "layers", "ends"] = "model",
    batch: int = 2,
    context: int = 6,
    kv: Path | None = None,
    layers: int | None = None,
    first_layer: int = 0,
    dtype: Literal["float32", "bfloat16"] = "bfloat16",
    weights: Path | None = None,
    tile_rows: int = 16,
    tile_cols: int = 64,
    tile_inner: int = 64,
    tile_keys: int = 64,
    order: Literal["weight", "row", "output"] = "weight",
    ragged: Literal["static", "dynamic"] = "dynamic",
    regions: int | None = None,
    on_chip_bytes: int | None = None,
    seed: int = 0,
) -> Program:
    """Import the model.

    Args:
        model: its family.
        size: ``tiny``, or that of a published model (``layers/torch_sizes.py``).
        phase: ``prefill`` reads prompts, ``decode`` makes a token for every request.
        part: ``model``, some ``layers`` of it alone, or its ``ends``.
        batch: requests.
        context: tokens of every request: its prompt, or what is cached of it.
        kv: an .npy file of cache lengths in tokens for decode, instead of ``context``.
        layers: how many there are; all for the model, one for the layers where None.
        first_layer: the number of the first one: those of Gemma 3 are not all alike.
        dtype: of weights and activations.
        weights: a file of safetensors, or a folder of them; drawn for tiny models where None.
        tile_rows: rows of an activation's tile.
        tile_cols: columns of a weight's tile.
        tile_inner: inner dimension of products that are summed tile by tile.
        tile_keys: rows of a tile of keys and values.
        order: of matrix products: what stays, ``weight``, ``row`` or ``output``.
        ragged: tiles of an expert's tokens, ``static`` or ``dynamic``.
        regions: how many share the experts; one each where None.
        on_chip_bytes: what converters may take together; no limit where None.
        seed: of all data.
    """
    sizes = (TINY if size == "tiny" else FULL)[model]
    for name, value, least in (
        ("batch", batch, 1),
        ("context", context, 1),
        ("first_layer", first_layer, 0),
        ("seed", seed, 0),
    ):
        if not least <= value <= MOST:
            raise ConfigurationError(f"{name} is {value}: expected {least} to {MOST:,}")
    chosen = _layers(part, layers, first_layer, layers_of(sizes))
    if phase == "decode":
        lengths = np.full(batch, context) if kv is None else read_lengths(kv, batch)
        new = 1
    else:
        lengths, new = np.zeros(batch, np.int64), context
    longest, most = int(lengths.max()) + new, int(sizes["max_position_embeddings"])
    if longest > most:
        raise ConfigurationError(
            f"a request has {longest:,} tokens: expected at most {most:,}, the positions of {model}"
        )
    try:
        from layers.torch_parts import LanguageModelPart, decoding, prefilling
        from layers.torch_weights import model_of

        from operators.kernels.schedule import Schedule
        from operators.torch import from_torch
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"torch_model.py needs {error.name}: expected the extra torch, "
            "as pip install 'step-fabric[torch]' installs it"
        ) from error

    wanted = None if size == "full" else seed
    loaded = model_of(FAMILIES[model], sizes, chosen, dtype, weights=weights, seed=wanted)
    if phase == "decode":
        called = decoding(loaded, part, lengths, seed)
    else:
        called = prefilling(loaded, part, batch, context, seed)
    schedule = Schedule(
        tile_rows=tile_rows,
        tile_cols=tile_cols,
        tile_inner=tile_inner,
        tile_keys=tile_keys,
        order=order,
        ragged=ragged,
        regions=regions,
        on_chip_bytes=on_chip_bytes,
    )
    given = (called.given, called.positions, called.mask, *called.past)
    return from_torch(LanguageModelPart(loaded, part), given, schedule=schedule, name=model)


def _layers(
    part: Literal["model", "layers", "ends"], layers: int | None, first: int, there: int
) -> range:
    """Return the numbers of the layers that the part has."""
    if part == "ends":
        if layers is not None:
            raise ConfigurationError(f"layers is {layers}: expected none with part=ends")
        return range(0)
    count = (there - first if part == "model" else 1) if layers is None else layers
    if count < 1 or first + count > there:
        raise ConfigurationError(
            f"first_layer is {first} and layers is {count}: expected layers of {there}"
        )
    return range(first, first + count)

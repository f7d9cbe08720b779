"""A language model of PyTorch that reads prompts, or makes one token for each request.

There are six families of transformers: GPT-2, Llama, Qwen3, Gemma 3, Qwen3-MoE and Mixtral. In
``prefill``, every request brings ``context`` tokens. In ``decode``, it brings one token and a cache
of the keys and values of earlier tokens. The results are the logits of each request's last token,
and the keys and values of all new tokens.

Tiny models have random weights, and in functional mode every output is compared with PyTorch's.
Full models have no weights, unless a file provides them, and run in timing mode. They are run in
parts: the ``ends`` (embedding, last norm, head) once, and the ``layers`` one at a time. A run of
one layer represents all equal layers, and its report has their number. The study
``studies/torch_models.py`` adds up the parts of a whole model.

In functional mode, routers choose experts by their data. In timing mode, PyTorch chooses them from
the same data. A full model has no data: experts come from ``routing`` or are random.

It needs the extra torch.

Run:      python -m fabric run programs/torch_model.py -p model=qwen3 --mode functional
          python -m fabric run programs/torch_model.py -p size=full -p part=layers -p phase=decode
Computes: what the model computes in PyTorch
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from layers.cache_lengths import read_lengths
from layers.layer_routing import layer_routing
from layers.models import MOST, Model
from layers.torch_sizes import FAMILIES, FULL, TINY, ModelName, alike, experts_of, layers_of
from numpy.typing import NDArray

from fabric import ConfigurationError, Program
from fabric.extend import Bounds, check_extra

WeightDtype = Literal[
    "int4", "int8", "mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2"
]


def build(
    model: ModelName = "gpt2",
    size: Literal["tiny", "full"] = "tiny",
    phase: Literal["prefill", "decode"] = "prefill",
    part: Literal["model", "layers", "ends"] = "model",
    batch: Annotated[int, Bounds(1, MOST)] = 2,
    context: Annotated[int, Bounds(1, MOST)] = 6,
    kv: Path | None = None,
    layers: int | None = None,
    first_layer: Annotated[int, Bounds(0, MOST)] = 0,
    dtype: Literal["float32", "bfloat16", "float8_e4m3fn"] = "bfloat16",
    weights: Path | None = None,
    weight_dtype: WeightDtype | None = None,
    routing: Path | None = None,
    tile_rows: int = 16,
    tile_cols: int = 64,
    tile_inner: int = 64,
    tile_keys: int = 64,
    units: int = 1,
    attention_regions: int = 1,
    order: Literal["weight", "row", "output"] = "weight",
    ragged: Literal["static", "dynamic"] = "dynamic",
    regions: int | None = None,
    on_chip_bytes: int | None = None,
    flops_per_cycle: int | None = None,
    seed: Annotated[int, Bounds(0, MOST)] = 0,
) -> Program:
    """Import the model.

    Args:
        model: the family of the model.
        size: ``tiny``, or the size of a published model (``layers/torch_sizes.py``).
        phase: ``prefill`` reads prompts, ``decode`` makes a token for every request.
        part: the whole ``model``, only some ``layers``, or its ``ends``.
        batch: the number of requests.
        context: tokens of the prompt or the cache of every request.
        kv: an .npy file of cache lengths in tokens for decode, instead of ``context``.
        layers: the number of layers; if None, all with part=model, and one with part=layers.
        first_layer: the number of the first layer. The layers of Gemma 3 differ.
        dtype: the type of weights and activations. PyTorch does not compute in float8_e4m3fn.
        weights: a safetensors file, or a folder of several; if None, random for tiny models.
        routing: an .npz file with an array data, [tokens, experts per token], for timing mode.
        weight_dtype: the type of weights in memory, narrower than ``dtype``, for timing mode only;
            ``dtype`` if None.
        tile_rows: rows of a tile of activations.
        tile_cols: columns of a tile of weights.
        tile_inner: inner dimension of products that are summed tile by tile.
        tile_keys: rows of a tile of keys and values.
        units: the number of units that share the columns of a product with weights.
        attention_regions: the number of regions that share the work of an attention.
        order: the operand of matrix products that stays: ``weight``, ``row`` or ``output``.
        ragged: the tiles of an expert's tokens, ``static`` or ``dynamic``.
        regions: the number of regions that share the experts; one per expert if None.
        on_chip_bytes: the most bytes for buffers between kernels; no limit if None.
        flops_per_cycle: FLOPs per cycle of all compute units together; if None, each unit has the
            hardware's.
        seed: for all data.
    """
    sizes = (TINY if size == "tiny" else FULL)[model]
    chosen = _layers(part, layers, first_layer, layers_of(sizes))
    if phase == "decode":
        lengths = np.full(batch, context) if kv is None else read_lengths(kv, batch)
        new = 1
    else:
        lengths, new = np.zeros(batch, np.int64), context
    longest, most = int(lengths.max()) + new, int(sizes["max_position_embeddings"])
    if longest > most:
        raise ConfigurationError(
            f"a request takes {longest:,}: expected at most {most:,}, the positions of {model}"
        )
    has_data = size == "tiny" or weights is not None
    if has_data and dtype == "float8_e4m3fn":
        raise ConfigurationError(
            f"dtype is {dtype}, in which PyTorch does not compute: expected a model without weights"
        )
    parts, loading, importing = _needing_torch()
    weight_seed = None if size == "full" else seed
    loaded = loading.model_of(
        FAMILIES[model], sizes, chosen, dtype, weights=weights, seed=weight_seed
    )
    if phase == "decode":
        called = parts.decoding(loaded, part, lengths, seed)
    else:
        called = parts.prefilling(loaded, part, batch, context, seed)
    schedule = importing.Schedule(
        tile_rows=tile_rows,
        tile_cols=tile_cols,
        tile_inner=tile_inner,
        tile_keys=tile_keys,
        weight_dtype=weight_dtype,
        units=units,
        attention_regions=attention_regions,
        order=order,
        ragged=ragged,
        regions=regions,
        on_chip_bytes=on_chip_bytes,
        flops_per_cycle=flops_per_cycle,
    )
    program: Program = importing.from_torch(
        parts.LanguageModelPart(loaded, part),
        (called.given, called.positions, called.mask, *called.past),
        schedule=schedule,
        routing=None
        if has_data and routing is None
        else _routings(routing, sizes, batch * new, chosen, seed),
        name=model if part == "model" else f"{model}_{part}",
    )
    program.tokens(batch * new, phase=phase)
    if part == "layers" and len(chosen) == 1:
        program.stands_for(len(alike(sizes, first_layer)))
    return program


def _needing_torch() -> tuple[Any, Any, Any]:
    """Return the modules that need torch: parts of models, loading of weights, importing."""
    check_extra("torch_model.py", "torch", "torch", "transformers", "safetensors")
    from layers import torch_parts, torch_weights

    import operators.torch as importing

    return torch_parts, torch_weights, importing


def _routings(
    file: Path | None, sizes: Mapping[str, Any], tokens: int, layers: range, seed: int
) -> list[NDArray[np.int64]]:
    """Return the experts of each token in each layer, [tokens, experts of a token]."""
    experts, top_k = experts_of(sizes)
    if not experts:
        if file is not None:
            raise ConfigurationError(
                f"routing is {file}: expected none for a model without experts"
            )
        return []
    size = Model(sizes["hidden_size"], sizes["intermediate_size"], experts, top_k)
    return [layer_routing(file, size, tokens, layer, seed) for layer in layers]


def _layers(
    part: Literal["model", "layers", "ends"], layers: int | None, first: int, available: int
) -> range:
    if part == "ends":
        if layers is not None:
            raise ConfigurationError(f"layers is {layers}: expected none with part=ends")
        return range(0)
    count = (available - first if part == "model" else 1) if layers is None else layers
    if count < 1 or first + count > available:
        raise ConfigurationError(
            f"first_layer is {first} and layers is {count}: expected layers of {available}"
        )
    return range(first, first + count)

"""A decode step of a mixture-of-experts decoder, one layer or several (section 5.5, figure 17).

Every request brings one new token. A layer normalises the tokens, and computes queries, keys and
values of all heads. It attends to the cache of each request and appends the new token to it. It
projects back and adds its input. It normalises the sum, the router chooses the experts of each
token, and the layer adds their results to the sum. ``layers/decoder_layer.py`` draws a layer.
Weights are loaded from off-chip memory once per layer, and the weights of an expert once for each
of its tiles. The sums that bypass attention and experts stay on chip.

The paper's three optimisations are parameters: ``tiling=dynamic`` packs all tokens of an expert to
one tile, ``parallelisation=dynamic`` assigns a pair of head and request to the first free region,
and with fewer ``regions`` than experts, several experts share the operators of a region.

Embedding and output vocabulary are left out. So are the learnt factors of norms, which can be
multiplied into the weights after them. In functional mode the router chooses by its data. Timing
mode has no data, so ``routing`` decides. Data are drawn so that both choices are equal.

The time of a layer does not depend on the results of the layer before it. For a whole model in
timing mode, run each layer (``first_layer`` 0, 1, 2 and so on), and add up the cycles.

Run:      python -m fabric run programs/decoder.py -p model=tiny -p layers=2 --mode functional
Computes: h = x + attention(norm(x)), y = h + experts(norm(h)), for each layer in turn
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from layers.cache_lengths import draw_lengths, read_lengths
from layers.decoder_data import DecoderData
from layers.decoder_layer import decoder_layer
from layers.decoder_parts import Layout, Parallelisation
from layers.decoder_reference import outputs
from layers.idle import idle_artifact_bytes
from layers.layer_routing import layer_routing
from layers.models import MOST, ModelName, attends, layer

from fabric import ConfigurationError, Program, dtype_named
from fabric.extend import Bounds
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Promote

CACHE_ROWS = 32  # rows of a cache tile


def build(
    model: ModelName = "qwen3-30b-a3b",
    batch: Annotated[int, Bounds(1, MOST)] = 64,
    tiling: Literal["static", "dynamic"] = "dynamic",
    tile_n: Annotated[int, Bounds(1, MOST)] = 16,
    tile_f: int = 64,
    tile_p: int = 16,
    regions: int | None = None,
    parallelisation: Parallelisation = "dynamic",
    attention_regions: Annotated[int, Bounds(1, MOST)] = 4,
    layers: Annotated[int, Bounds(1, MOST)] = 1,
    first_layer: Annotated[int, Bounds(0, MOST)] = 0,
    flops_per_cycle: int | None = None,
    channel_depth: int | None = None,
    kv: Path | None = None,
    routing: Path | None = None,
    seed: Annotated[int, Bounds(0, MOST)] = 0,
    experts: int | None = None,
    top_k: int | None = None,
    hidden: int | None = None,
    inter: int | None = None,
    heads: int | None = None,
    key_heads: int | None = None,
    head_dim: int | None = None,
) -> Program:
    """Wire the layers.

    Args:
        model: the model that gives the sizes.
        batch: the number of requests.
        tiling: the tiles of an expert's tokens, ``static`` or ``dynamic``.
        tile_n: rows of a packed tile of an expert; for static tiling only.
        tile_f: columns of a weight tile of an expert; it divides the inner dimension.
        tile_p: columns of a weight tile of a projection; it divides the columns of a head.
        regions: the number of regions that share the experts; one per expert if None.
        parallelisation: how pairs of a head and a request are assigned to the regions of the
            attention: ``coarse`` (blocks of neighbours), ``interleaved`` (in turn), ``dynamic``
            (the first free region).
        attention_regions: the number of regions of the attention.
        layers: the number of layers.
        first_layer: the number of the first layer, which decides routing and data.
        flops_per_cycle: FLOPs per cycle of each compute unit; the hardware's if None.
        channel_depth: elements that each channel holds; the hardware's if None.
        kv: an .npy file of cache lengths in tokens; random lengths if None.
        routing: an .npz file with an array data, [tokens, top_k], for one layer; random if None.
        seed: for random routings and lengths, and all data.
        experts: the number of experts. This and the sizes below are the model's if None.
        top_k: experts per token.
        hidden: columns of the tokens.
        inter: columns of the results of an expert's gate and up projections.
        heads: query heads, of all key-value heads together.
        key_heads: key-value heads.
        head_dim: columns of a head.
    """
    size = layer(model, experts, top_k, hidden, inter)
    attention = attends(model, heads, key_heads, head_dim)
    regions = size.experts if regions is None else regions
    for name, value, what, whole in (
        ("tile_f", tile_f, "inner dimension", size.inter),
        ("tile_p", tile_p, "columns of a head", attention.head_dim),
        ("regions", regions, "number of experts", size.experts),
    ):
        if value < 1 or whole % value:
            raise ConfigurationError(
                f"{name} is {value}: expected a divisor of the {what}, {whole}"
            )
    lengths = draw_lengths(batch, seed) if kv is None else read_lengths(kv, batch)
    choices = [
        layer_routing(routing, size, batch, number, seed)
        for number in range(first_layer, first_layer + layers)
    ]
    layout = Layout(
        tile_n=tile_n if tiling == "static" else None,
        tile_f=tile_f,
        tile_p=tile_p,
        parallelisation=parallelisation,
        attention_regions=attention_regions,
    )
    with Program(
        "decoder", channel_depth=channel_depth, flops_per_cycle=flops_per_cycle
    ) as program:
        element_type = dtype_named(program.hardware.tile.dtype)
        data = DecoderData(
            size, attention, lengths, choices, regions, CACHE_ROWS, element_type, first_layer, seed
        )
        rows = LinearOffChipLoad(data.x, tile=(1, size.hidden), name="load_x")()  # [1, B, 1]
        x = Flatten(0, 1)(rows)  # [1, B] of 1xD
        for tensors in data.layers:
            x = decoder_layer(program, data.step, tensors, layout, x)  # [1, B] of 1xD
        LinearOffChipStore("y", name="store_y")(Promote(0)(x))  # [1, B, 1]

    program.extra["on_chip_requirement_artifact_idle_bytes"] = lambda: sum(
        idle_artifact_bytes(size, choice, regions, layout, element_type.itemsize)
        for choice in choices
    )
    for name, output in outputs(data).items():
        program.expect(rtol=None, atol=None, equal_nan=False, **{name: output})
    return program

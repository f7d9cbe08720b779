"""A mixture-of-experts layer with SwiGLU experts (sections 5.2 to 5.4; figures 9, 10, 12, 13).

Static tiling packs tile_n tokens of an expert to a tile and pads the last tile. Dynamic tiling
packs all tokens of an expert to one tile. With fewer regions than experts, neighbouring experts
share the operators of one region (configuration time-multiplexing).

Large batches need deeper channels than the hardware's two slots: a region that has finished a tile
waits for an expert with later tokens, while the tokens of other experts fill the channels in front
of the region. Qwen's layer with static tiles of 16 deadlocks at -p batch=256 and completes with
-p channel_depth=4. The authors ran such batches with channels of 1,024 elements.

Run:      python -m fabric run programs/moe.py -p model=tiny -p tile_n=4 --mode functional
Computes: y[t] = sum over the experts e of token t of
          router[t, e] * (silu(x[t] @ gate[e]) * (x[t] @ up[e])) @ down[e]
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from layers.expert_data import LayerData
from layers.experts import experts as computed_by
from layers.experts import pack, pack_dynamically
from layers.models import MOST, Model, ModelName, layer
from layers.routing import draw_routing, read_routing
from numpy.typing import NDArray

from fabric import ARTIFACT_BYTES, ConfigurationError, Program, dtype_named
from fabric.extend import Bounds
from operators import (
    Accum,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Mul,
    Partition,
    Reassemble,
    Reshape,
    Selectors,
    Sum,
)


def build(
    model: ModelName = "qwen3-30b-a3b",
    batch: Annotated[int, Bounds(1)] = 64,
    tiling: Literal["static", "dynamic"] = "static",
    tile_n: Annotated[int, Bounds(1, MOST)] = 16,
    tile_f: int = 64,
    regions: int | None = None,
    flops_per_cycle: int | None = None,
    channel_depth: int | None = None,
    routing: Path | None = None,
    first_token: Annotated[int, Bounds(0)] = 0,
    seed: Annotated[int, Bounds(0)] = 0,
    experts: int | None = None,
    top_k: int | None = None,
    hidden: int | None = None,
    inter: int | None = None,
) -> Program:
    """Wire the layer.

    Args:
        model: the model that gives the sizes.
        batch: the number of tokens.
        tiling: ``static`` or ``dynamic``.
        tile_n: rows of a packed tile; for static tiling only.
        tile_f: columns of a weight tile; it divides the inner dimension.
        regions: the number of regions that share the experts; one per expert if None.
        flops_per_cycle: FLOPs per cycle of each compute unit; the hardware's if None.
        channel_depth: elements that each channel holds; the hardware's if None.
        routing: an .npz file with an array data, [tokens, top_k]; random if None.
        first_token: the row of the file for the first token of the batch.
        seed: for random routing and all data.
        experts: the number of experts. This and the sizes below are the model's if None.
        top_k: experts per token.
        hidden: columns of the input and the output.
        inter: columns of the results of the gate and up projections.
    """
    size = layer(model, experts, top_k, hidden, inter)
    regions = size.experts if regions is None else regions
    _check(size, tile_f, regions)
    if first_token and routing is None:
        raise ConfigurationError(
            f"first_token is {first_token} and nothing is read: expected routing=FILE.npz too"
        )
    if routing is None:
        choice = draw_routing(batch, size.top_k, size.experts, seed)
    else:
        choice = read_routing(routing, batch, size.top_k, size.experts, first_token)
    with Program("moe", channel_depth=channel_depth, flops_per_cycle=flops_per_cycle) as program:
        element_type = dtype_named(program.hardware.tile.dtype)
        data = LayerData(size, choice, regions, element_type, seed)
        # Tokens to experts.
        tokens = LinearOffChipLoad(
            data.x, tile=(1, size.hidden), name="load_x"
        )()  # [1, B, 1] of 1xD
        tokens = Flatten(0, 1)(tokens)  # [1, B] of 1xD
        chosen = Selectors(choice, size.experts, name="chosen")()  # [1, B] of multi-hot E
        routed = Partition(size.experts, name="route")(tokens, chosen)  # per expert [D_i] of 1xD
        # Experts.
        packed = pack(routed, tile_n) if tiling == "static" else pack_dynamically(routed)
        computed = [
            each.assume(*rows.shape)
            for each, rows in zip(computed_by(packed, data.weights, tile_f), routed, strict=True)
        ]  # per expert [D_i] of 1xD
        # Back in the order of the tokens, weighted and added up.
        scales = LinearOffChipLoad(
            data.router, tile=(1, 1), name="load_router"
        )()  # [1, B, k] of 1x1
        single = Selectors(choice[:, :, np.newaxis], size.experts)()  # [1, B, k] of one-hot E
        scaling = [
            each.assume(*rows.shape)
            for each, rows in zip(
                Partition(size.experts, name="route_scales")(scales, single), routed, strict=True
            )
        ]  # per expert [D_i] of 1x1
        weighted = [
            Map(Mul(), name=f"weight_{expert}")(*each)
            for expert, each in enumerate(zip(scaling, computed, strict=True))
        ]  # per expert [D_i] of 1xD
        order = Selectors(choice, size.experts)()
        terms = Reassemble(name="collect")(weighted, order)  # [1, B, k] of 1xD
        y = Accum(Sum(), name="add_up")(terms)  # [1, B] of 1xD
        LinearOffChipStore("y", name="store_y")(Reshape(chunk=1)(y)[0])  # [1, B, 1]

    program.expect(y=data.y)
    tokens_of = np.bincount(choice.reshape(-1), minlength=size.experts)
    for each, count in zip(routed, tokens_of.tolist(), strict=True):
        program.bind(each.shape[0], count)
    rows = -(-tokens_of // tile_n) * tile_n if tiling == "static" else tokens_of
    program.extra["flops_artifact"] = partial(_flops_artifact, size, int(rows.sum()))
    program.extra["on_chip_requirement_artifact_active_bytes"] = partial(
        _active_bytes,
        size,
        tokens_of.reshape(regions, -1),
        tile_n if tiling == "static" else None,
        tile_f,
        element_type.itemsize,
    )
    return program


def _check(size: Model, tile_f: int, regions: int) -> None:
    for name, value, what, whole in (
        ("tile_f", tile_f, "inner dimension", size.inter),
        ("regions", regions, "number of experts", size.experts),
    ):
        if value < 1 or whole % value:
            raise ConfigurationError(
                f"{name} is {value}: expected a divisor of the {what}, {whole}"
            )


def _flops_artifact(size: Model, rows: int) -> int:
    """Return the FLOPs of the authors' scripts, which count D times too many FLOPs for SiLU."""
    return rows * size.inter * (14 * size.hidden + 1)


def _active_bytes(
    size: Model, tokens: NDArray[np.int64], tile_n: int | None, tile_f: int, element_bytes: int
) -> int | None:
    """Return the authors' on-chip requirement without the experts and regions that get no token.

    Args:
        size: the sizes of the model.
        tokens: the number of tokens of each expert, [regions, experts of a region].
        tile_n: rows of a tile; None for dynamic tiling.
        tile_f: columns of a weight tile.
        element_bytes: bytes of a loaded number.

    Returns:
        None for dynamic tiles in shared regions, for which the authors give no equation.
    """
    active_experts, active_regions = int((tokens > 0).sum()), int(tokens.any(axis=1).sum())
    if tile_n is not None:
        packing_rows, computing_rows = active_experts * tile_n, active_regions * tile_n
    elif tokens.shape[1] == 1:
        packing_rows = computing_rows = int(tokens.sum())
    else:
        return None
    accumulators = (packing_rows + 2 * computing_rows) * size.hidden * ARTIFACT_BYTES
    loads = active_regions * 3 * size.hidden * tile_f * element_bytes
    ends = (size.hidden + 1) * element_bytes + 2 * size.hidden * ARTIFACT_BYTES
    return accumulators + loads + ends

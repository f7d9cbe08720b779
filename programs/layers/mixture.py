"""The mixture of experts of a decoder layer: a router that reads tokens, the experts, their sum.

B tokens with k of E experts each; D columns of a token.
"""

from __future__ import annotations

import numpy as np
from functions.router import Chosen, Gates, Weigh

from fabric import Program, Stream
from layers.decoder_parts import Layer, Layout
from layers.experts import experts, pack, pack_dynamically
from layers.kept import kept
from layers.projections import streamed
from operators import (
    Accum,
    FlatMap,
    Map,
    Matmul,
    Partition,
    Promote,
    Reassemble,
    Selectors,
    SplitRows,
    Sum,
)


def mixture(program: Program, layer: Layer, layout: Layout, packed: Stream) -> Stream:
    """Compute the experts that the router chooses for each token, and sum them weighted by gates.

    ``packed`` has all tokens, [1] of BxD. The result is [1, B] of 1xD.
    """
    prefix, count = layer.name, layer.router.shape[1]
    top_k = layer.choice.shape[1]
    weights = streamed(f"{prefix}load_router", layer.router, packed)  # [1, 1]
    logits = Map(Matmul(), name=f"{prefix}router")(Promote(0)(packed), weights)  # [1, 1] of BxE
    gates = Map(Gates(top_k), name=f"{prefix}gates")(FlatMap(SplitRows())(logits))  # [1, B] of 1xE

    def choice(gates: Stream) -> Stream:
        return Map(Chosen(top_k))(gates, Selectors(layer.choice, count)())  # [1, B] of multi-hot E

    routed = Partition(count, name=f"{prefix}route")(rows_of(packed), choice(gates))  # [D_i] of 1xD
    tiles = (
        pack_dynamically(routed, prefix)
        if layout.tile_n is None
        else pack(routed, layout.tile_n, prefix)
    )
    computed = experts(tiles, layer.experts, layout.tile_f, prefix)  # [D_i] of 1xD
    # Gates and choices are buffered, since the last token may be routed before the first result.
    waiting = kept(gates)
    chosen = choice(waiting)
    shares = Partition(count, name=f"{prefix}route_gates")(waiting, chosen)  # [D_i] of 1xE
    weighted = [
        Map(Weigh(expert), name=f"{prefix}weigh_{expert}")(
            share.assume(*rows.shape), each.assume(*rows.shape)
        )
        for expert, (rows, share, each) in enumerate(zip(routed, shares, computed, strict=True))
    ]  # [D_i] of 1xD
    terms = Reassemble(name=f"{prefix}collect")(weighted, chosen)  # [1, B, k] of 1xD
    for stream, tokens in zip(routed, np.bincount(layer.choice.flat, minlength=count), strict=True):
        program.bind(stream.shape[0], int(tokens))
    return Accum(Sum(), name=f"{prefix}add_up")(terms)


def rows_of(packed: Stream) -> Stream:
    """Split tokens into rows, from [1] of BxD to [1, B] of 1xD."""
    return FlatMap(SplitRows())(Promote(0)(packed))

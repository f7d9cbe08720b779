r"""One layer of a decoder, for one new token of every request.

B requests; D columns of a token; H key-value heads with G query heads each, of d columns.

    x ---- norm -- pack -- q, k, v per head -- norm, rotary -- attention -- back, summed over heads
     \                                                                        |
      kept ---------------------------------------------------------------- add = h
    h ---- norm -- pack -- router -- experts of each token, weighted and summed -- add -- result
     \                                                                             |
      kept -------------------------------------------------------------------------
"""

from __future__ import annotations

import numpy as np
from functions.decoder import RmsNorm, Rotary

from fabric import Program, Stream
from layers.assignment import stated
from layers.attention_heads import attend
from layers.decoder_parts import Layer, Layout, Step
from layers.kept import kept
from layers.mixture import mixture, rows_of
from layers.projections import project, project_back, streamed
from operators import Accum, Add, Flatten, Map, Reassemble, RetileRow


def decoder_layer(program: Program, step: Step, layer: Layer, layout: Layout, x: Stream) -> Stream:
    """Compute one layer, from [1, B] of 1xD to [1, B] of 1xD."""
    name = layer.name
    width = layer.router.shape[0]
    projected = _projected(step, layer, layout, _normalised(f"{name}attention", x, width))
    heads = attend(program, step, layer, layout, projected)
    parts = [
        project_back(f"{name}output_{head}", each, weights, layout.tile_p)
        for head, (each, weights) in enumerate(zip(heads, layer.output, strict=True))
    ]  # per head [1] of BxD
    total, *others = parts
    for part in others:
        total = Map(Add())(total, part)
    attended = rows_of(total)
    h = Map(Add(), name=f"{name}add_attention")(kept(x), attended)  # [1, B] of 1xD
    packed = _normalised(f"{name}experts", h, width)  # [1] of BxD
    mixed = mixture(program, layer, layout, packed)  # [1, B] of 1xD
    return Map(Add(), name=f"{name}add_experts")(kept(h), mixed)


def _normalised(name: str, rows: Stream, width: int) -> Stream:
    """Normalise and pack rows, from [1, B] of 1xD to [1] of BxD."""
    normal = Map(RmsNorm(width), name=f"{name}_norm")(rows)
    return Accum(RetileRow(), name=f"{name}_pack")(normal)


def _projected(step: Step, layer: Layer, layout: Layout, packed: Stream) -> list[Stream]:
    """Return queries, [1, H] of B x (G * d), and keys and values, [1, H] of B x d."""
    size, name = step.attention, layer.name
    # [1] of Bx1
    positions = streamed(f"{name}load_positions", step.positions, packed)
    turned = {
        "query": Rotary(size.head_dim, size.rotary_base, scale=size.head_dim**-0.5),
        "key": Rotary(size.head_dim, size.rotary_base),
        "value": None,
    }
    results = []
    weights = (layer.queries, layer.keys, layer.values)
    for (part, rotary), of_heads in zip(turned.items(), weights, strict=True):
        heads = [
            project(f"{name}{part}_{head}", packed, each, layout.tile_p)
            for head, each in enumerate(of_heads)
        ]  # [1] of B x (G * d), or of B x d
        if rotary is not None:
            if size.head_norm:
                heads = [Map(RmsNorm(size.head_dim))(each) for each in heads]
            heads = [Map(rotary)(each, Flatten(0, 1)(positions)) for each in heads]
        order = stated(np.arange(size.key_heads), size.key_heads)  # [1, H]
        results.append(Flatten(0, 1)(Reassemble()(heads, order)))  # [1, H, 1] -> [1, H]
    return results

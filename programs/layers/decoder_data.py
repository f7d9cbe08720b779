"""Random inputs and weights of a decoder's layers, drawn when functional mode needs them.

B requests; D columns of a token; E experts, k per token; H key-value heads with G query heads each,
of d columns. ``decoder_reference`` computes the expected results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from layers.attention_region import Caches
from layers.decoder_parts import Layer, Step
from layers.expert_data import LayerData
from layers.models import Attention, Model
from operators import Tensor

Array = NDArray[np.float32]

PLANTED = 8.0
"""The length of a token along each of its experts' directions; other components have variance 1."""


class DecoderData:
    """Inputs and weights of consecutive layers, in float32.

    Routers choose the experts in ``choices``: the columns of a router are directions of experts,
    and a token has a large component in the directions of its own experts.

    Attributes:
        x: [B, D], the input of the first layer.
        step: the inputs that all layers share.
    """

    def __init__(
        self,
        size: Model,
        attention: Attention,
        lengths: NDArray[np.int64],
        choices: Sequence[NDArray[np.int64]],
        regions: int,
        cache_rows: int,
        dtype: np.dtype,
        first_layer: int,
        seed: int,
    ) -> None:
        """Prepare the data without drawing them.

        ``lengths`` are the tokens in the caches, [B]. ``choices`` are the experts of each token for
        each layer, [B, k].
        """
        self._size, self._attention, self._seed = size, attention, seed
        self._choices, self._first = choices, first_layer
        self._rows, self._stride = cache_rows, int(lengths.max()) // cache_rows + 1
        batch = len(lengths)
        self.x = Tensor((batch, size.hidden), self._tokens)
        positions = Tensor((batch, 1), lambda: lengths[:, np.newaxis], dtype="int64")
        self.step = Step(attention, lengths, positions)
        self.layers = [
            self._layer(index, choice, LayerData(size, choice, regions, dtype, self._of(index)))
            for index, choice in enumerate(choices)
        ]

    def _of(self, index: int) -> int:
        return int(np.random.SeedSequence((self._seed, self._first + index)).generate_state(1)[0])

    def _layer(self, index: int, choice: NDArray[np.int64], experts: LayerData) -> Layer:
        size, attention = self._size, self._attention
        dim, wide = attention.head_dim, attention.queries * attention.head_dim
        heads = range(attention.key_heads)

        def drawn(part: int, rows: int, cols: int, scale: float) -> Tensor:
            return Tensor((rows, cols), partial(self._normal, index, part, (rows, cols), scale))

        def per_head(part: int, rows: int, cols: int, scale: float) -> list[Tensor]:
            return [drawn(part + 8 * (1 + head), rows, cols, scale) for head in heads]

        scale = size.hidden**-0.5
        cached = len(heads) * len(choice) * self._stride * self._rows
        name = f"layer_{self._first + index}_"
        return Layer(
            name=name,
            choice=choice,
            queries=per_head(0, size.hidden, wide, scale),
            keys=per_head(1, size.hidden, dim, scale),
            values=per_head(2, size.hidden, dim, scale),
            output=per_head(3, wide, size.hidden, (wide * len(heads)) ** -0.5),
            router=Tensor((size.hidden, size.experts), partial(self._directions_of, index)),
            experts=experts.weights,
            caches=Caches(
                keys=drawn(4, cached, dim, 1.0),
                values=drawn(5, cached, dim, 1.0),
                rows=self._rows,
                stride=self._stride,
                outputs=(f"{name}keys", f"{name}values"),
            ),
        )

    def _normal(self, index: int, part: int, shape: tuple[int, int], scale: float) -> Array:
        random = np.random.default_rng((self._seed, 4, self._first + index, part))
        result = random.standard_normal(shape, dtype=np.float32)
        result *= np.float32(scale)
        return result

    @cached_property
    def _directions(self) -> list[Array]:
        """The directions of the experts of each layer, [D, E], orthogonal if D is large enough."""
        hidden, experts = self._size.hidden, self._size.experts
        count = len(self._choices)
        random = np.random.default_rng((self._seed, 5))
        columns = random.standard_normal((hidden, experts * count))
        if experts * count <= hidden:
            columns, _ = np.linalg.qr(columns)
        else:
            columns /= np.sqrt(hidden)
        return [part.astype(np.float32) for part in np.split(columns, count, axis=1)]

    def _directions_of(self, index: int) -> Array:
        return self._directions[index]

    def _tokens(self) -> Array:
        random = np.random.default_rng((self._seed, 6))
        x = random.standard_normal((len(self._choices[0]), self._size.hidden), dtype=np.float32)
        for directions, choice in zip(self._directions, self._choices, strict=True):
            # The experts of a token have different weights.
            shares = random.uniform(0.8, 1.2, choice.shape).astype(np.float32)
            x += PLANTED * np.einsum("bkd,bk->bd", directions.T[choice], shares)
        return x

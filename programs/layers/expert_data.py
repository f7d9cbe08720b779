"""Random inputs and weights of a mixture-of-experts layer, and its expected result.

B tokens with k experts each; D columns of a token.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric.extend import kept_as
from layers.experts import ExpertWeights
from layers.models import Model
from operators import Elements, Tensor


class LayerData:
    """Random numbers in float32, drawn when functional mode needs them.

    Weights are drawn once, for the run and for ``y``, and stay in memory until ``y`` has used them.

    Attributes:
        router: [B, k], a softmax over the experts of each token.
        weights: the weights of each region, which has equally many neighbouring experts.
    """

    def __init__(
        self, size: Model, choice: NDArray[np.int64], regions: int, dtype: np.dtype, seed: int
    ) -> None:
        """Prepare the data without drawing them. ``choice`` has each token's experts, [B, k]."""
        self._size = size
        self._choice = choice
        self._dtype = dtype
        self._seed = seed
        share = size.experts // regions
        self._regions = [range(first, first + share) for first in range(0, size.experts, share)]
        self.x = Tensor((len(choice), size.hidden), self._draw_x)
        self.router = Tensor(choice.shape, self._draw_router)
        self.weights = [
            ExpertWeights(
                up=self._drawn(0, members, size.hidden, size.inter),
                gate=self._drawn(1, members, size.hidden, size.inter),
                down=self._drawn(2, members, size.inter, size.hidden),
            )
            for members in self._regions
        ]
        self._kept = [_held(each) for each in self.weights]

    def y(self) -> NDArray[np.float64]:
        """Return the expected result, [B, D]. The weights of a region are dropped after use."""
        x, router = self.x.array.astype(np.float64), self.router.array.astype(np.float64)
        result = np.zeros_like(x)
        # All experts share these matrices, since allocating new ones takes as long as the products.
        up, gate, down = wide = [np.empty(part.shape[1:]) for part in _parts(self.weights[0])]
        self._kept.reverse()
        for members, weights in zip(self._regions, self.weights, strict=True):
            parts = self._kept.pop() if self._kept else _held(weights)
            for member, expert in enumerate(members):
                token, slot = np.nonzero(self._choice == expert)
                if not token.size:
                    continue
                for matrix, part in zip(wide, parts, strict=True):
                    np.copyto(matrix, part.of(kept_as(self._dtype))[member])
                gates = x[token] @ gate
                inner = gates / (1 + np.exp(-gates)) * (x[token] @ up)
                result[token] += router[token, slot][:, np.newaxis] * (inner @ down)
        return result

    def _draw_x(self) -> NDArray[np.float32]:
        shape = (len(self._choice), self._size.hidden)
        return np.random.default_rng((self._seed, 2)).standard_normal(shape, dtype=np.float32)

    def _draw_router(self) -> NDArray[np.float32]:
        random = np.random.default_rng((self._seed, 3))
        powers = np.exp(random.standard_normal(self._choice.shape, dtype=np.float32))
        result: NDArray[np.float32] = powers / powers.sum(axis=1, keepdims=True)
        return result

    def _drawn(self, part: int, members: range, rows: int, cols: int) -> Tensor:
        """Return the matrices of one kind, [members, rows, cols]."""
        shape = (len(members), rows, cols)

        def numbers() -> NDArray[np.float32]:
            result = np.empty(shape, np.float32)
            for matrix, expert in zip(result, members, strict=True):
                random = np.random.default_rng((self._seed, 1, part, expert))
                random.standard_normal(out=matrix, dtype=np.float32)
            result *= np.float32(rows**-0.5)
            return result

        return Tensor(shape, numbers)


def _parts(weights: ExpertWeights) -> tuple[Tensor, Tensor, Tensor]:
    return weights.up, weights.gate, weights.down


def _held(weights: ExpertWeights) -> list[Elements]:
    return [part.elements() for part in _parts(weights)]

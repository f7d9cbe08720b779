"""What follows from a choice of experts, while calls on it are imported.

Models sort the tokens by expert: integers that depend on data, which no kernel computes here. Each
is kept as what it says of the choice, until rows are indexed by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from operators.kernels.routing import Routing
from operators.kernels.tensors import View
from operators.torch.call import Call

__all__ = ["Collected", "Control", "Gathered", "NoElements", "Pairs", "Says"]


class Says(Enum):
    """What integers say of a choice of experts."""

    SORTED = "the experts of all tokens, sorted"
    ORDER = "the order that sorts the experts of all tokens"
    TOKENS = "the tokens, sorted by expert"
    COUNTS = "how many tokens each expert gets"
    OFFSETS = "where the tokens of each expert end"
    INVERSE = "where the sorted tokens were"


@dataclass(frozen=True)
class Control:
    """Integers that follow from a choice; the form of an ``Opaque`` that no kernel gives.

    Attributes:
        routing: of the layer.
        indices: the experts of each token, [tokens, hits].
        says: what they are.
    """

    routing: Routing
    indices: View
    says: Says

    def __str__(self) -> str:
        """As messages show it."""
        return f"integers that data decide ({self.says.value})"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Complex numbers; the form of an ``Opaque`` that no kernel gives.

    Attributes:
        reals: real and imaginary part of each, along a last dimension of 2.
    """

    reals: View

    def __str__(self) -> str:
        """As messages show it."""
        return "complex numbers"


@dataclass(frozen=True, eq=False)
class Gathered:
    """Rows in an order that is known; the form of an ``Opaque`` that no kernel gives.

    Attributes:
        rows: of which they are taken, along their first dimension.
        order: which one each is.
        call: that takes them.
    """

    rows: View
    order: NDArray[np.int64]
    call: Call

    def __str__(self) -> str:
        """As messages show it."""
        return "rows in another order"


@dataclass(frozen=True)
class NoElements:
    """No numbers at all; the form of an ``Opaque`` that no kernel gives."""

    def __str__(self) -> str:
        """As messages show it."""
        return "a tensor without elements"


@dataclass(frozen=True, eq=False)
class Collected:
    """Routed rows in the order of the tokens; the form of an ``Opaque`` that no kernel gives.

    Attributes:
        rows: routed.
        places: the expert of each row, [rows, 1].
        indices: the experts of each token, [tokens, hits]; None where they are known.
    """

    rows: View
    places: Callable[[], NDArray[np.int64]]
    indices: View | None

    def __str__(self) -> str:
        """As messages show it."""
        return "rows of tokens, one for each expert of a token"

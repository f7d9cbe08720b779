"""Cases for every operator: drawn streams, the operator on them, and what its definition says."""

from __future__ import annotations

from collections.abc import Callable

from tests.operators.cases import higher_order, memory, routing, shape, sparse
from tests.operators.driving import Case, Choices

CASES: dict[str, Callable[[Choices], Case]] = {
    **shape.CASES,
    **higher_order.CASES,
    **routing.CASES,
    **memory.CASES,
    **sparse.CASES,
}

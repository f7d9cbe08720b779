"""Cases for every operator: drawn streams, a call of the operator, and its result by definition."""

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

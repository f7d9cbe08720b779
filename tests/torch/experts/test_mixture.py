from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
import transformers.integrations.moe  # noqa: F401 - registers grouped_mm_fallback
from hypothesis import given
from hypothesis import strategies as st

from fabric import Program, simulate
from operators.kernels.schedule import Schedule, divisors
from operators.torch.call import UnsupportedError
from tests.profiles import examples
from tests.torch.experts.playing import Handle, Player, mixture, routed


@st.composite
def programs(draw: st.DrawFn) -> Program:
    experts = draw(st.sampled_from([1, 2, 3, 4]))
    hits = draw(st.integers(1, min(experts, 3)))
    tokens = draw(st.sampled_from([1, 2, 3, 5, 9]))
    hidden, inner = (draw(st.sampled_from([1, 2, 3, 4, 6, 8])) for _ in range(2))
    schedule = Schedule(
        ragged=draw(st.sampled_from(["static", "dynamic"])),
        tile_rows=draw(st.sampled_from([1, 2, 4, 16])),
        tile_cols=draw(st.sampled_from([1, 2, 4, 64])),
        regions=draw(st.sampled_from([None, *sorted(divisors(experts))])),
    )
    dtype = draw(st.sampled_from([torch.float32, torch.bfloat16]))
    random = torch.Generator().manual_seed(draw(st.integers(0, 99)))

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random).to(dtype)

    player = Player(schedule)
    x = player.given(numbers(tokens, hidden))
    weights = [
        player.given(numbers(experts, 2 * inner, hidden)),
        player.given(numbers(experts, hidden, inner)),
    ]
    alike = draw(st.booleans())
    logits = torch.randn(1 if alike else tokens, experts, generator=random).expand(tokens, -1)
    if draw(st.booleans()):
        choice = player.given(logits.topk(hits)[1].contiguous(), known=True)
        gates = player.given(numbers(tokens, hits))
    else:
        choice, gates = routed(player, player.given(logits.contiguous().to(dtype)), hits)
    return player.program(mixture(player, x, choice, gates, weights))


@examples(quick=10, deep=150)
@given(program=programs())
def test_mixture_is_verified(program: Program) -> None:
    report = simulate(program, mode="functional")

    assert report.verified, report.verification
    assert not report.warnings


@examples(quick=5, deep=30)
@given(program=programs())
def test_mixture_takes_the_same_cycles_without_data(program: Program) -> None:
    functional = simulate(program, mode="functional")
    timing = simulate(program, mode="timing")

    assert timing.cycles == functional.cycles
    assert timing.off_chip_traffic_bytes == functional.off_chip_traffic_bytes


TOKENS, HITS, EXPERTS, HIDDEN, WIDE = 5, 2, 3, 4, 6


class Mixing:
    def __init__(
        self, known: bool = False, dtype: torch.dtype = torch.float32, hits: int = HITS
    ) -> None:
        self.random = torch.Generator().manual_seed(0)
        self.dtype = dtype
        self.player = Player(Schedule(tile_rows=2, tile_cols=3))
        self.play = self.player.play
        self.x = self.some(TOKENS, HIDDEN)
        logits = self.some(TOKENS, EXPERTS)
        if known:
            choice = logits.tensor.topk(hits)[1].contiguous()
            self.choice = self.player.given(choice, known=True)
        else:
            self.choice, _ = routed(self.player, logits, hits)
        self.flat = self.play("aten.view.default", self.choice, [-1])
        self.sorted, self.order = self.play("aten.sort.default", self.flat)
        divided = "aten.div.Tensor_mode"
        self.tokens = self.play(divided, self.order, hits, rounding_mode="floor")
        self.rows = self.play("aten.index.Tensor", self.x, [self.tokens])
        self.counts = self.play("aten.histc.default", self.sorted_floats(), EXPERTS, 0, EXPERTS - 1)
        self.ends = self.play("aten.cumsum.default", self.counts, 0, dtype=torch.int32)
        self.weights = self.some(EXPERTS, HIDDEN, WIDE)
        self.out = self.product(self.rows, self.weights, self.ends)

    def sorted_floats(self) -> Any:
        return self.play("aten._to_copy.default", self.sorted, dtype=torch.float32)

    def some(self, *shape: int) -> Handle:
        numbers = torch.randn(shape, generator=self.random).to(self.dtype)
        return self.player.given(numbers)

    def known(self, tensor: Any) -> Handle:
        return self.player.given(tensor, known=True)

    def zeros(self, *shape: int) -> Handle:
        return self.known(torch.zeros(shape, dtype=self.dtype))

    def product(self, *args: Any) -> Any:
        return self.play("transformers.grouped_mm_fallback.default", *args)

    def numbers(self, count: int = TOKENS * HITS) -> Handle:
        return self.known(torch.arange(count))

    def back(self, how: str) -> Any:
        blank = self.known(torch.zeros(TOKENS * HITS, dtype=torch.int64))
        if how == "put":
            return self.play("aten.index_put.default", blank, [self.order], self.numbers())
        return self.play("aten.sort.default", self.order)[1]

    def each(self, back: Any) -> Any:
        found = self.play("aten.index.Tensor", self.out, [back])
        return self.play("aten.view.default", found, [TOKENS, HITS, WIDE])

    def total(self, back: Any) -> Any:
        return self.play("aten.sum.dim_IntList", self.each(back), [-2])

    def added(self, rows: Any, tokens: Any) -> Any:
        zeros = self.zeros(TOKENS, rows.tensor.shape[1])
        return self.play("aten.index_add.default", zeros, 0, tokens, rows)


def _copied(m: Mixing) -> Any:
    tokens = m.play("aten.view.default", m.play("aten.clone.default", m.tokens), [-1])
    return m.play("aten._to_copy.default", tokens, dtype=torch.int32)


def _biased(m: Mixing) -> Any:
    bias = m.play("aten.index.Tensor", m.some(EXPERTS, WIDE), [m.sorted])
    return m.added(m.play("aten.add.Tensor", m.out, bias), m.tokens)


def _selected(m: Mixing) -> Any:
    rows = m.play("aten.index_select.default", m.some(TOKENS, HIDDEN), 0, m.tokens)
    return m.added(m.product(rows, m.weights, m.ends), m.tokens)


def _cut(first: int, last: int, step: int = 1) -> Callable[[Mixing], Any]:
    return lambda m: m.added(m.play("aten.slice.Tensor", m.out, -1, first, last, step), m.tokens)


def _halves(m: Mixing) -> Any:
    first, second = m.play("aten.split.Tensor", m.out, WIDE // 2, 1)
    return m.added(m.play("aten.mul.Tensor", first, second), m.tokens)


def _again(m: Mixing) -> Any:
    inner = m.play("aten.relu.default", m.out)
    return m.added(m.product(inner, m.some(EXPERTS, WIDE, 5), m.ends), m.tokens)


def _scaled(m: Mixing) -> Any:
    flat = m.play("aten.view.default", m.some(TOKENS, HITS), [-1])
    shares = m.play("aten.unsqueeze.default", m.play("aten.index.Tensor", flat, [m.order]), -1)
    return m.added(m.play("aten.mul.Tensor", m.out, shares), m.tokens)


def _of_places(m: Mixing) -> Any:
    own = m.play("aten.index.Tensor", m.some(TOKENS * HITS, WIDE), [m.order])
    return m.added(m.play("aten.add.Tensor", m.out, own), m.tokens)


ADD, PUT = "aten.index_add.default", "aten.index_put.default"
MIXED: Final[dict[str, Callable[[Mixing], Any]]] = {
    "added": lambda m: m.added(m.out, m.tokens),
    "shifted": lambda m: m.added(m.out, m.play("aten.__rshift__.Scalar", m.order, 1)),
    "copied": lambda m: m.added(m.out, _copied(m)),
    "put": lambda m: m.play(PUT, m.zeros(TOKENS, WIDE), [m.tokens], m.out, True),
    "back by putting": lambda m: m.total(m.back("put")),
    "back by sorting": lambda m: m.total(m.back("sort")),
    "each": lambda m: m.each(m.back("sort")),
    "biased": _biased,
    "selected": _selected,
    "some columns": _cut(1, 4),
    "every other column": _cut(1, 6, 2),
    "halves": _halves,
    "a product of a product": _again,
    "scaled": _scaled,
    "rows of each place": _of_places,
}


@pytest.mark.parametrize("name", MIXED)
def test_calls_on_rows_of_experts_are_verified(name: str) -> None:
    # Tensors with a row for each expert are not sent to experts known before the run.
    m = Mixing(known=len(name) % 2 == 0 and name != "biased")

    report = simulate(m.player.program(MIXED[name](m)), mode="functional")

    assert report.verified, report.verification


SORTED: Final = "integers that data decide (the experts of all tokens, sorted)"
INVERSE: Final = "it puts numbers by data: expected the inverse of an order"
SUMS: Final = "it adds rows by data: expected the tokens, sorted by expert"
ORDER: Final = (
    "it takes rows of experts in another order: expected each row once, in the expert's order"
)

REFUSED: Final[list[tuple[Callable[[Mixing], Any], str]]] = [
    (
        lambda m: m.play(ADD, m.zeros(TOKENS, WIDE), 0, m.tokens, m.out, alpha=2),
        "it adds experts' rows along columns, or scaled: expected whole rows",
    ),
    (
        lambda m: m.play(ADD, m.some(TOKENS, WIDE), 0, m.tokens, m.out),
        "it adds rows of experts to others: expected zeros, one row per token",
    ),
    (lambda m: m.play(ADD, m.zeros(TOKENS * HITS, WIDE), 0, m.order, m.out), SUMS),
    (
        lambda m: m.play(PUT, m.zeros(TOKENS, WIDE), [m.tokens], m.out),
        "it writes experts' rows to places that data decide: expected a sum",
    ),
    (lambda m: m.play(PUT, m.numbers(), [m.tokens], m.numbers()), INVERSE),
    (lambda m: m.play(PUT, m.numbers(), [m.order], m.numbers(), True), INVERSE),
    (
        lambda m: m.play("aten.histc.default", m.sorted_floats(), EXPERTS, 0, EXPERTS),
        "it counts experts from 0 to 3: expected 0 to 2",
    ),
    (
        lambda m: m.play("aten.cumsum.default", m.sorted, 0),
        f"it is given {SORTED}: expected the number of each expert's tokens",
    ),
    (
        lambda m: m.play("aten.index.Tensor", m.some(4, 3), [None, m.sorted]),
        "it indexes several dimensions: expected rows, by a row of integers",
    ),
    (
        lambda m: m.player.program(m.out),
        "it is given rows of experts in numbers that data decide: expected them back in the "
        "order of the tokens",
    ),
    (
        lambda m: m.product(m.rows, m.play("aten.relu.default", m.weights), m.ends),
        "its weights are computed: expected weights that depend on no data",
    ),
    (
        lambda m: m.product(m.some(4, HIDDEN), m.weights, m.known(torch.tensor([2, 1, 4]))),
        "its groups end at rows [2, 1, 4]: expected 3 ascending ends, the last one 4",
    ),
    (
        lambda m: m.product(m.rows, m.some(EXPERTS + 1, HIDDEN, WIDE), m.ends),
        "the number of groups is 4, of experts 3: expected equal numbers",
    ),
]

REFUSED_OF_A_KNOWN_CHOICE: Final[list[tuple[Callable[[Mixing], Any], str]]] = [
    (_biased, "it is given rows of experts in two orders: expected one"),
    (lambda m: m.added(m.out, m.known(m.tokens.tensor.flip(0))), SUMS),
    (lambda m: m.play("aten.index.Tensor", m.out, [m.known(torch.arange(10).flip(0))]), ORDER),
    (
        lambda m: m.product(m.out, m.some(EXPERTS, WIDE, 2), m.known(torch.tensor([1, 4, 10]))),
        "its groups differ from its rows' groups: expected the choice that routed the rows",
    ),
]


@pytest.mark.parametrize(
    ("known", "refused", "message"),
    [*((False, *each) for each in REFUSED), *((True, *each) for each in REFUSED_OF_A_KNOWN_CHOICE)],
)
def test_calls_that_no_mixture_makes_are_refused(
    known: bool, refused: Callable[[Mixing], Any], message: str
) -> None:
    m = Mixing(known)
    with pytest.raises(UnsupportedError) as caught:
        refused(m)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("hits", "dtype"), [(2, torch.bfloat16), (3, torch.float32), (3, torch.bfloat16)]
)
def test_index_add_rounds_like_pytorch_or_is_refused(hits: int, dtype: torch.dtype) -> None:
    m = Mixing(hits=hits, dtype=dtype)
    if hits == 3 and dtype is torch.bfloat16:
        with pytest.raises(UnsupportedError, match="it rounds to bfloat16 after each of 3 sums"):
            m.added(m.out, m.tokens)
        return
    assert simulate(m.player.program(m.added(m.out, m.tokens)), mode="functional").verified

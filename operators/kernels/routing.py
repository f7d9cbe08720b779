"""Routing: which experts the tokens of a layer go to, as far as it is known before the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric import ProgramError, Stream
from operators.functions.choosing import SelectorOf
from operators.map import Map
from operators.sources import Selectors

__all__ = ["Choice", "KnownRows", "Routing", "drawn", "selected"]

Choice = Callable[[int], NDArray[np.int64]]
"""Given the number of experts, those of each token, [tokens, hits], all different in a row."""


class KnownRows(NamedTuple):
    """Routed rows whose experts are known.

    Rows of an expert may be in any order, as long as they come back to where they were: they are
    sent to it in the order in which they come.

    Attributes:
        experts: of each row, ascending.
        order: which row each is that is sent to an expert.
    """

    experts: NDArray[np.int64]
    order: NDArray[np.int64]

    def places(self, where: NDArray[np.int64], count: int) -> NDArray[np.int64] | None:
        """Return the experts to which each of ``count`` rows goes, [count, hits].

        Args:
            where: which of these rows each routed row is.
            count: of the rows.

        Returns:
            None where they go to different numbers of experts, or come to one in another order.
        """
        sent = where[self.order]
        hits, rest = divmod(len(sent), count)
        if rest or (np.bincount(sent, minlength=count) != hits).any():
            return None
        same = self.experts[1:] == self.experts[:-1]
        if (sent[1:] <= sent[:-1])[same].any():
            return None
        return self.experts[np.argsort(sent, kind="stable")].reshape(count, hits)


class Routing:
    """What the calls on the routed tokens of one layer have in common.

    Attributes:
        number: of the layer among those that route, from 0 on.
        tokens: how many.
        hits: experts of a token.
        experts: how many there are; 0 until a call tells.
        rows: what is known of the routed rows; None where data choose the experts.
    """

    def __init__(
        self,
        number: int,
        tokens: int,
        hits: int,
        choice: Choice,
        whose: str,
        rows: KnownRows | None = None,
    ) -> None:
        """Route ``tokens`` as ``choice`` says; messages name ``whose`` choice it is."""
        self.number = number
        self.tokens = tokens
        self.hits = hits
        self.experts = 0
        self.rows = rows
        self._choice = choice
        self._whose = whose
        self._made: NDArray[np.int64] | None = None

    def choice(self) -> NDArray[np.int64]:
        """The experts of each token, [tokens, hits].

        Where data choose them it is what timing mode takes for their choice.

        Raises:
            ProgramError: it is none.
        """
        if self._made is None:
            self._made = self._checked(np.asarray(self._choice(self.experts)))
        return self._made

    def counts(self) -> list[int]:
        """Tokens of each expert."""
        found: list[int] = np.bincount(self.choice().reshape(-1), minlength=self.experts).tolist()
        return found

    def _checked(self, choice: NDArray[np.int64]) -> NDArray[np.int64]:
        expected = (self.tokens, self.hits)
        if choice.shape != expected or choice.dtype.kind not in "iu":
            raise ProgramError(
                f"{self._whose} is an array {list(choice.shape)} of {choice.dtype}: "
                f"expected integers {list(expected)}, the experts of each token"
            )
        if choice.size and not 0 <= int(choice.min()) <= int(choice.max()) < self.experts:
            raise ProgramError(
                f"{self._whose} names experts {choice.min()} to {choice.max()}: "
                f"expected 0 to {self.experts - 1}"
            )
        ordered = np.sort(choice, axis=1)
        twice = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
        if len(twice):
            token, place = twice[0].tolist()
            raise ProgramError(
                f"{self._whose} names expert {ordered[token, place]} twice for token {token}: "
                "expected different experts"
            )
        return choice.astype(np.int64)


def drawn(number: int, tokens: int, hits: int) -> Choice:
    """Return a choice of layer ``number`` in which all experts are equally likely."""

    def choice(experts: int) -> NDArray[np.int64]:
        random = np.random.default_rng((0, number))
        order: NDArray[np.int64] = random.random((tokens, experts)).argsort(axis=1)
        return order[:, :hits]

    return choice


def selected(indices: Stream | None, choice: NDArray[np.int64], width: int, name: str) -> Stream:
    """Return selectors ``[1, *choice.shape[:-1]]``.

    Args:
        indices: rows of integers that name the streams; ``choice`` stands for them in timing mode.
            None where it is the choice.
        choice: the streams that each selector names.
        width: how many streams there are.
        name: of the operator that makes selectors of integers.
    """
    given = Selectors(choice, width)()
    return given if indices is None else Map(SelectorOf(), name=name)(indices, given)

"""What a replica does in a step, what that costs, and how good what it costs is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from fabric.graph.arguments.described import Described
from fabric.messages.telling.read_files import open_given
from fabric.messages.telling.wording import counted

__all__ = [
    "Batch",
    "Known",
    "Price",
    "Quality",
    "Request",
    "Sampled",
    "Scheduler",
    "StepCost",
    "digest_of",
]


class Request:
    """A request on its way through a replica.

    Attributes:
        number: of the request in the trace.
        prompt: tokens of its prompt.
        total: tokens of prompt and output together.
        known: tokens that there are, or will be when the steps that are put together have run.
        computed: tokens that are in its cache, or will be by then.
        blocks: of cache that it holds.
    """

    __slots__ = ("blocks", "computed", "known", "number", "prompt", "total")

    def __init__(self, number: int, prompt: int, output: int) -> None:
        self.number = number
        self.prompt = prompt
        self.total = prompt + output
        self.known = prompt
        self.computed = 0
        self.blocks = 0


class Batch:
    """A step of one replica. A scheduler adds the requests that are in it.

    Attributes:
        prefills: for each chunk of a prompt its tokens, and those of the request's cache before.
        decodes: for each request that generates from its last token, the tokens of its cache.
        begun: requests whose first chunk this is, or one of them.
        firsts: requests whose first token it gives.
        lasts: requests whose last token it gives.
        prefill_tokens: of all chunks.
    """

    __slots__ = ("begun", "decodes", "firsts", "lasts", "prefill_tokens", "prefills")

    def __init__(self) -> None:
        self.prefills: list[tuple[int, int]] = []
        self.decodes: list[int] = []
        self.begun: list[Request] = []
        self.firsts: list[Request] = []
        self.lasts: list[Request] = []
        self.prefill_tokens = 0

    @property
    def tokens(self) -> int:
        """How many are computed."""
        return self.prefill_tokens + len(self.decodes)

    @property
    def sequences(self) -> int:
        """How many requests are in it."""
        return len(self.prefills) + len(self.decodes)

    def add(self, request: Request, tokens: int) -> None:
        """Compute ``tokens`` more of what ``request`` knows; at the last one it knows the next.

        Raises:
            ValueError: there are not so many.
        """
        computed, known = request.computed, request.known
        end = computed + tokens
        if not computed < end <= known:
            raise ValueError(
                f"request {request.number} computes {counted(tokens, 'token')}: "
                f"expected 1 to {known - computed}"
            )
        if tokens == 1 and computed >= request.prompt and end == known:
            self.decodes.append(computed)
        else:
            self.prefills.append((tokens, computed))
            self.prefill_tokens += tokens
            if not computed:
                self.begun.append(request)
        request.computed = end
        if end == known:
            if known == request.prompt:
                self.firsts.append(request)
            request.known = known = known + 1
            if known == request.total:
                self.lasts.append(request)


class Scheduler(Protocol):
    """A scheduler, which puts the steps of one replica together."""

    @property
    def waiting(self) -> int:
        """How many requests are not worked on."""

    @property
    def running(self) -> int:
        """How many are."""

    @property
    def blocks(self) -> int:
        """Blocks of cache that requests hold."""

    @property
    def preemptions(self) -> int:
        """How often a request was put back."""

    def add(self, request: Request) -> None:
        """Take a request that has come."""

    def schedule(self) -> Batch:
        """Return the next step; with nothing in it where there is nothing to do."""

    def finish(self, request: Request) -> None:
        """Let go of a request whose last token is there."""


class Price(NamedTuple):
    """What a step costs.

    Attributes:
        seconds: that it takes.
        joules: that it takes; None where nobody knows.
    """

    seconds: float
    joules: float | None = None


class StepCost(Protocol):
    """What steps cost."""

    def cost(self, batches: Sequence[Batch]) -> Price:
        """Return what a step costs.

        Args:
            batches: of the replicas that step together, one each; a replica may have nothing to do.
        """


@dataclass(frozen=True)
class Sampled:
    """A step as it was, and what it was taken to cost.

    Attributes:
        decode_requests: that generated.
        cache_tokens: the mean of their caches.
        prefill_tokens: of prompts.
        cycles: of a layer, interpolated.
        exact_cycles: of a layer, simulated.
    """

    decode_requests: int
    cache_tokens: float
    prefill_tokens: int
    cycles: float
    exact_cycles: float

    @property
    def percent_off(self) -> float:
        """By how much the interpolated time is above the simulated one."""
        return 100 * (self.cycles / self.exact_cycles - 1)


@dataclass(frozen=True)
class Quality:
    """How good the costs of a run's steps are.

    Attributes:
        outside: so many times a table was asked for what is beyond it, and gave its edge.
        sampled: steps that were simulated as they were.
    """

    outside: int = 0
    sampled: tuple[Sampled, ...] = ()


class Known(Protocol):
    """What steps cost, with what is known of it."""

    @property
    def identity(self) -> str:
        """A digest that others have only where they cost the same."""

    def cost(self, batches: Sequence[Batch]) -> Price:
        """Return what a step costs; see ``StepCost``."""

    def notes(self) -> Sequence[str]:
        """Return sentences on what these costs are."""

    def quality(self) -> Quality:
        """Return how good the costs of the steps since the last time are."""


def digest_of(described: Described, beside: object = None) -> str:
    """Return the digest of a description, with what is in its files, and of something beside it."""
    told = {name: _content(value) for name, value in vars(described).items()}
    return hashlib.sha256(json.dumps([told, beside], default=str).encode()).hexdigest()


def _content(value: object) -> object:
    if isinstance(value, Path):
        with open_given(value) as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    return dict(value) if isinstance(value, Mapping) else value

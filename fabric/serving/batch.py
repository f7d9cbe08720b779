"""What a replica does in a step: tokens of prompts, tokens of outputs, and whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from fabric.telling.wording import counted

__all__ = ["Batch", "Price", "Request", "Scheduler", "StepCost"]


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

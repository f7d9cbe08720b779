"""A server: its scheduler, the steps of its replicas, their cost and its quality.

The rules are those of vLLM's version 1:

1. A step has room for ``max_num_batched_tokens`` tokens. Running requests come first, in the
   order of admission. Each computes its known tokens that are not computed: one token if it
   generates, otherwise as much of its prompt as there is room for.
2. If a request needs a cache block and none is free, the last admitted request loses its blocks
   and restarts from the head of the queue (preemption by recomputation). It may be the request
   itself.
3. Without preemption, requests are admitted first come, first served, while fewer than
   ``max_num_seqs`` run, room is left, and blocks are free for this step.
4. A request whose last token is planned computes no more; it keeps its place and its blocks until
   the step of this token has ended.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, NamedTuple, Protocol, TypeAlias

from fabric.explore.serving.requests import Requests
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Described
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.files import open_given
from fabric.messages.text import counted

Count: TypeAlias = Annotated[int, Bounds(1, 2**31 - 1)]


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
    """A simulated step; ``cycles`` of a layer are interpolated, ``exact_cycles`` simulated."""

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
    """The quality of step costs: lookups outside of tables, and simulated samples."""

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


@dataclass(frozen=True, kw_only=True)
class Server(Described):
    """A server of one model; the names are vLLM's where it has one.

    Attributes:
        replicas: copies of the model; requests go to them in turn.
        max_num_seqs: requests that a replica works on at a time.
        max_num_batched_tokens: of a step of a replica, prompts and outputs together.
        block_size: tokens of a block of cache.
        num_blocks: blocks of a replica's cache; None: it is never full.
        async_scheduling: the next step is put together while one is under way, so that a request
            that comes meanwhile is in the one behind the next.
        lockstep: the replicas begin and end their steps together, as those do that share experts.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    replicas: Count = 1
    max_num_seqs: Count = 128
    max_num_batched_tokens: Count = 2048
    block_size: Count = 16
    num_blocks: Count | None = None
    async_scheduling: bool = False
    lockstep: bool = False

    def check(self, requests: Requests) -> None:
        """Refuse requests that no replica can ever have in its cache.

        Raises:
            ConfigurationError: one is longer than the cache.
        """
        if self.num_blocks is None:
            return
        room = self.num_blocks * self.block_size
        # What is generated last is read by nobody.
        needed = requests.prompt_tokens + requests.output_tokens - 1
        longest = int(needed.argmax())
        if needed[longest] > room:
            tokens = counted(int(needed[longest]), "token")
            raise ConfigurationError(
                f"request {longest} needs {tokens} of cache, and a replica has "
                f"{counted(self.num_blocks, 'block')}, {counted(room, 'token')}: expected "
                "num_blocks for the longest request"
            )


class ContinuousBatching:
    """Puts the steps of one replica together.

    Attributes:
        blocks: of cache that requests hold.
        preemptions: how often a request was put back.
    """

    def __init__(self, server: Server) -> None:
        self.blocks = 0
        self.preemptions = 0
        self._server: Final = server
        self._room: Final = server.num_blocks
        self._waiting: Final = deque[Request]()
        self._running: Final[list[Request]] = []

    @property
    def waiting(self) -> int:
        """How many requests are not worked on."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many are."""
        return len(self._running)

    def add(self, request: Request) -> None:
        """Take a request that has come."""
        self._waiting.append(request)

    def schedule(self) -> Batch:
        """Return the next step."""
        batch = Batch()
        room = self._go_on(batch, self._server.max_num_batched_tokens)
        if room is not None:
            self._admit(batch, room)
        return batch

    def finish(self, request: Request) -> None:
        """Let go of a request whose last token is there."""
        # It may have been put back while the step with its last token was under way.
        (self._running if request in self._running else self._waiting).remove(request)
        self._free(request)

    def _go_on(self, batch: Batch, room: int) -> int | None:
        """Work on those that run; return the room that is left, None where one was put back."""
        put_back = False
        running = self._running
        at = 0
        while at < len(running) and room:
            request = running[at]
            at += 1
            tokens = request.known - request.computed
            if request.known == request.total:
                continue
            tokens = min(tokens, room)
            while not self._hold(request, request.computed + tokens):
                put_back = True
                last = running.pop()
                self._put_back(last)
                if last is request:
                    return None
            batch.add(request, tokens)
            room -= tokens
        return None if put_back else room

    def _admit(self, batch: Batch, room: int) -> None:
        while room and self._waiting and len(self._running) < self._server.max_num_seqs:
            request = self._waiting[0]
            tokens = min(request.known, room)
            if not self._hold(request, tokens):
                return
            self._running.append(self._waiting.popleft())
            batch.add(request, tokens)
            room -= tokens

    def _hold(self, request: Request, tokens: int) -> bool:
        """Have a request hold blocks for so many tokens of cache; False: there are too few."""
        needed = -(-tokens // self._server.block_size)
        more = needed - request.blocks
        if more <= 0:
            return True
        if self._room is not None and self.blocks + more > self._room:
            return False
        request.blocks = needed
        self.blocks += more
        return True

    def _put_back(self, request: Request) -> None:
        self._free(request)
        request.computed = 0
        self.preemptions += 1
        self._waiting.appendleft(request)

    def _free(self, request: Request) -> None:
        self.blocks -= request.blocks
        request.blocks = 0

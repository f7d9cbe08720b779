"""A server: its scheduler, the steps of its replicas, and their cost.

The rules equal vLLM's version 1:

1. A step has room for ``max_num_batched_tokens`` tokens. Running requests come first, in the
   order of admission. Each computes those of its known tokens that its cache lacks: one token if it
   generates, otherwise the part of its prompt that fits into the room.
2. If a request needs a cache block and none is free, the last admitted request loses its blocks
   and restarts from the head of the queue (preemption by recomputation). This request
   may be the one that needs the block.
3. Without preemption, requests are admitted first come, first served, while fewer than
   ``max_num_seqs`` run, room is left, and blocks are free for this step.
4. Once the last token of a request is scheduled, the request computes nothing more. It keeps its
   place and its blocks until the step of this token has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple, Protocol, TypeAlias

from fabric.explore.serving.requests import Requests
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Section
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import counted

Count: TypeAlias = Annotated[int, Bounds(1, 2**31 - 1)]


class Request:
    """A request that waits or runs in a replica.

    Attributes:
        number: place of the request in the trace.
        prompt: tokens of its prompt.
        total: tokens of prompt and output together.
        known: tokens of the prompt and of the output so far, once the scheduled steps have run.
        computed: tokens in its cache, once the scheduled steps have run.
        blocks: number of allocated cache blocks.
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
    """A step of one replica, to which a scheduler adds requests.

    Attributes:
        prefills: for each chunk of a prompt, its number of tokens, and the number cached before.
        decodes: for each generating request, the number of tokens in its cache.
        begun: requests whose first chunk is in this step.
        firsts: requests that receive their first token.
        lasts: requests that receive their last token.
        prefill_tokens: number of tokens of all chunks.
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
        """Number of tokens that the step computes."""
        return self.prefill_tokens + len(self.decodes)

    @property
    def sequences(self) -> int:
        """Number of requests in the step."""
        return len(self.prefills) + len(self.decodes)

    def add(self, request: Request, tokens: int) -> None:
        """Compute ``tokens`` known tokens of ``request``; the last known token yields the next one.

        Raises:
            ValueError: not 1 <= tokens <= request.known - request.computed.
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
    """A scheduler of one replica."""

    @property
    def waiting(self) -> int:
        """Number of waiting requests."""

    @property
    def running(self) -> int:
        """Number of running requests."""

    @property
    def blocks(self) -> int:
        """Number of allocated cache blocks."""

    @property
    def preemptions(self) -> int:
        """Number of preemptions."""

    def add(self, request: Request) -> None:
        """Queue a request that has arrived."""

    def schedule(self) -> Batch:
        """Return the next step, which is empty if no request can run."""

    def finish(self, request: Request) -> None:
        """Remove a request that has its last token."""


class Price(NamedTuple):
    """The cost of a step; ``joules`` is None if unknown."""

    seconds: float
    joules: float | None = None


class StepCost(Protocol):
    """A model of the time and energy of a server's steps."""

    def cost(self, batches: Sequence[Batch]) -> Price:
        """Return the cost of a step; each replica that steps has a batch, maybe empty."""


@dataclass(frozen=True)
class Sampled:
    """A step that was simulated exactly.

    Attributes:
        cycles: interpolated cycles of a layer.
        exact_cycles: simulated cycles of a layer.
    """

    decode_requests: int
    cache_tokens: float
    prefill_tokens: int
    cycles: float
    exact_cycles: float

    @property
    def percent_off(self) -> float:
        """The error of the interpolated time, in percent of the simulated time."""
        return 100 * (self.cycles / self.exact_cycles - 1)


@dataclass(frozen=True, kw_only=True)
class Server(Section):
    """A server of one model, described in vLLM's terms.

    Attributes:
        replicas: copies of the model; requests go to them in turn.
        max_num_seqs: maximum of running requests in a replica.
        max_num_batched_tokens: maximum of prompt and output tokens in a step of a replica.
        block_size: tokens in a cache block.
        num_blocks: cache blocks of a replica; None for no limit.
        async_scheduling: schedule the next step at the beginning of the running step. A request
            that arrives during a step can join the second step after it, not the next.
        lockstep: begin and end the steps of all replicas together, as replicas that share experts
            do.
    """

    replicas: Count = 1
    max_num_seqs: Count = 128
    max_num_batched_tokens: Count = 2048
    block_size: Count = 16
    num_blocks: Count | None = None
    async_scheduling: bool = False
    lockstep: bool = False

    def check(self, requests: Requests) -> None:
        """Check that every request fits into the cache of a replica.

        Raises:
            ConfigurationError: a request is longer than the cache.
        """
        if self.num_blocks is None:
            return
        room = self.num_blocks * self.block_size
        # The last generated token is not cached.
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
    """Schedules the steps of one replica by vLLM's rules."""

    def __init__(self, server: Server) -> None:
        self.blocks = 0
        self.preemptions = 0
        self._server: Final = server
        self._room: Final = server.num_blocks
        self._waiting: Final = deque[Request]()
        self._running: Final[list[Request]] = []

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        return len(self._running)

    def add(self, request: Request) -> None:
        self._waiting.append(request)

    def schedule(self) -> Batch:
        batch = Batch()
        room = self._schedule_running(batch, self._server.max_num_batched_tokens)
        if room is not None:
            self._admit(batch, room)
        return batch

    def finish(self, request: Request) -> None:
        # The request may have been preempted while the step with its last token was running.
        (self._running if request in self._running else self._waiting).remove(request)
        self._free(request)

    def _schedule_running(self, batch: Batch, room: int) -> int | None:
        """Return the room that is left, None after a preemption."""
        preempted = False
        running = self._running
        at = 0
        while at < len(running) and room:
            request = running[at]
            at += 1
            if request.known == request.total:
                continue
            tokens = min(request.known - request.computed, room)
            while not self._allocate(request, request.computed + tokens):
                preempted = True
                last = running.pop()
                self._preempt(last)
                if last is request:
                    return None
            batch.add(request, tokens)
            room -= tokens
        return None if preempted else room

    def _admit(self, batch: Batch, room: int) -> None:
        while room and self._waiting and len(self._running) < self._server.max_num_seqs:
            request = self._waiting[0]
            tokens = min(request.known, room)
            if not self._allocate(request, tokens):
                return
            self._running.append(self._waiting.popleft())
            batch.add(request, tokens)
            room -= tokens

    def _allocate(self, request: Request, tokens: int) -> bool:
        needed = -(-tokens // self._server.block_size)
        more = needed - request.blocks
        if more <= 0:
            return True
        if self._room is not None and self.blocks + more > self._room:
            return False
        request.blocks = needed
        self.blocks += more
        return True

    def _preempt(self, request: Request) -> None:
        self._free(request)
        request.computed = 0
        self.preemptions += 1
        self._waiting.appendleft(request)

    def _free(self, request: Request) -> None:
        self.blocks -= request.blocks
        request.blocks = 0

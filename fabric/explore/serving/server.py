"""A server and its scheduler: continuous batching, chunked prefill and blocks of cache.

The rules are those of vLLM's version 1:

1. A step has room for ``max_num_batched_tokens`` tokens. Requests that run come first, in the
   order in which they were admitted: each computes what it knows and has not computed, one token
   where it generates, and what room is left where its prompt is not through.
2. A request that needs a block of cache where none is free takes the blocks of the one admitted
   last, which goes back to the head of the queue and begins again with nothing computed
   (preemption by recomputation). It may be the request itself.
3. Where nobody was put back, requests are admitted from the head of the queue, first come, first
   served, while fewer than ``max_num_seqs`` run, room is left, and there are blocks for what they
   compute in this step.
4. A request whose last token is planned computes nothing more; it keeps its place and its blocks
   until the step that gives this token has ended.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, TypeAlias

from fabric.explore.serving.requests import Requests
from fabric.explore.serving.steps import Batch, Request
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Described
from fabric.messages.telling.errors import ConfigurationError, FabricError
from fabric.messages.telling.wording import counted

__all__ = ["ContinuousBatching", "Server"]

Count: TypeAlias = Annotated[int, Bounds(1, 2**31 - 1)]


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

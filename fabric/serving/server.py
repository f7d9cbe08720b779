"""What a server is: how many replicas, how much a step takes, how much its cache holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from fabric.arguments.checks import Bounds
from fabric.arguments.described import Described
from fabric.serving.requests import Requests
from fabric.telling.errors import ConfigurationError, FabricError
from fabric.telling.wording import counted

__all__ = ["Server"]

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

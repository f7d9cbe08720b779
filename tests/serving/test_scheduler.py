from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.explore.serving.requests import Requests
from fabric.explore.serving.served import Served, serve
from fabric.explore.serving.server import Batch, ContinuousBatching, Price, Request, Server
from fabric.messages.errors import ConfigurationError, FabricError
from tests.profiles import examples
from tests.serving.reference import Limits, reference

Rows = list[tuple[float, int, int]]


def seconds(prefills: int, decodes: int) -> float:
    return 1 + prefills / 8 + decodes / 64


class Costs:
    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def cost(self, batches: Sequence[Batch]) -> Price:
        self.batches += batches
        return Price(max(seconds(each.prefill_tokens, len(each.decodes)) for each in batches))


class Watched(ContinuousBatching):
    """The scheduler, checked after every step."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._of = server

    def schedule(self) -> Batch:
        batch = super().schedule()
        assert batch.tokens <= self._of.max_num_batched_tokens
        assert self.running <= self._of.max_num_seqs
        assert batch.sequences <= self.running
        assert self._of.num_blocks is None or 0 <= self.blocks <= self._of.num_blocks
        return batch


@dataclass(frozen=True)
class Case:
    rows: Rows
    server: Server

    @property
    def requests(self) -> Requests:
        times, prompts, outputs = (np.array(each) for each in zip(*self.rows, strict=True))
        return Requests(times.astype(np.float64), prompts, outputs)


@st.composite
def cases(draw: st.DrawFn, most_replicas: int = 1) -> Case:
    lengths = st.tuples(st.integers(1, 30), st.integers(1, 12))
    pairs = draw(st.lists(lengths, min_size=1, max_size=12))
    gaps = draw(st.lists(st.integers(0, 40), min_size=len(pairs), max_size=len(pairs)))
    times = np.cumsum(gaps) / 8
    rows = [(float(at), *pair) for at, pair in zip(times, pairs, strict=True)]
    size = draw(st.integers(1, 4))
    longest = max(-(-(prompt + output - 1) // size) for prompt, output in pairs)
    server = Server(
        replicas=draw(st.integers(1, most_replicas)),
        max_num_seqs=draw(st.integers(1, 5)),
        max_num_batched_tokens=draw(st.integers(1, 16)),
        block_size=size,
        num_blocks=draw(st.none() | st.integers(longest, longest + 8)),
        async_scheduling=draw(st.booleans()),
        lockstep=draw(st.booleans()),
    )
    return Case(rows, server)


def served(case: Case, costs: Costs | None = None) -> Served:
    return serve(case.requests, case.server, costs or Costs(), Watched)


@given(cases())
@examples(quick=40, deep=1_000)
def test_token_times_equal_the_reference_scheduler(case: Case) -> None:
    server = case.server
    limits = Limits(
        server.max_num_seqs,
        server.max_num_batched_tokens,
        server.block_size,
        server.num_blocks,
        server.async_scheduling,
    )
    found = served(case)
    theirs = reference(case.rows, limits, seconds)
    assert found.first_seconds.tolist() == [each[0] for each in theirs]
    assert found.last_seconds.tolist() == [each[-1] for each in theirs]


@given(cases(most_replicas=3))
@examples(quick=15, deep=300)
def test_every_request_and_token_is_served_once(case: Case) -> None:
    costs = Costs()
    found = served(case, costs)
    assert found.done.all()
    arrivals = case.requests.arrival_seconds
    stamps = [arrivals, found.taken_seconds, found.begun_seconds, found.first_seconds]
    stamps.append(found.last_seconds)
    for before, after in itertools.pairwise(stamps):
        assert (before <= after).all()
    prompts = sum(row[1] for row in case.rows)
    outputs = sum(row[2] - 1 for row in case.rows)
    prefilled = sum(each.prefill_tokens for each in costs.batches)
    decoded = sum(len(each.decodes) for each in costs.batches)
    if found.preemptions:
        assert prefilled + decoded > prompts + outputs
    else:
        assert (prefilled, decoded) == (prompts, outputs)


def test_lockstep_replicas_take_the_slowest_step() -> None:
    rows = [(0.0, 8, 2), (0.0, 1, 2)]
    together = served(Case(rows, Server(replicas=2, lockstep=True)))
    alone = served(Case(rows, Server(replicas=2)))
    assert together.first_seconds.tolist() == [2.0, 2.0]
    assert alone.first_seconds.tolist() == [2.0, 1.125]
    assert len(together.steps) == 1
    assert len(alone.steps) == 2


def test_request_longer_than_the_cache_is_refused() -> None:
    case = Case([(0.0, 1, 1), (0.0, 10, 8)], Server(block_size=4, num_blocks=4))
    with pytest.raises(ConfigurationError) as raised:
        served(case)
    assert raised.value.message == (
        "request 1 needs 17 tokens of cache, and a replica has 4 blocks, 16 tokens: "
        "expected num_blocks for the longest request"
    )
    served(Case([(0.0, 10, 7)], case.server))


def test_idle_scheduler_with_requests_is_refused() -> None:
    class Lazy(ContinuousBatching):
        def schedule(self) -> Batch:
            return Batch()

    with pytest.raises(ConfigurationError, match="an empty step at 0 s, with 1 request left"):
        serve(Case([(0.0, 1, 1)], Server()).requests, Server(), Costs(), Lazy)


def test_batch_of_too_many_or_no_tokens_is_refused() -> None:
    request = Request(7, prompt=4, output=2)
    with pytest.raises(ValueError, match="request 7 computes 5 tokens: expected 1 to 4"):
        Batch().add(request, 5)
    request.computed = 1
    with pytest.raises(ValueError, match="request 7 computes 0 tokens: expected 1 to 3"):
        Batch().add(request, 0)


@pytest.mark.parametrize("seconds_of_step", [0.0, float("nan")])
def test_step_cost_of_no_time_is_refused(seconds_of_step: float) -> None:
    class Free(Costs):
        def cost(self, batches: Sequence[Batch]) -> Price:
            self.batches += batches
            return Price(seconds_of_step)

    refusal = rf"^a step of 3 tokens costs {seconds_of_step:g} s: expected above 0$"
    with pytest.raises(ConfigurationError, match=refusal):
        serve(Case([(0.0, 3, 1)], Server()).requests, Server(), Free())


@pytest.mark.parametrize(("known", "joules"), [(True, 7.5), (False, None)])
def test_joules_are_unknown_if_a_step_has_none(known: bool, joules: float | None) -> None:
    class Priced(Costs):
        def cost(self, batches: Sequence[Batch]) -> Price:
            self.batches += batches
            last = len(self.batches) == 3
            return Price(1.0, 2.5 if known or not last else None)

    rows = [(0.0, 1, 2), (0.0, 1, 1)]
    server = Server(replicas=2)
    found = serve(Case(rows, server).requests, server, Priced())
    assert sum(map(len, found.steps)) == 3
    assert found.joules == joules


def test_interrupted_serving_keeps_finished_requests() -> None:
    class Stopped(Costs):
        def cost(self, batches: Sequence[Batch]) -> Price:
            if len(self.batches) == 3:
                raise KeyboardInterrupt
            return super().cost(batches)

    rows = [(0.0, 1, 2), (0.0, 1, 20)]
    found = serve(Case(rows, Server()).requests, Server(), Stopped())
    assert found.interrupted
    assert found.done.tolist() == [True, False]


@pytest.mark.parametrize(
    ("door", "raised"),
    [
        ("the scheduler", "SystemExit"),
        ("the cost of steps", "ZeroDivisionError"),
        ("on_completed", "BaseException"),
    ],
)
def test_user_error_names_its_source(door: str, raised: str) -> None:
    def fails(*_: object) -> Price:
        raise eval(raised)

    class Fails(ContinuousBatching):
        def schedule(self) -> Batch:
            fails()
            return super().schedule()

    costs = Costs()
    if door == "the cost of steps":
        costs.cost = fails  # type: ignore[assignment, method-assign]
    scheduler = Fails if door == "the scheduler" else ContinuousBatching
    on_completed = fails if door == "on_completed" else None
    with pytest.raises(FabricError, match=f"{door} raised {raised}") as failure:
        serve(Case([(0.0, 1, 1)], Server()).requests, Server(), costs, scheduler, on_completed)
    assert Path(str(failure.value.file)).name == Path(__file__).name

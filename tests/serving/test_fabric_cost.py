"""Steps on the fabric: corners are runs, between them it is linear, and the error is measured."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabric import simulate
from fabric.explore.serving import run_costs
from fabric.explore.serving.conducting import conduct_serving
from fabric.explore.serving.question import RequestDescription, Serving
from fabric.explore.serving.requests import Requests
from fabric.explore.serving.result import ServingResult
from fabric.explore.serving.run_costs import FabricCost, FabricDescription, spread_caches
from fabric.explore.serving.server import Batch, Quality, Server
from fabric.explore.study.evaluation import Before, Job, known_before, outcome_of
from fabric.explore.study.outcome import Outcome
from fabric.explore.study.session import NotKept
from fabric.explore.study.workers import Answer
from fabric.graph.hardware.file import load_hardware
from fabric.graph.loading.program_file import executed, wired
from fabric.messages.telling.errors import ConfigurationError
from tests.serving.test_tables import batch
from tests.serving.validation import DATA

PROGRAMS = Path(__file__).parents[2] / "programs"

DESCRIBED = FabricDescription(
    program=PROGRAMS / "decoder.py",
    parameters={"model": "tiny", "parallelisation": "dynamic"},
    hardware=PROGRAMS / "hardware/paper_priced.toml",
    layers=2,
    routing=PROGRAMS / "data/traces/expert_routing/mixtral_b64/008_010.npz",
    decode_requests=(1, 4),
    cache_tokens=(32, 96),
    prefill_tokens=(4,),
    cache_bytes_per_token=128,
    attention_flops_per_pair=256,
    attention_flops_per_cycle=64,
    exact_steps=2,
)
SERVER = Server(max_num_seqs=4, max_num_batched_tokens=4)


class Here:
    slots = 1

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def look(self, job: Job) -> Future[Before]:
        return _done(known_before, job)

    def run(self, job: Job) -> Future[Outcome]:
        self.jobs.append(job)
        return _done(outcome_of, job)

    def close(self) -> None: ...


class Counting(Here):
    """Says of each point that it took so many cycles and joules as there were points."""

    not_priced = 0

    def run(self, job: Job) -> Future[Outcome]:
        self.jobs.append(job)
        number = len(self.jobs)
        numbers = {"cycles": 100 * number, "joules": None if number == self.not_priced else number}
        setting = job.point.setting
        outcome = Outcome(
            index=job.point.index, setting=setting, status="completed", numbers=numbers
        )
        return _done(lambda _: outcome, job)


def _done(function: Callable[[Job], Answer], job: Job) -> Future[Answer]:
    future: Future[Answer] = Future()
    future.set_result(function(job))
    return future


def requests() -> Requests:
    prompts = np.array([20, 40, 60, 80])
    return Requests(np.arange(4.0), prompts, np.full(4, 5))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    _, workers = cost(folder)
    assert len(workers.jobs) == 2 * 2 * 2 + 2
    (folder / "requests.csv").write_text(
        "arrival_seconds,prompt_tokens,output_tokens\n"
        + "".join(f"{at},{tokens},5\n" for at, tokens, _ in requests().rows())
    )
    return folder


def cost(folder: Path, described: FabricDescription = DESCRIBED) -> tuple[FabricCost, Here]:
    workers = Here()
    made = FabricCost(described, "", requests(), SERVER, folder, workers, lambda _: None)
    return made, workers


def test_corners_and_between(kept: Path) -> None:
    found, workers = cost(kept)
    assert not workers.jobs
    hardware = load_hardware(DESCRIBED.hardware)
    program = executed(DESCRIBED.program)
    numbers = {}
    for file in (kept / "situations").glob("*.npy"):
        lengths = np.load(file)
        if len(lengths) != 4 or not lengths.all():
            continue
        (routing,) = (
            each for each in (kept / "situations").glob("*.npz") if len(np.load(each)["data"]) == 4
        )
        given = ["model=tiny", "parallelisation=dynamic", "batch=4", f"kv={file}"]
        loaded = wired(program, [*given, f"routing={routing}"], hardware)
        report = simulate(loaded.program, mode="timing")
        assert report.cycles is not None
        assert report.joules is not None
        numbers[round(lengths.mean())] = report.cycles, report.joules
    assert set(numbers) == {32, 96}
    for mean, (cycles, joules) in numbers.items():
        price = found.cost([batch([], [mean] * 4)])
        assert price.seconds == pytest.approx(2 * cycles / 1e9)
        assert price.joules == pytest.approx(2 * joules)
    middle = found.cost([batch([], [64] * 4)]).seconds
    assert middle == pytest.approx(sum(each for each, _ in numbers.values()) / 1e9)


def test_which_corners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_costs, "Store", lambda *_: NotKept())
    routing = np.array([[0, 1], [2, 3], [5, 4]])
    np.savez(tmp_path / "routing.npz", data=routing)
    described = replace(
        DESCRIBED, routing=tmp_path / "routing.npz", seed=5, prefill_tokens=(1, 4, 7)
    )
    server = Server(max_num_seqs=9, max_num_batched_tokens=4)
    workers = Counting()
    given = (described, "", requests(), server, tmp_path)
    found = FabricCost(*given, workers, lambda _: None)
    prompts = requests().prompt_tokens.tolist()
    expected: list[tuple[tuple[int, ...], int]] = [((), tokens) for tokens in (1, 4, 7)]
    expected += [
        (spread_caches(prompts, each, mean, 5), tokens)
        for each in (1, 4)
        for mean in (32, 96)
        for tokens in (0, 1, 4, 7)
    ]
    assert len(workers.jobs) == len(expected) == 19
    for job, (caches, tokens) in zip(workers.jobs, expected, strict=True):
        count = len(caches) + tokens
        assert job.whole["batch"] == count
        assert np.load(str(job.whole["kv"])).tolist() == [*caches, *[0] * tokens]
        rest = np.random.default_rng((5, count)).choice(3, count % 3, replace=False)
        rows = [*[0, 1, 2] * (count // 3), *sorted(rest.tolist())]
        assert np.load(str(job.whole["routing"]))["data"].tolist() == routing[rows].tolist()
    # With one request and caches of 32 the fourth corner, with four and 96 the sixteenth.
    price = found.cost([batch([], [32]), batch([], [96] * 4), Batch()])
    assert price.seconds == pytest.approx(2 * 1600 / 1e9)
    assert price.joules == 2 * (4 + 16)
    workers = Counting()
    workers.not_priced = 19
    found = FabricCost(*given, workers, lambda _: None)
    assert found.cost([batch([], [32])]).joules is None


@pytest.mark.parametrize("price", ["hbm_picojoules_per_byte", "bfloat16_flop_picojoules"])
def test_a_price_that_is_not_stated(
    price: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_costs, "Store", lambda *_: NotKept())
    priced = DESCRIBED.hardware.read_text("utf-8").splitlines()
    hardware = tmp_path / "hardware.toml"
    hardware.write_text("\n".join(each for each in priced if not each.startswith(price)), "utf-8")
    described = replace(DESCRIBED, hardware=hardware)
    found = FabricCost(described, "", requests(), SERVER, tmp_path, Counting(), lambda _: None)
    paid = found.cost([batch([(4, 0)], [])])
    assert (paid.joules, paid.seconds > 0) == (None, True)


def test_prompts_attend(kept: Path) -> None:
    found, _ = cost(kept)
    short, long = (found.cost([batch([(4, cached)], [])]) for cached in (0, 100))
    flops = 4 * 100 * 256
    assert long.seconds - short.seconds == pytest.approx(2 * flops / 64 / 1e9)
    assert long.joules is not None
    assert short.joules is not None
    spent = 2 * (flops * 0.75 + 100 * 128 * 31.36) * 1e-12
    assert long.joules - short.joules == pytest.approx(spent)
    swift, _ = cost(kept, replace(DESCRIBED, attention_flops_per_cycle=10**9))
    short, long = (swift.cost([batch([(4, cached)], [])]) for cached in (0, 100_000))
    assert long.seconds - short.seconds == pytest.approx(2 * 100_000 * 128 / 1024 / 1e9)


def test_prompts_attend_to_themselves(kept: Path) -> None:
    found, _ = cost(kept)
    one, two = (found.cost([batch(each, [])]) for each in ([(4, 0)], [(2, 0), (2, 0)]))
    assert one.seconds - two.seconds == pytest.approx(2 * (10 - 6) * 256 / 64 / 1e9)


def test_notes_of_the_fabric(kept: Path) -> None:
    assert cost(kept)[0].notes() == (
        "steps cost 2 times what a layer takes on the fabric, interpolated between 10 situations; "
        "beyond them the nearest is taken",
        "that prompts attend is added by its bytes and FLOPs, and not simulated",
    )


@pytest.mark.parametrize("steps", [3, 6, 60])
def test_the_sample(kept: Path, steps: int) -> None:
    described = replace(DESCRIBED, exact_steps=6)
    found, none = cost(kept, described)
    tokens = [(1, 4)[bit] for bit in np.random.default_rng(1).integers(2, size=steps).tolist()]
    drawn = random.Random(0)
    expected: list[int] = []
    for number, each in enumerate(tokens, 1):
        if number <= 6:
            expected.append(each)
        elif (place := drawn.randrange(number)) < 6:
            expected[place] = each
    for _ in range(2):
        for each in tokens:
            found.cost([batch([(each, 0)], [])])
        quality = found.quality()
        assert [each.prefill_tokens for each in quality.sampled] == expected
        assert {(each.decode_requests, each.percent_off) for each in quality.sampled} == {(0, 0.0)}
        assert quality.outside == 0
        drawn.seed(0)
    assert not none.jobs
    outside, _ = cost(kept, replace(DESCRIBED, exact_steps=0))
    outside.cost([batch([], [500] * 4)])
    outside.cost([batch([], [96] * 4)])
    assert outside.quality() == Quality(1)
    assert outside.quality() == Quality()


@pytest.mark.parametrize("data", [np.zeros(3, int), np.zeros((3, 2)), np.zeros((0, 2), int)])
def test_no_routing(data: np.ndarray, tmp_path: Path) -> None:
    file = tmp_path / "routing.npz"
    np.savez(file, data=data)
    with pytest.raises(ConfigurationError) as raised:
        cost(tmp_path, replace(DESCRIBED, routing=file))
    assert raised.value.message == (
        f"data is {data.dtype} {list(data.shape)}: expected integers [tokens, top_k]"
    )


def test_caches_at_a_corner() -> None:
    lengths = [10, 20, 60, 110]
    found = spread_caches(lengths, 5, 40, 3)
    drawn = np.random.default_rng((3, 5, 40)).choice(np.array(lengths, float), 5)
    assert found == tuple(round(each * 40 / drawn.mean()) for each in drawn.tolist())
    assert len(spread_caches(lengths, 400, 40, 0)) == 400
    assert np.mean(spread_caches(lengths, 400, 40, 0)) == pytest.approx(40, abs=0.5)
    assert spread_caches([7], 3, 12, 0) == (12, 12, 12)


def test_the_error_is_measured(kept: Path) -> None:
    first, _ = cost(kept)
    second, none = cost(kept)
    assert first.identity == second.identity
    uneven = [1, 2, 3, 250]
    second.cost([batch([], uneven)])
    second.cost([batch([(4, 0)], [])])
    quality = second.quality()
    assert [each.decode_requests for each in quality.sampled] == [4, 0]
    assert quality.sampled[1].percent_off == 0
    assert len(none.jobs) == 1
    program = executed(DESCRIBED.program)
    given = [f"{name}={value}" for name, value in none.jobs[0].whole.items()]
    assert np.load(str(none.jobs[0].whole["kv"])).tolist() == uneven
    report = simulate(
        wired(program, given, load_hardware(DESCRIBED.hardware)).program, mode="timing"
    )
    assert quality.sampled[0].exact_cycles == report.cycles


def test_routing_is_drawn_from_the_record(kept: Path) -> None:
    recorded = [tuple(each) for each in np.load(DESCRIBED.routing)["data"]]
    sizes = []
    for file in (kept / "situations").glob("*.npz"):
        drawn = [tuple(each) for each in np.load(file)["data"]]
        assert all(drawn.count(each) <= recorded.count(each) for each in drawn)
        sizes.append(len(drawn))
    assert set(sizes) >= {1, 4, 5, 8}


@pytest.mark.parametrize(
    ("described", "said"),
    [
        (
            replace(DESCRIBED, decode_requests=(1, 2)),
            "decode_requests is [1, 2], and steps may have up to 4: expected a grid from 1 to 4",
        ),
        (replace(DESCRIBED, decode_requests=(2, 4)), "decode_requests is [2, 4], and steps may"),
        (replace(DESCRIBED, prefill_tokens=(2,)), "prefill_tokens is [2], and steps may have up"),
        (replace(DESCRIBED, prefill_tokens=(4, 2)), "prefill_tokens is [4, 2]: expected ascending"),
        (replace(DESCRIBED, prefill_tokens=(4, 4)), "prefill_tokens is [4, 4]: expected ascending"),
        (replace(DESCRIBED, decode_requests=()), "decode_requests is []: expected ascending"),
        (
            replace(DESCRIBED, cache_tokens=(64,)),
            "cache_tokens is [64]: expected at least two, since caches grow to 85 tokens",
        ),
        (
            replace(DESCRIBED, hardware=PROGRAMS / "hardware/paper.toml"),
            "states no [clock] frequency_hz: expected one, to have seconds",
        ),
        (replace(DESCRIBED, routing=DATA / "README.md"), "cannot be read"),
        (
            replace(DESCRIBED, parameters={"model": "tiny", "tile_p": 3}),
            "a layer with 0 requests and 1 token of prompts: refused, ",
        ),
    ],
)
def test_refused(described: FabricDescription, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        cost(tmp_path, described)
    assert raised.value.message.startswith(said)


def result(kept: Path, folder: Path) -> tuple[ServingResult, Here]:
    workers = Here()
    serving = Serving(
        requests=RequestDescription(file=kept / "requests.csv", rates=(10.0, 1000.0)),
        server=SERVER,
        designs={"one": DESCRIBED, "two": replace(DESCRIBED, layers=4, exact_steps=0)},
        name="few",
    )
    return conduct_serving(serving, workers, folder, situations=kept), workers


def test_a_new_folder(tmp_path: Path) -> None:
    (tmp_path / "requests.csv").write_text("arrival_seconds,prompt_tokens,output_tokens\n0,20,5\n")
    serving = Serving(
        requests=RequestDescription(file=tmp_path / "requests.csv"),
        server=SERVER,
        designs={"one": replace(DESCRIBED, decode_requests=())},
    )
    with pytest.raises(ConfigurationError):
        conduct_serving(serving, Here(), None, situations=tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_question_of_the_fabric(kept: Path, tmp_path: Path) -> None:
    found, workers = result(kept, tmp_path)
    assert len(workers.jobs) <= 2 * 2
    for one, two in zip(found.of("one"), found.of("two"), strict=True):
        assert one.measures.completed == two.measures.completed == 4
        assert one.measures.joules_per_token is not None
        assert two.measures.joules_per_token is not None
        assert two.measures.joules_per_token > one.measures.joules_per_token
    assert any("steps simulated as they were" in each for each in found.quality_notes("one"))
    again, none = result(kept, tmp_path)
    assert not none.jobs
    assert again.resumed == 4
    assert again.as_json() == found.as_json()


def test_a_batch_of_nothing_is_not_asked(kept: Path) -> None:
    found, _ = cost(kept)
    alone = found.cost([batch([], [40] * 2)])
    assert found.cost([batch([], [40] * 2), Batch()]) == alone

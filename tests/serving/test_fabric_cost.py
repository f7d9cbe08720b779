from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from fabric import simulate
from fabric.explore.serving import run_costs
from fabric.explore.serving.driver import conduct_serving
from fabric.explore.serving.question import RequestDescription, Serving
from fabric.explore.serving.requests import Requests
from fabric.explore.serving.result import ServingResult
from fabric.explore.serving.server import Server
from fabric.explore.study.evaluation import Job, outcome_of
from fabric.explore.study.workers import Answer, Workers
from fabric.graph.hardware.file import load_hardware
from fabric.graph.loading.program_file import executed, wired
from fabric.messages.errors import ConfigurationError
from tests.serving.test_tables import batch
from tests.serving.validation import DATA

PROGRAMS = Path(__file__).parents[2] / "programs"

DESCRIBED = run_costs.FabricDescription(
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
PAGE = PROGRAMS.parent / "docs/pages/how-to/serve-requests.md"
SERVER = Server(max_num_seqs=4, max_num_batched_tokens=4)


class Here(Workers):
    def __init__(self) -> None:
        super().__init__(1, None)
        self.jobs: list[Job] = []

    def _answer(self, function: Callable[[Job], Answer], job: Job) -> Answer:
        if function is outcome_of:
            self.jobs.append(job)
        return function(job)

    def close(self) -> None:
        self._threads.shutdown()


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


def cost(
    folder: Path, described: run_costs.FabricDescription = DESCRIBED
) -> tuple[run_costs.FabricCost, Here]:
    workers = Here()
    grid = _layer_runs(folder, workers, described).grid(requests(), SERVER)
    return run_costs.FabricCost(described, grid), workers


def _layer_runs(
    folder: Path, workers: Here, described: run_costs.FabricDescription = DESCRIBED
) -> run_costs.LayerRuns:
    return run_costs.LayerRuns(described, "", folder, workers, lambda _: None)


@pytest.mark.deep
def test_cost_at_corners_equals_runs_and_is_linear_between(kept: Path) -> None:
    found, workers = cost(kept)
    assert not workers.jobs
    hardware = load_hardware(DESCRIBED.hardware)
    program = executed(DESCRIBED.program)
    numbers = {}
    for file in (kept / "steps").glob("*.npy"):
        lengths = np.load(file)
        if len(lengths) != 4 or not lengths.all():
            continue
        (routing,) = (
            each for each in (kept / "steps").glob("*.npz") if len(np.load(each)["data"]) == 4
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


@pytest.mark.deep
def test_cached_prompt_tokens_cost_attention_flops_and_bytes(kept: Path) -> None:
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


@pytest.mark.parametrize("data", [np.zeros(3, int), np.zeros((3, 2)), np.zeros((0, 2), int)])
def test_routing_of_another_shape_is_refused(data: np.ndarray, tmp_path: Path) -> None:
    file = tmp_path / "routing.npz"
    np.savez(file, data=data)
    with pytest.raises(ConfigurationError) as raised:
        cost(tmp_path, replace(DESCRIBED, routing=file))
    assert raised.value.message == (
        f"data is {data.dtype} {list(data.shape)}: expected integers [tokens, top_k]"
    )


@pytest.mark.deep
def test_sampled_steps_are_run_exactly(kept: Path) -> None:
    second, none = cost(kept)
    uneven = [1, 2, 3, 250]
    second.cost([batch([], uneven)])
    second.cost([batch([(4, 0)], [])])
    steps = second.sampled()
    exact = _layer_runs(kept, none).run(steps)
    sampled = [second.compared(each, exact[each]) for each in steps]
    assert [each.decode_requests for each in sampled] == [4, 0]
    assert sampled[1].percent_off == 0
    assert len(none.jobs) == 1
    program = executed(DESCRIBED.program)
    whole = {**DESCRIBED.parameters, **none.jobs[0].point.setting}
    given = [f"{name}={value}" for name, value in whole.items()]
    assert np.load(str(whole["kv"])).tolist() == uneven
    report = simulate(
        wired(program, given, load_hardware(DESCRIBED.hardware)).program, mode="timing"
    )
    assert sampled[0].exact_cycles == report.cycles


@pytest.mark.deep
def test_routing_is_drawn_from_the_recorded_rows(kept: Path) -> None:
    recorded = [tuple(each) for each in np.load(DESCRIBED.routing)["data"]]
    sizes = []
    for file in (kept / "steps").glob("*.npz"):
        drawn = [tuple(each) for each in np.load(file)["data"]]
        assert all(drawn.count(each) <= recorded.count(each) for each in drawn)
        sizes.append(len(drawn))
    assert set(sizes) >= {1, 4, 5, 8}


@pytest.mark.parametrize(
    ("described", "said"),
    [
        (
            replace(DESCRIBED, decode_requests=(1, 2)),
            "decode_requests is [1, 2], and steps have up to 4: expected numbers from 1 to 4",
        ),
        (replace(DESCRIBED, decode_requests=(2, 4)), "decode_requests is [2, 4], and steps have"),
        (replace(DESCRIBED, prefill_tokens=(2,)), "prefill_tokens is [2], and steps have up to"),
        (replace(DESCRIBED, prefill_tokens=(4, 2)), "prefill_tokens is [4, 2]: expected ascending"),
        (replace(DESCRIBED, prefill_tokens=(4, 4)), "prefill_tokens is [4, 4]: expected ascending"),
        (replace(DESCRIBED, decode_requests=()), "decode_requests is []: expected ascending"),
        (
            replace(DESCRIBED, cache_tokens=(64,)),
            "cache_tokens is [64]: expected at least two, since caches grow to 85 tokens",
        ),
        (
            replace(DESCRIBED, hardware=PROGRAMS / "hardware/paper.toml"),
            "has no [clock] frequency_hz: expected a frequency, to convert cycles to seconds",
        ),
        (replace(DESCRIBED, routing=DATA / "README.md"), "cannot be read"),
        (
            replace(DESCRIBED, parameters={"model": "tiny", "tile_p": 3}),
            "a layer with 0 generating requests and 1 prompt token was refused before it ran: ",
        ),
    ],
)
def test_grids_that_miss_steps_are_refused(
    described: run_costs.FabricDescription, said: str, tmp_path: Path
) -> None:
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
    return conduct_serving(serving, workers, folder, steps_folder=kept), workers


def test_serving_on_the_fabric_is_resumed(kept: Path, tmp_path: Path) -> None:
    found, workers = result(kept, tmp_path)
    assert len(workers.jobs) <= 2 * 2 + 4
    for one, two in zip(found.of("one"), found.of("two"), strict=True):
        assert one.measures.completed == two.measures.completed == 4
        assert one.measures.joules_per_token is not None
        assert two.measures.joules_per_token is not None
        assert two.measures.joules_per_token > one.measures.joules_per_token
    assert any("steps simulated exactly" in each for each in found.quality_notes("one"))
    again, none = result(kept, tmp_path)
    assert not none.jobs
    assert again.resumed == 4
    assert again.as_json() == found.as_json()


def test_page_on_serving_lists_every_key_of_a_fabric() -> None:
    table = PAGE.read_text(encoding="utf-8").partition('`kind = "fabric"` | meaning')[2]
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\|([^|]+)\|", table, re.MULTILINE)))
    assert sorted(listed) == sorted(each.name for each in fields(run_costs.FabricDescription))

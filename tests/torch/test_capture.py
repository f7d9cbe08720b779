from __future__ import annotations

import io
import logging
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fabric import ProgramError, simulate
from operators.kernels.schedule import Schedule
from operators.torch import from_torch
from operators.torch.capture import capture
from operators.torch.planning import Constants
from tests.profiles import examples

X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))


class Computing(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


@pytest.mark.parametrize(
    ("module", "args", "said"),
    [
        (lambda x: x, (X,), "is given a function: expected a torch.nn.Module"),
        (Computing(torch.relu), X, "args is a Tensor: expected a tuple, such as (x,)"),
        (Computing(torch.relu), [X], "args is a list: expected a tuple, such as (x,)"),
        (nn.Linear(9, 8), (X,), "cannot trace Linear for these arguments: RuntimeError: a and b"),
        (
            Computing(lambda x: x * 2 if x.sum() > 0 else x),
            (X,),
            "cannot trace Computing: its control flow depends on data at test_capture.py:",
        ),
    ],
)
def test_from_torch_wrong_arguments_are_refused(
    module: Any,
    args: Any,
    said: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    monkeypatch.setattr(logger, "handlers", [caplog.handler])
    with pytest.raises(ProgramError) as raised:
        from_torch(module, args)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert said in raised.value.message
    assert raised.value.file == __file__
    assert not capfd.readouterr().err


def test_nan_results_are_verified() -> None:
    program = from_torch(Computing(torch.log), (X,))
    assert X.lt(0).any()
    assert simulate(program, mode="functional").verified


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: (x + 1, x + 1),
        lambda x: torch.ones(3),  # noqa: ARG005 - an input that nobody reads
        lambda x: x.sum(),
        lambda x: {"a": x + 1, "b": [x * 2, None]},
    ],
)
def test_outputs_nested_or_constant_are_stored(function: Callable[[torch.Tensor], Any]) -> None:
    module = Computing(function)
    report = simulate(from_torch(module, (X,)), mode="functional")
    assert report.verified
    wanted = torch.utils._pytree.tree_leaves(module(X))
    found = report.outputs.values()
    assert [x.shape for x in found] == [tuple(x.shape) for x in wanted if x is not None]


class Weighted(nn.Module):
    def forward(
        self, x: torch.Tensor, *, other: torch.Tensor | None = None, often: int = 1
    ) -> torch.Tensor:
        return x if other is None else torch.digamma(x) + other if often == 0 else x + often * other


@pytest.mark.parametrize("often", [1, 3])
def test_keyword_arguments_are_imported(often: int) -> None:
    named = {"other": X.flip(0), "often": often}
    report = simulate(from_torch(Weighted(), (X,), named), mode="functional")
    assert report.verified
    assert np.allclose(report.outputs["output"], (X + often * X.flip(0)).numpy())


@given(st.data())
@examples(quick=10)
def test_outputs_have_pytorchs_shapes(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), max_size=4))
    dims = data.draw(st.permutations(range(len(shape))))
    sizes = [data.draw(st.sampled_from([1, 2, 4])) for _ in range(2)]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    wanted = {"output_0": (x * 2).permute(dims), "output_1": x.sum(), "output_2": x}

    module = Computing(lambda x: {"a": ((x * 2).permute(dims), x.sum()), "b": x})
    program = from_torch(module, (x,), schedule=Schedule(tile_rows=sizes[0], tile_cols=sizes[1]))
    run, timed = simulate(program, mode="functional"), simulate(program, mode="timing")

    assert run.verified
    assert {name: each.shape for name, each in timed.outputs.items()} == {
        name: tuple(each.shape) for name, each in wanted.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        run.outputs.save(Path(folder) / "outputs.npz")
        with np.load(Path(folder) / "outputs.npz") as saved:
            for name, each in wanted.items():
                found = run.outputs[name]
                assert isinstance(found, np.ndarray)
                # numpy's comparisons would broadcast shapes.
                assert found.shape == saved[name].shape == tuple(each.shape)
                assert np.allclose(found, each, rtol=1e-5, atol=1e-5)
                assert np.array_equal(found, saved[name])


TAKEN_APART: dict[str, Callable[[torch.Tensor], Any]] = {
    "windows": lambda x: (x.unfold(0, 2, 1), (x * 2).unfold(1, 3, 2)),
    "a known grid": lambda x: nn.functional.grid_sample(
        x[None, None], torch.linspace(-1, 1, 12).reshape(1, 2, 3, 2), align_corners=True
    ),
}


@pytest.mark.parametrize("name", TAKEN_APART)
def test_decomposed_calls_equal_pytorch(name: str) -> None:
    for seed in range(2):
        x = torch.randn(4, 7, generator=torch.Generator().manual_seed(seed))
        assert simulate(from_torch(Computing(TAKEN_APART[name]), (x,)), mode="functional").verified


def test_unread_empty_result_is_ignored() -> None:
    bags = nn.EmbeddingBag(5, 4, mode="sum")
    given = torch.randint(0, 5, (7,)), torch.tensor([0, 2, 5])

    program = from_torch(Computing(lambda x, *its: x + bags(*its)), (torch.randn(3, 4), *given))

    assert simulate(program, mode="functional").verified


@pytest.mark.parametrize("index", [(..., [-2], slice(None)), (..., [0, 2], slice(None)), [2, 1, 0]])
def test_list_index_of_a_meta_tensor_takes_the_same_cycles(index: Any) -> None:
    module = Computing(lambda x: (x * 2)[index])
    x = torch.randn(4, 3, 8)

    program = from_torch(module, (x.to("meta"),))

    assert simulate(program).cycles == simulate(from_torch(module, (x,))).cycles


def test_data_dependent_sizes_in_a_loop_are_refused() -> None:
    with pytest.raises(ProgramError, match="data decide the size of its result"):
        from_torch(Computing(lambda x: sum(x[x > each] for each in range(3))), (X,))


class Told(nn.Module):
    def forward(self, x: Any) -> Any:
        sys.stderr.write("said by a module\n")
        return x * 2 if x.sum() > 0 else x


def test_module_without_a_file_keeps_its_own_output(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Told, "__module__", "builtins")
    with pytest.raises(ProgramError) as raised:
        from_torch(Told(), (X,))
    assert raised.value.message == (
        "torch.export cannot trace Told: its control flow depends on data: expected calls that "
        "are the same for all data; torch.where chooses between two results"
    )
    assert capfd.readouterr().err == "said by a module\n"


SEEN: list[str] = []


class Configured(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(_experts_implementation="eager")
        self.part, self.other = nn.Linear(8, 8), nn.Linear(8, 8)
        self.part.config = self.config
        self.other.config = SimpleNamespace()
        self.fails = False

    def forward(self, x: Any) -> Any:
        SEEN.append(self.config._experts_implementation)
        if self.fails:
            raise ValueError
        return self.part(x)


def test_module_configuration_is_restored_after_errors() -> None:
    module = Configured().eval()
    SEEN.clear()
    from_torch(module, (X,))
    module.fails = True
    with pytest.raises(ProgramError, match=r"cannot trace Configured .*: ValueError: $"):
        from_torch(module, (X,))

    assert set(SEEN) == {"grouped_mm"}
    assert module.config._experts_implementation == "eager"
    assert vars(module.other.config) == {}


@pytest.mark.parametrize(
    ("function", "who"),
    [
        (lambda x: torch.full((4, 8), x.sum().item()), "full"),
        (lambda x: x.clamp(max=x.mean().item()), "clamp"),
    ],
)
def test_number_read_from_data_is_refused_with_its_reader(
    function: Callable[[Any], Any], who: str
) -> None:
    module = Computing(function)
    with pytest.raises(ProgramError) as raised:
        from_torch(module, (X,))
    line = Computing.forward.__code__.co_firstlineno + 1
    assert (raised.value.file, raised.value.line) == (__file__, line)
    assert (
        "item (aten._local_scalar_dense.default): data decide the number "
        f"that it reads, which {who} in line {line} needs: expected a known one"
    ) in raised.value.message


def test_calls_that_cannot_be_imported_are_refused_together() -> None:
    blocks = (Computing(lambda x: torch.digamma(x) + torch.erfinv(x)) for _ in range(2))
    with pytest.raises(ProgramError) as raised:
        from_torch(nn.Sequential(*blocks), (X,))
    needed = "expected a call that an importer is registered for; operators.torch.imports registers"
    place = f"  test_capture.py:{Computing.forward.__code__.co_firstlineno + 1}  "
    assert raised.value.message.splitlines() == [
        "from_torch cannot import 4 calls:",
        *(
            f"{place}{name} (aten.{name}.default) in module i: {needed} yours (2 times)"
            for name in ("digamma", "erfinv")
        ),
    ]


@pytest.mark.parametrize("shows", [True, False])
def test_progress_of_an_import_is_shown_on_a_terminal_and_cleared(
    shows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shown := io.StringIO(), "isatty", lambda: shows)
    with redirect_stderr(shown):
        from_torch(Computing(torch.relu), (X,))
    texts = ["", "torch.export traces Computing", "from_torch plans call 1 of 1", ""]
    assert shown.getvalue().split("\r\x1b[K") == (texts if shows else [""])


def test_a_result_that_is_read_and_not_computed_is_refused() -> None:
    attended = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    with pytest.raises(ProgramError, match=r"its result 1 is read, .*: expected readers of .* 0$"):
        from_torch(Computing(lambda x: attended(x, x, x)).eval(), (torch.randn(2, 4, 3, 6),))


def test_numbers_made_of_weights_are_unknown_while_planning() -> None:
    captured = capture(nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)), (X,), {})
    constants = Constants(captured)
    folded = [each for each in captured.calls if constants.fold(each)]
    assert folded
    assert not any(constants.stored(each).known for each in folded)

"""What from_torch is given: modules it can trace, and what it says of others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
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
from tests.profiles import examples

X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))


class Computing(nn.Module):
    """A module that computes what a function does."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Compute ``function``."""
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        """Return what the function does."""
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
            "cannot trace Computing: its data decide what it does next at test_capture.py:",
        ),
    ],
)
def test_refusals(module: Any, args: Any, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    """In one sentence, at the line that asks for it."""
    with pytest.raises(ProgramError) as raised:
        from_torch(module, args)
    assert said in raised.value.message
    assert raised.value.file == __file__
    assert not capfd.readouterr().err


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(dtype: torch.dtype, affine: bool) -> None:
    """A factor and a term for each channel, which are known before the run."""
    torch.manual_seed(1)
    norm = nn.BatchNorm2d(3, affine=affine).eval()
    norm.running_mean += torch.randn(3)
    norm.running_var += torch.rand(3)
    if affine:
        norm.weight.data += torch.randn(3)
        norm.bias.data += torch.randn(3)
    program = from_torch(norm.to(dtype), (torch.randn(2, 3, 4, 5).to(dtype),))
    assert simulate(program, mode="functional").verified


def test_what_is_no_number_is_expected() -> None:
    """NaN where PyTorch computes NaN is right, and a number there is not."""
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
def test_outputs_of_all_kinds(function: Callable[[torch.Tensor], Any]) -> None:
    """The input itself, one tensor twice, constants, single numbers, and trees of tensors."""
    module = Computing(function)
    report = simulate(from_torch(module, (X,)), mode="functional")
    assert report.verified
    wanted = torch.utils._pytree.tree_leaves(module(X))
    found = report.outputs.values()
    assert [x.shape for x in found] == [tuple(x.shape) for x in wanted if x is not None]


@given(st.data())
@examples(quick=20)
def test_outputs_have_pytorchs_shapes(data: st.DataObject) -> None:
    """Of all ranks from 0 to 4, in tiles of all kinds and orders; in a file and in timing also."""
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
                # numpy's own comparisons would broadcast shapes.
                assert found.shape == saved[name].shape == tuple(each.shape)
                assert np.allclose(found, each, rtol=1e-5, atol=1e-5)
                assert np.array_equal(found, saved[name])


@pytest.mark.parametrize("function", [lambda x: (x, torch.ones(2, 0)), lambda x: x[:0]])
def test_outputs_without_elements_are_refused(function: Callable[[torch.Tensor], Any]) -> None:
    """Nothing of them could be stored."""
    with pytest.raises(ProgramError, match=r"it gives a tensor \[.*0.*\]: expected one with elem"):
        from_torch(Computing(function), (X,))


TAKEN_APART: dict[str, Callable[[torch.Tensor], Any]] = {
    "windows": lambda x: (x.unfold(0, 2, 1), (x * 2).unfold(1, 3, 2)),
    "both moments": lambda x: (*torch.std_mean(x, 1), *torch.var_mean(x)),
    "decimals": lambda x: x.round(decimals=1),
    "buckets": lambda x: torch.bucketize(x, torch.linspace(-1, 1, 5)) + 0,
    "one of several": lambda x: nn.functional.one_hot(x.argmax(-1), x.shape[-1]).float(),
    "a known grid": lambda x: nn.functional.grid_sample(
        x[None, None], torch.linspace(-1, 1, 12).reshape(1, 2, 3, 2), align_corners=True
    ),
}


@pytest.mark.parametrize("name", TAKEN_APART)
def test_what_is_taken_apart(name: str) -> None:
    """Calls of which other calls are made, and checks that compute nothing."""
    program = from_torch(Computing(TAKEN_APART[name]), (torch.randn(4, 7),))

    assert simulate(program, mode="functional").verified


def test_a_result_without_elements_that_nobody_reads() -> None:
    """Of a sum over bags of known places PyTorch also returns a tensor without elements."""
    bags = nn.EmbeddingBag(5, 4, mode="sum")
    given = torch.randint(0, 5, (7,)), torch.tensor([0, 2, 5])

    program = from_torch(Computing(lambda x, *its: x + bags(*its)), (torch.randn(3, 4), *given))

    assert simulate(program, mode="functional").verified


@pytest.mark.parametrize("index", [[-2], [0, 2]])
def test_lists_index_what_has_no_numbers(index: list[int]) -> None:
    """On the meta device too: as many places, in as many cycles."""
    module = Computing(lambda x: (x * 2)[..., index, :])
    x = torch.randn(4, 3, 8)

    program = from_torch(module, (x.to("meta"),))

    assert simulate(program).cycles == simulate(from_torch(module, (x,))).cycles


def test_sizes_that_data_decide_beside_a_loop() -> None:
    """A module that is refused is told why, whatever else its trace has."""
    with pytest.raises(ProgramError, match="data decide the size of its result"):
        from_torch(Computing(lambda x: sum(x[x > each] for each in range(3))), (X,))

"""What from_torch is given: modules it can trace, and what it says of others."""

from __future__ import annotations

import operator
import sys
import tempfile
from collections.abc import Callable
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
from operators.torch import from_torch, unsupported_calls
from operators.torch.call import Spec, UnsupportedError
from operators.torch.capture import (
    array_of,
    capture,
    module_of,
    place_of,
    specs_of,
    target_of,
    written_of,
)
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
            "cannot trace Computing: its data decide what it does next at test_capture.py:",
        ),
    ],
)
def test_refusals(module: Any, args: Any, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ProgramError) as raised:
        from_torch(module, args)
    assert said in raised.value.message
    assert raised.value.file == __file__
    assert not capfd.readouterr().err


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(dtype: torch.dtype, affine: bool) -> None:
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
def test_arguments_by_name(often: int) -> None:
    named = {"other": X.flip(0), "often": often}
    report = simulate(from_torch(Weighted(), (X,), named), mode="functional")
    assert report.verified
    assert np.allclose(report.outputs["output"], (X + often * X.flip(0)).numpy())


def test_calls_of_arguments_by_name() -> None:
    assert unsupported_calls(Weighted(), (X,)) == ()
    (found,) = unsupported_calls(Weighted(), (X,), {"other": X, "often": 0})
    assert found.call.startswith("aten.digamma")


@given(st.data())
@examples(quick=20)
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
                # numpy's own comparisons would broadcast shapes.
                assert found.shape == saved[name].shape == tuple(each.shape)
                assert np.allclose(found, each, rtol=1e-5, atol=1e-5)
                assert np.array_equal(found, saved[name])


@pytest.mark.parametrize("function", [lambda x: (x, torch.ones(2, 0)), lambda x: x[:0]])
def test_outputs_without_elements_are_refused(function: Callable[[torch.Tensor], Any]) -> None:
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
    program = from_torch(Computing(TAKEN_APART[name]), (torch.randn(4, 7),))

    assert simulate(program, mode="functional").verified


def test_a_result_without_elements_that_nobody_reads() -> None:
    bags = nn.EmbeddingBag(5, 4, mode="sum")
    given = torch.randint(0, 5, (7,)), torch.tensor([0, 2, 5])

    program = from_torch(Computing(lambda x, *its: x + bags(*its)), (torch.randn(3, 4), *given))

    assert simulate(program, mode="functional").verified


@pytest.mark.parametrize("index", [[-2], [0, 2]])
def test_lists_index_what_has_no_numbers(index: list[int]) -> None:
    module = Computing(lambda x: (x * 2)[..., index, :])
    x = torch.randn(4, 3, 8)

    program = from_torch(module, (x.to("meta"),))

    assert simulate(program).cycles == simulate(from_torch(module, (x,))).cycles


def test_sizes_that_data_decide_beside_a_loop() -> None:
    with pytest.raises(ProgramError, match="data decide the size of its result"):
        from_torch(Computing(lambda x: sum(x[x > each] for each in range(3))), (X,))


@pytest.mark.parametrize("index", [[2], [0, 2], [2, 1, 0]])
def test_a_list_alone_indexes(index: list[int]) -> None:
    module = Computing(lambda x: (x * 2)[index])

    program = from_torch(module, (torch.randn(4, 3, 8, device="meta"),))

    assert [each.shape for each in simulate(program).outputs.values()] == [(len(index), 3, 8)]


class Told(nn.Module):
    def forward(self, x: Any) -> Any:
        sys.stderr.write("said by a module\n")
        return x * 2 if x.sum() > 0 else x


def test_modules_whose_files_are_unknown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Told, "__module__", "builtins")
    with pytest.raises(ProgramError) as raised:
        from_torch(Told(), (X,))
    assert raised.value.message == (
        "torch.export cannot trace Told: its data decide what it does next: expected calls that "
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


def test_what_a_configuration_asks_for() -> None:
    module = Configured().eval()
    SEEN.clear()
    from_torch(module, (X,))
    module.fails = True
    with pytest.raises(ProgramError, match=r"cannot trace Configured .*: ValueError: $"):
        from_torch(module, (X,))

    assert set(SEEN) == {"grouped_mm"}
    assert module.config._experts_implementation == "eager"
    assert vars(module.other.config) == {}


def test_a_loop_that_draws() -> None:
    def function(x: Any) -> Any:
        for _ in range(9):
            x = torch.tanh(x + torch.rand_like(x))
        return x

    with pytest.raises(ProgramError, match=r"rand_like.* it draws random numbers: expected"):
        from_torch(Computing(function), (X,))


@pytest.mark.parametrize(
    ("function", "who", "more"),
    [
        (
            lambda x: torch.full((4, 8), x.sum().item()),
            "full",
            "; `python -m operators.torch FILE`",
        ),
        (lambda x: x.clamp(max=x.mean().item()), "clamp", ""),
    ],
)
def test_a_number_that_data_decide(function: Callable[[Any], Any], who: str, more: str) -> None:
    module = Computing(function)
    with pytest.raises(ProgramError) as raised:
        from_torch(module, (X,))
    line = Computing.forward.__code__.co_firstlineno + 2
    assert (raised.value.file, raised.value.line) == (__file__, line)
    assert raised.value.message == (
        "from_torch cannot import item (aten._local_scalar_dense.default): data decide the number "
        f"that it reads, which {who} in line {line} needs: expected a known one"
        + (f"{more} lists all such calls" if more else "")
    )


def test_what_a_captured_module_has() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8))
            self.register_buffer("table", torch.ones(5, 8))

        def forward(self, x: Any, ids: Any, *, scale: float, mask: Any, y: Any) -> Any:
            z = x * self.weight * scale + self.table[ids]
            return {"a": torch.where(mask, z, y), "b": 3, "c": z}

    ids, mask = torch.tensor([0, 1, 2, 4]), torch.ones(8, dtype=torch.bool)
    keywords = {"scale": 2.0, "mask": mask, "y": X * 2}
    captured = capture(Mixed(), (X, ids), keywords)

    def named(nodes: Any) -> set[str]:
        return {each.name for each in nodes}

    assert named(captured.tensors) == {"p_weight", "b_table", "x", "ids", "mask", "y"}
    assert named(captured.data) == {"x", "y"}
    assert named(captured.parameters) == {"p_weight"}
    assert named(captured.inputs) == {"x", "ids", "mask", "y"}
    held = {node.name: tensor for node, tensor in captured.tensors.items()}
    assert (held["x"], held["ids"], held["mask"]) == (X, ids, mask)
    assert [target_of(each) for each in captured.calls] == [
        "aten.mul.Tensor",
        "aten.mul.Tensor",
        "aten.index.Tensor",
        "aten.add.Tensor",
        "aten.where.self",
    ]
    first, number, last = captured.outputs
    assert (first, number, last) == (captured.calls[4], 3, captured.calls[3])


def test_what_is_said_of_a_call() -> None:
    node = torch.fx.Graph().call_function(operator.getitem, ((1,), 0), name="taken")
    assert (target_of(node), written_of(node), module_of(node)) == ("taken", "", "")
    assert place_of(node) == (None, None)
    node = torch.fx.Graph().call_function(torch.ops.aten.relu.default)
    assert target_of(node) == "aten.relu.default"
    for said, written in [
        ("builtin_function_or_method.relu", "relu"),
        ("method_descriptor.add", "add"),
        ("method_descriptor.__getitem__", ""),
        ("OpOverload.relu.default", ""),
    ]:
        node.meta["torch_fn"] = ("relu_1", said)
        assert written_of(node) == written
    node.meta["nn_module_stack"] = {"a": ("", None), "b": ("layers.0", None), "c": ("m", None)}
    assert module_of(node) == "m"
    own = str(Path(torch.__file__).parent / "nn.py")
    lines = [f'File "{file}", line {at}, in f\n  x\n' for at, file in enumerate(("a", "b", own))]
    node.meta["stack_trace"] = "".join(lines)
    assert place_of(node) == ("b", 1)
    node.meta["stack_trace"] = lines[2]
    assert place_of(node) == (own, 2)


def test_what_a_call_returns() -> None:
    node = torch.fx.Graph().call_function(torch.ops.aten.relu.default)
    node.meta["val"] = (torch.zeros(2, 3), 5, torch.zeros(0, dtype=torch.complex64))
    assert specs_of(node) == (
        Spec((2, 3), np.dtype(np.float32)),
        Spec((0,), np.dtype(np.complex64)),
    )
    node.meta["val"] = torch.zeros(4, dtype=torch.bool)
    assert specs_of(node) == (Spec((4,), np.dtype(np.bool_)),)
    node.meta["val"] = torch.zeros(4, dtype=torch.complex128)
    with pytest.raises(UnsupportedError, match=r"^its element type is complex128: expected one of"):
        specs_of(node)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        *((getattr(torch, name), name) for name in ("float32", "float16", "bfloat16")),
        *((getattr(torch, name), name) for name in ("float8_e4m3fn", "float8_e5m2", "bool")),
        *((getattr(torch, name), name) for name in ("int8", "int16", "int32", "int64", "uint8")),
    ],
)
def test_numbers_of_tensors(dtype: torch.dtype, name: str) -> None:
    numbers = [[1.0, 2.0, 0.0], [1.5, 96.0, 3.0]]
    tensor = torch.tensor(numbers).to(dtype).requires_grad_(dtype.is_floating_point)
    for each in (tensor, tensor.T, tensor[:, 1]):
        found = array_of(each)
        assert found.dtype.name == name
        np.testing.assert_array_equal(found.astype(float), each.detach().double().numpy())
    own = array_of(tensor)
    assert own.__array_interface__["data"][0] == tensor.data_ptr()

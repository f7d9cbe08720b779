"""The outputs of a run: arrays, which can be saved in a file of numpy, or shapes in timing mode."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TypeAlias

import numpy as np
from typing_extensions import override

from fabric.graph.arguments.described import checked, refuse
from fabric.graph.values.conversion import holds_integers
from fabric.messages.errors import ConfigurationError
from fabric.messages.files import output_file
from fabric.messages.text import one_of, visible


@dataclass(frozen=True)
class OutputShape:
    """An output of a run in timing mode, which has no data.

    Attributes:
        shape: outermost dimension first; None for a size that depends on data.
    """

    shape: tuple[int | None, ...]
    dtype: np.dtype

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        """Raise a ConfigurationError, since a run in timing mode has no data."""
        refuse(f"{self} is not an array: expected a run in functional mode", ConfigurationError)

    @override
    def __repr__(self) -> str:
        return f"OutputShape({_text(self)})"


Output: TypeAlias = "np.ndarray | OutputShape"


class Outputs(Mapping[str, Output]):
    """The outputs of a run by the names of its stores, in the order of the stores.

    In functional mode they are read-only numpy arrays, in timing mode ``OutputShape``. Both have
    ``shape`` and ``dtype``; ``numpy.asarray`` takes arrays only. A run that did not complete has no
    outputs; a run with a wrong result has the outputs that it stored.

    ``Outputs`` are equal if their names in order, shapes, element types and bytes are equal.

    Examples:
        >>> import numpy as np
        >>> from fabric import Program, simulate
        >>> from operators import LinearOffChipLoad, LinearOffChipStore
        >>> with Program("copy") as program:
        ...     LinearOffChipStore("y")(LinearOffChipLoad(np.eye(32), tile=(1, 32))())
        >>> simulate(program, mode="functional").outputs["y"].sum()
        32
        >>> simulate(program, mode="timing").outputs["y"].shape
        (32, 32)
    """

    def __init__(self, outputs: Mapping[str, Output]) -> None:
        self._outputs: Final = {name: _frozen(output) for name, output in outputs.items()}

    @override
    def __getitem__(self, name: str) -> Output:
        try:
            return self._outputs[name]
        except KeyError:
            names = tuple(self._outputs)
            expected = one_of(names, str(name)) if names else "a run with outputs"
            raise KeyError(f"no output {name!r}: expected {expected}") from None

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    @override
    def __len__(self) -> int:
        return len(self._outputs)

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outputs):
            return NotImplemented
        return list(self) == list(other) and all(_equal(self[name], other[name]) for name in self)

    @override
    def __hash__(self) -> int:
        return hash(tuple((name, output.shape, output.dtype) for name, output in self.items()))

    @override
    def __reduce__(self) -> tuple[type[Outputs], tuple[dict[str, Output]]]:
        """Copy through ``__init__``, so that the arrays of a copy are read-only."""
        return Outputs, (self._outputs,)

    @override
    def __repr__(self) -> str:
        items = ", ".join(f"{name!r}: {_text(output)}" for name, output in self.items())
        return f"Outputs({{{items}}})"

    @checked
    def save(self, path: Path | str) -> None:
        """Write the arrays as a ``.npz`` file, which ``numpy.load(path)["y"]`` reads.

        Element types that numpy does not have are written as wider types with the same numbers:
        bfloat16 and float8 as float32. Invisible characters of a name are escaped as in Python.

        Args:
            path: the file; nothing is added to its name.

        Raises:
            ConfigurationError: the run has no arrays, or numpy's file cannot hold an array.
            OSError: the file cannot be written; an incomplete file is removed.
        """
        if not self:
            _refuse(path, "the run has no outputs: expected a completed run with stores")
        arrays = {
            name: output for name, output in self.items() if not isinstance(output, OutputShape)
        }
        if not arrays:
            _refuse(path, "the run was in timing mode, without data: expected functional mode")
        named = _members(arrays, path)
        with output_file(Path(path), "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, array in named.items():
                # Without a date, the files of two equal runs are equal.
                member = zipfile.ZipInfo(f"{name}.npy")
                # numpy.savez would refuse some names and types.
                with archive.open(member, "w", force_zip64=True) as data:
                    np.lib.format.write_array(data, _wide(array), allow_pickle=False)


def _frozen(output: Output) -> Output:
    """Return a read-only view, which leaves the array itself writable."""
    if isinstance(output, OutputShape):
        return output
    view = output.view()
    view.flags.writeable = False
    return view


def _equal(one: Output, other: Output) -> bool:
    if (one.shape, one.dtype) != (other.shape, other.dtype) or type(one) is not type(other):
        return False
    if isinstance(one, OutputShape) or isinstance(other, OutputShape):
        return True
    if one.dtype.hasobject:
        return bool(one.tolist() == other.tolist())
    return one is other or one.tobytes() == other.tobytes()


def _text(output: Output) -> str:
    # Imported when outputs are shown, which is rare.
    from fabric.graph.values.value import dtype_name

    sizes = ", ".join("?" if size is None else str(size) for size in output.shape)
    return f"[{sizes}] of {dtype_name(output.dtype)}"


_ADDED: Final = 2
"""``isbuiltin`` of element types of other libraries."""


def _members(arrays: Mapping[str, np.ndarray], path: Path | str) -> dict[str, np.ndarray]:
    members: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            _refuse(path, f"output {name!r} is an array of objects: expected an array of numbers")
        member = visible(name)
        # numpy finds `y.npy` under both names.
        for taken in (member, f"{member}.npy", member.removesuffix(".npy")):
            if taken in members:
                reason = f"outputs {taken!r} and {member!r} have one name in a file of numpy"
                _refuse(path, f"{reason}: expected other names")
        members[member] = array
    return members


def _wide(array: np.ndarray) -> np.ndarray:
    """Return ``array`` in a type of numpy that has the same numbers."""
    if array.dtype.isbuiltin != _ADDED:
        return array
    return array.astype(np.int8 if holds_integers(array.dtype) else np.float32)


def _refuse(path: Path | str, reason: str) -> NoReturn:
    refuse(f"{path} is not written: {reason}", ConfigurationError)

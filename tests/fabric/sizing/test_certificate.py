"""Certificates: those of runs are accepted, and none in which anything is false."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typing_extensions import override

from fabric import ConfigurationError
from fabric.explore.sizing import checker
from fabric.explore.sizing.checker import check
from fabric.explore.sizing.proofs import record_digest, write_certificate
from fabric.explore.sizing.running import recorded
from fabric.explore.sizing.search import slots_in_use
from fabric.graph.loading.program_file import load_on
from fabric.timing.retiming import events as e
from fabric.timing.retiming.record import Record, RecordedChannel
from fabric.timing.retiming.retimer import NO_LIMIT, Retimer
from tests.fabric.retiming.networks import Network, networks
from tests.fabric.retiming.real import UNBOUNDED
from tests.fabric.sizing.damages import (
    DAMAGES,
    DEPTHS,
    KINDS,
    Arrays,
    every_kind,
    saved,
    signed,
    undamaged,
)
from tests.profiles import examples
from tests.resident import begun_anew, peak_bytes

PROGRAMS = ("moe", "top2_moe", "matrix_vector", "edit_distance", "dynamic_tiling", "graph_layer")


def enough(record: Record) -> Retimer:
    """Return a record timed with the least depths that delay nothing."""
    retimer = Retimer(record)
    retimer.time([UNBOUNDED] * len(record.channels))
    retimer.time(slots_in_use(retimer))
    return retimer


def certified(record: Record, depths: Any) -> tuple[list[str], Arrays]:
    """Return what is found in a certificate, and what is in it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "found.npz"
        cycles = Retimer(record).time(depths).cycles
        assert cycles is not None
        write_certificate(path, record, depths, cycles)
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        assert cycles == arrays["cycles"]
        return check(path), arrays


def found(arrays: Arrays) -> list[str]:
    """Return what is found in a certificate of these arrays."""
    with TemporaryDirectory() as folder:
        return check(saved(arrays, Path(folder) / "found.npz"))


class TestAccepted:
    def test_every_kind(self, tmp_path: Path) -> None:
        """The certificate that is damaged below is one, and has every kind of event in it."""
        arrays = undamaged(tmp_path)

        assert [] == check(saved(arrays, tmp_path / "it.npz"))
        assert set(KINDS.values()) == set(arrays["events"][:, 0].tolist()) == set(range(15))

    @pytest.mark.parametrize(
        ("hardware", "interval"), [(None, 0), ("programs/hardware/wires.toml", 1)]
    )
    @pytest.mark.parametrize("program", PROGRAMS)
    def test_programs(self, program: str, hardware: str | None, interval: int) -> None:
        """Certificates of programs, with their own depths and with those that delay nothing."""
        wired = load_on(hardware, f"programs/{program}.py", [], {}).program
        record = recorded(wired, {}).record

        assert [] == certified(record, record.depths)[0]
        wrong, arrays = certified(record, slots_in_use(enough(record)))
        assert [] == wrong
        assert {interval} == set(arrays["channels"][:, 5].tolist())

    @pytest.mark.parametrize("interval", [0, 1, 4, 9])
    def test_early(self, interval: int, tmp_path: Path) -> None:
        """Wires that are busy for long are, too, and no event is a cycle early."""
        arrays = undamaged(tmp_path, interval)

        assert [] == found(arrays)
        for number, clock in enumerate(arrays["clocks"]):
            earlier = arrays["clocks"].copy()
            earlier[number] = clock - 1
            assert found(arrays | {"clocks": earlier}), number

    def test_links(self, tmp_path: Path) -> None:
        """Links that are shared have rules of their own, which the checker does not know."""
        mesh = "programs/hardware/mesh_paper.toml"
        wired = load_on(mesh, "programs/matrix_vector.py", [], {}).program
        record = recorded(wired, {}).record
        file = tmp_path / "links.npz"

        assert record.shares_links
        with pytest.raises(ConfigurationError) as caught:
            write_certificate(file, record, record.depths, NO_LIMIT)
        assert caught.value.message == (
            f"{file}: matrix-vector has channels that share links of a network: expected none, "
            "since the checker has no rule for links"
        )
        assert not file.exists()

    @examples(quick=50, deep=200)
    @given(networks(), st.data())
    def test_networks(self, network: Network, data: st.DataObject) -> None:
        """Those of random networks are; none in which any clock is a cycle early.

        Nor those for a slot less, but where that would change no clock.
        """
        record, _ = network.recorded([UNBOUNDED] * len(network.options))
        assume(record is not None)
        assert record is not None
        retimer = enough(record)
        depths = slots_in_use(retimer)
        clocks = retimer.clocks.copy()

        wrong, arrays = certified(record, depths)

        assert [] == wrong
        number = data.draw(st.integers(0, len(record.events) - 1))
        earlier = clocks - (np.arange(len(clocks)) == number)
        assert found(arrays | {"clocks": earlier})
        on = data.draw(st.integers(0, len(depths) - 1))
        fewer = depths - (np.arange(len(depths)) == on)
        if fewer[on]:
            cycles = retimer.time(fewer).cycles
            same = cycles is not None and (retimer.clocks == clocks).all()
            assert same == (not found(arrays | {"depths": fewer}))

    def test_later(self, tmp_path: Path) -> None:
        """Clocks may be later than they have to be: what is claimed is an upper bound."""
        arrays = undamaged(tmp_path)
        later = {name: arrays[name] + 7 for name in ("clocks", "cycles", "limit")}

        assert [] == found(arrays | later)


class TestRefused:
    def test_count(self) -> None:
        """There are a hundred kinds of damage, and more."""
        assert len(DAMAGES) + len(FILES) + len(CIRCLES) >= 100

    @pytest.mark.parametrize("name", DAMAGES)
    def test_damaged(self, name: str, tmp_path: Path) -> None:
        """One number, row or array is another: that is found, not only by the digest."""
        damage, sign = DAMAGES[name]
        arrays, before = undamaged(tmp_path), undamaged(tmp_path)
        damage(arrays)
        assert arrays.keys() != before.keys() or any(
            arrays[each].dtype != its.dtype
            or arrays[each].shape != its.shape
            or (arrays[each] != its).any()
            for each, its in before.items()
        )
        if sign:
            signed(arrays)

        wrong = check(saved(arrays, tmp_path / "damaged.npz"))

        assert wrong
        assert not (sign and "it has the digest of another record" in wrong)

    def test_files(self, tmp_path: Path, file_damage: Callable[[Path], object]) -> None:
        """What is no file of arrays proves nothing."""
        path = saved(undamaged(tmp_path), tmp_path / "damaged.npz")
        assert [] == check(path)
        file_damage(path)

        assert check(path)


def _lying(form: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of an array, without the array."""
    written = io.BytesIO()
    head = {"descr": form, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(written, head)
    return written.getvalue()


HEADERS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "numbers that are not there": ("clocks", lambda: _lying("<i8", (1 << 36,))),
    "texts of no letters": ("options", lambda: _lying("<U0", (1 << 32,))),
    "events of no columns": ("events", lambda: _lying("<i8", (1 << 40, 0))),
    "a number below 0": ("clocks", lambda: _lying("<i8", (-1,))),
    "a header of brackets": (
        "clocks",
        lambda: b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"[" * 9000,
    ),
    "objects": ("clocks", lambda: _lying("|O", (1,)) + b"\x80\x04N."),
    "rows": ("clocks", lambda: _lying("<i8", (1,)) + bytes(7)),
}
"""Of which array, and what stands in its place."""


def _packed(path: Path, members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


class TestPacked:
    @pytest.mark.parametrize("name", HEADERS)
    def test_header(self, name: str, tmp_path: Path) -> None:
        """What is in no file is not made room for."""
        of, content = HEADERS[name]
        good = saved(undamaged(tmp_path), tmp_path / "good.npz")
        path = _packed(tmp_path / "bad.npz", _members(good) | {f"{of}.npy": content()})
        before = begun_anew()

        assert check(path)
        assert peak_bytes() - before < 100_000_000

    def test_bomb(self, tmp_path: Path) -> None:
        """What is small in the file, and large when it is read, is not read."""
        path = saved(undamaged(tmp_path) | {"clocks": np.zeros(9, np.int64)}, tmp_path / "it.npz")
        members = _members(path)
        del members["clocks.npy"]
        _packed(path, members)
        with (
            zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
            file.open("clocks.npy", "w") as clocks,
        ):
            clocks.write(_lying("<i8", (1 << 25,)))
            for _ in range(256):
                clocks.write(bytes(1 << 20))
        before = begun_anew()

        assert check(path)
        assert peak_bytes() - before < 100_000_000

    @pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_other_packing(self, how: int, tmp_path: Path) -> None:
        """Of these, what a few bytes become cannot be bounded before they are unpacked."""
        good = saved(undamaged(tmp_path), tmp_path / "good.npz")
        assert [] == check(_packed(tmp_path / "again.npz", _members(good)))
        assert check(_packed(tmp_path / "bad.npz", _members(good), how))

    @pytest.mark.parametrize("twin", ["clocks", "clocks.npy", "clocks.npy.npy", "../x.npy"])
    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_twins(self, twin: str, tmp_path: Path) -> None:
        """No two readers find two different arrays under one name."""
        path = saved(undamaged(tmp_path), tmp_path / "it.npz")
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(twin, _members(path)["depths.npy"])

        assert check(path)


@examples(quick=60)
@given(st.data())
def test_accepted_is_so(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Numbers of a record, of its clocks and of its claims are forged, and signed.

    Where that is accepted, the record forged does complete in the cycles claimed.
    """
    arrays = undamaged(tmp_path_factory.mktemp("forged"), data.draw(st.sampled_from([0, 1, 4])))
    if data.draw(st.booleans()):
        # Room for what is forged: some of it is then possible.
        arrays |= {"clocks": arrays["clocks"] * 3, "cycles": np.array(900)}
    arrays["limit"] = arrays["cycles"]
    numbers = [name for name, array in arrays.items() if array.dtype.kind == "i"]
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(numbers))
        changed = arrays[name].copy()
        at = data.draw(st.integers(0, changed.size - 1))
        some = st.integers(-3, 3) | st.sampled_from([-(1 << 40), -60, 60, 1 << 40])
        changed.flat[at] += data.draw(some)
        if name == "channels" and at % 6 == 5:
            changed[:, 5] = changed.flat[at]  # a record has one interval for all
        arrays[name] = changed
    signed(arrays)

    if not found(arrays):
        cycles = Retimer(_record(arrays)).time(arrays["depths"]).cycles
        assert cycles is not None
        assert cycles <= arrays["cycles"] <= arrays["limit"]


def _record(arrays: Arrays) -> Record:
    """Return the record that is in a certificate."""
    its, columns = arrays["events"], arrays["channels"]
    slots = np.isin(its[:, 0], (e.SEND, e.RESERVE))
    channels = tuple(
        RecordedChannel(
            str(option), str(on), by, to, 1, out, back, elements, 1,
            int((slots & (its[:, 1] == on)).sum()) - elements,
        )
        for on, (option, (by, to, out, back, elements, _)) in enumerate(
            zip(arrays["options"], columns.tolist(), strict=True)
        )
    )  # fmt: skip
    return Record(
        str(arrays["program"]),
        tuple(map(str, range(len(arrays["first"]) - 1))),
        channels,
        arrays["first"],
        np.column_stack([its[:, 1] << e.SHIFT | its[:, 0], its[:, 2]]),
        0,
        tuple(arrays["clients"].tolist()),
        int(arrays["shutdown_cycles"]),
        interval_cycles=int(columns[0, 5]),
    )


class _Touches:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        """Make ``path``."""
        self.path = path

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_nothing_is_executed(tmp_path: Path) -> None:
    """A certificate from elsewhere is read, and no code that is in it runs."""
    arrays = undamaged(tmp_path)
    arrays["clocks"] = np.array([_Touches(tmp_path / "touched")], object)

    assert found(arrays)
    assert not (tmp_path / "touched").exists()


def _rewritten(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(9))


def _flipped(its: bytes) -> bytes:
    """Change a byte of the clocks."""
    at = its.index(b"clocks.npy") + 250
    return its[:at] + bytes([its[at] ^ 255]) + its[at + 1 :]


FILES: dict[str, Callable[[Path], object]] = {
    "not there": Path.unlink,
    "a folder": _a_folder,
    "empty": partial(_rewritten, change=lambda _: b""),
    "a text": partial(_rewritten, change=lambda _: b"proved"),
    "one array": _one_array,
    "cut in half": partial(_rewritten, change=lambda its: its[: len(its) // 2]),
    "without its last byte": partial(_rewritten, change=lambda its: its[:-1]),
    "without its first byte": partial(_rewritten, change=lambda its: its[1:]),
    "a byte flipped": partial(_rewritten, change=_flipped),
    "a pickle": partial(_rewritten, change=lambda _: b"\x80\x04N."),
}


@pytest.fixture(params=FILES)
def file_damage(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    """Damage to a file."""
    return FILES[request.param]


def _unit(of_channels: tuple[int, int], steps: str, work: int) -> list[tuple[int, int, int]]:
    """Return events of a unit: i, s, t, f, e are idling, sending, taking, finishing, the end."""
    kinds = {"i": e.IDLE, "s": e.SEND, "t": e.TAKE, "f": e.FINISH, "e": e.END}
    into, out = of_channels
    places = {"i": into, "s": out, "t": into, "f": 0, "e": into}
    return [(kinds[each], places[each], -1 if each == "i" else work) for each in steps]


def _two_units(
    one: list[tuple[int, int, int]], other: list[tuple[int, int, int]], **its: Any
) -> Arrays:
    """Return the arrays of two units, which have a cycle."""
    arrays: Arrays = {
        "program": np.array("two"),
        "options": np.array(["a.0", "b.0"][: len(its["depths"])]),
        "first": np.array([0, len(one), len(one) + len(other)]),
        "events": np.array([*one, *other]),
        "clients": np.zeros(0, np.int64),
        "shutdown_cycles": np.array(0),
        "cycles": np.array(1),
        "limit": np.array(1),
    }
    arrays |= {name: np.array(rows) for name, rows in its.items()}
    signed(arrays)
    return arrays


CIRCLES = {"ends": ("ef", "ef", [0, 0]), "idling": ("istfe", "istfe", [0, 0, 1, 1, 1])}
NO_CIRCLES = {"one end": ("fe", "ef", [0, 0]), "one idles": ("istfe", "stfe", [0, 0, 1, 1, 1])}


@pytest.mark.parametrize("name", CIRCLES | NO_CIRCLES)
def test_circles(name: str) -> None:
    """Two units that wait for each other in one cycle are found, though no clock is early."""
    one, other, clocks = (CIRCLES | NO_CIRCLES)[name]
    elements = one.count("s")

    wrong = found(
        _two_units(
            _unit((1, 0), one, 0),
            _unit((0, 1), other, 0),
            channels=[(0, 1, 1, 1, elements, 0), (1, 0, 1, 1, elements, 0)],
            depths=[1, 1],
            clocks=[*clocks, *clocks[len(one) - len(other) :]],
        )
    )

    assert (name in CIRCLES) == ("CycleError" in "".join(wrong))
    assert (name in CIRCLES) == bool(wrong)


@pytest.mark.parametrize(
    ("reserved", "depth", "accepted"), [(2, 1, False), (2, 2, True), (0, 0, False), (0, 1, True)]
)
def test_unused_slots(reserved: int, depth: int, accepted: bool) -> None:
    """Slots that nothing is put into never come back; and a channel has one at least."""
    one = [(e.RESERVE, 0, 0)] * reserved + _unit((0, 0), "f", 0)
    arrays = _two_units(
        one,
        _unit((0, 0), "ef", 0),
        channels=[(0, 1, 1, 1, 0, 0)],
        depths=[depth],
        clocks=[0] * (len(one) + 2),
    )

    assert accepted == (not found(arrays))


@pytest.mark.parametrize(
    ("interval", "forward", "least_cycle"), [(0, 3, 5), (1, 3, 8), (4, 3, 8), (4, 1, 6)]
)
def test_the_end_of_wires(interval: int, forward: int, least_cycle: int) -> None:
    """Wires carry that their producer has ended as long as an element; else it is seen at once."""

    def accepted(end_cycle: int) -> bool:
        clocks, rows = [5, end_cycle, end_cycle], [(0, 1, forward, 1, 0, interval)]
        one, other = _unit((0, 0), "f", 5), _unit((0, 0), "ef", 0)
        its = _two_units(one, other, channels=rows, depths=[1], clocks=clocks)
        return not found(its | {"cycles": np.array(end_cycle), "limit": np.array(end_cycle)})

    assert accepted(least_cycle)
    assert not accepted(least_cycle - 1)


class TestWriting:
    def test_not_within_the_limit(self, tmp_path: Path) -> None:
        """What does not complete in time has none."""
        path = tmp_path / "none.npz"
        cycles = Retimer(every_kind()).time(DEPTHS).cycles
        assert cycles is not None

        with pytest.raises(
            ValueError, match=rf"^every does not complete within {cycles - 1} cycles$"
        ):
            write_certificate(path, every_kind(), np.array(DEPTHS), cycles - 1)
        assert not path.exists()

    def test_digest(self, tmp_path: Path) -> None:
        """A record has one digest, whatever the depths; another record has another."""
        path = tmp_path / "it.npz"
        digests = set()
        for depths in (DEPTHS, (9, 9, 9, 9)):
            write_certificate(path, every_kind(), np.array(depths), NO_LIMIT)
            with np.load(path) as file:
                digests.add(str(file["digest"]))

        assert {record_digest(every_kind())} == digests
        other = record_digest(every_kind().with_work([every_kind().units.index("u0")], 2))
        assert other not in digests
        assert [] == check(path, *digests)
        assert ["it has the digest of another record"] == check(path, other)


class TestChecker:
    def test_alone(self, tmp_path: Path) -> None:
        """It runs where there is no fabric, and says by its exit code what it has found."""
        good = saved(undamaged(tmp_path), tmp_path / "good.npz")
        bad = saved(undamaged(tmp_path) | {"cycles": np.array(3)}, tmp_path / "bad.npz")
        code = (
            "import runpy, sys; sys.modules['fabric'] = None; "
            f"runpy.run_path({checker.__file__!r}, run_name='__main__')"
        )
        ran = [
            subprocess.run(
                [sys.executable, "-I", "-c", code, str(path)],
                capture_output=True, text=True, check=False,
            )
            for path in (good, bad)
        ]  # fmt: skip

        assert [0, 1] == [each.returncode for each in ran]
        assert "" == ran[0].stderr
        said = ("program: 'every'\n", "cycles: 241\n", f"digest: {record_digest(every_kind())!r}\n")
        assert all(each in ran[0].stdout for each in said)
        assert "" == ran[1].stdout
        assert "it takes more cycles than it claims, or than its limit\n" == ran[1].stderr

    def test_small(self) -> None:
        """It has less than 100 lines of code, and imports nothing of the fabric."""
        text = Path(checker.__file__).read_text(encoding="utf-8")
        tree = ast.parse(text)
        told = {
            line
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node)
            for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
        }
        code = [line for line, its in enumerate(text.splitlines(), 1) if its.strip()]
        assert len(set(code) - told) < 100
        modules = {
            name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else
                         [each.name for each in node.names])
        }  # fmt: skip
        assert modules <= sys.stdlib_module_names | {"numpy"}

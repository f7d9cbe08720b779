from __future__ import annotations

import io
import subprocess
import sys
import zipfile
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
from fabric.explore.sizing.checker import FORM, check, digest_of
from fabric.explore.sizing.proofs import record_digest, write_certificate
from fabric.explore.sizing.running import recorded
from fabric.explore.sizing.search import slots_in_use
from fabric.graph.loading.program_file import load_on
from fabric.timing.engine import log as e
from fabric.timing.retiming.record import Record, RecordedChannel
from fabric.timing.retiming.retimer import NO_LIMIT, Retimer
from tests.fabric.retiming.networks import Network, networks
from tests.fabric.retiming.real import UNBOUNDED
from tests.profiles import examples, spread
from tests.resident import begun_anew, peak_bytes

Arrays = dict[str, Any]

PROGRAMS = ("top2_moe", "matrix_vector", "edit_distance", "dynamic_tiling", "graph_layer")

DEPTHS = (2, 3, 1, 1)

KINDS = {
    name: getattr(e, name)
    for name in (
        "SEE", "TAKE", "SEND", "RESERVE", "PUT", "END", "FINISH", "WORK", "BURST", "NOTE", "LATE",
        "AT", "ARRIVAL", "UNTIL", "IDLE",
    )
}  # fmt: skip


def every_kind(interval_cycles: int = 0) -> Record:
    # Channels are wires if there is an interval. The merge leaves two elements over, and one slot
    # stays unused. The memory stops 5 cycles after the later of its two clients.
    ends = [(0, 1, 1, 1, 4, 0), (0, 2, 2, 3, 3, 1), (1, 2, 1, 1, 4, 0), (2, 3, 1, 2, 3, 0)]
    channels = tuple(
        RecordedChannel(
            at, f"u{by} -> u{to}", f"u{to}.{at}", by, to, "tile", 9, out, back, its, 1, unused
        )
        for at, (by, to, out, back, its, unused) in enumerate(ends)
    )
    source = [
        ("BURST", 0, 3), ("NOTE", 0, 0), ("SEND", 0, 0), ("SEND", 0, 1), ("LATE", 3, 9),
        ("SEND", 1, 0), ("WORK", 0, 2), ("RESERVE", 0, 0), ("WORK", 0, 1), ("PUT", 0, 4),
        ("AT", 0, 60), ("SEND", 1, 0), ("SEND", 0, 30), ("SEND", 1, 5), ("RESERVE", 1, 2),
        ("FINISH", 0, 1),
    ]  # fmt: skip
    stage = []
    for number in range(4):
        stage += [
            ("SEE", 0, 9 * number), ("ARRIVAL", 0, number), ("TAKE", 0, 1), ("UNTIL", 0, 6),
            ("RESERVE", 2, 1), ("WORK", 0, 1), ("PUT", 2, 2),
        ]  # fmt: skip
    stage += [("END", 0, 0), ("FINISH", 0, 2)]
    merge = [
        ("IDLE", 1, 1), ("TAKE", 1, 0), ("TAKE", 2, 3), ("SEND", 3, 1), ("SEE", 1, 0),
        ("TAKE", 1, 4), ("WORK", 0, 90), ("SEND", 3, 0), ("TAKE", 2, 0), ("IDLE", 1, -1),
        ("TAKE", 1, 2), ("SEND", 3, 0), ("FINISH", 0, 40), ("END", 1, 0), ("END", 2, 0),
    ]  # fmt: skip
    reader = [
        ("TAKE", 3, 0), ("BURST", 0, 30), ("TAKE", 3, 40), ("WORK", 0, 10), ("TAKE", 3, 0),
        ("END", 3, 70), ("FINISH", 0, 1),
    ]  # fmt: skip
    its = [source, stage, merge, reader]
    events = [(on << e.SHIFT | KINDS[name], amount) for unit in its for name, on, amount in unit]
    first = np.cumsum([0, *map(len, its)])
    names = ("u0", "u1", "u2", "u3")
    return Record(
        "every", names, channels, first, np.array(events), 500, (0, 3), 5,
        interval_cycles=interval_cycles,
    )  # fmt: skip


def undamaged(folder: Path, interval_cycles: int = 0) -> Arrays:
    path = folder / "undamaged.npz"
    write_certificate(path, every_kind(interval_cycles), np.array(DEPTHS), 10_000)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["limit"] = arrays["cycles"]
    return arrays


def signed(arrays: Arrays) -> Arrays:
    return arrays | {"digest": np.array(digest_of(arrays))}


def saved(arrays: Arrays, path: Path) -> Path:
    np.savez(path, **arrays)
    return path


def found(arrays: Arrays) -> list[str]:
    with TemporaryDirectory() as folder:
        return check(saved(arrays, Path(folder) / "found.npz"))


def enough(record: Record) -> Retimer:
    retimer = Retimer(record)
    retimer.time([UNBOUNDED] * len(record.channels))
    retimer.time(slots_in_use(retimer))
    return retimer


def certified(record: Record, depths: Any) -> tuple[list[str], Arrays]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "found.npz"
        cycles = Retimer(record).time(depths).cycles
        assert cycles is not None
        write_certificate(path, record, depths, cycles)
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        assert cycles == arrays["cycles"]
        return check(path), arrays


def test_certificate_with_every_kind_of_event_is_accepted(tmp_path: Path) -> None:
    arrays = undamaged(tmp_path)
    assert [] == found(arrays)
    assert set(KINDS.values()) == set(arrays["events"][:, 0].tolist()) == set(range(15))


@pytest.mark.parametrize(("hardware", "interval"), [(None, 0), ("programs/hardware/wires.toml", 1)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_certificates_of_programs_are_accepted(
    program: str, hardware: str | None, interval: int
) -> None:
    wired = load_on(hardware, f"programs/{program}.py", [], {}).program
    record = recorded(wired, {}).record

    assert [] == certified(record, record.depths)[0]
    wrong, arrays = certified(record, slots_in_use(enough(record)))
    assert [] == wrong
    assert {interval} == set(arrays["channels"][:, 5].tolist())


@pytest.mark.parametrize("interval", [0, 4])
def test_certificate_with_an_event_a_cycle_early_is_refused(interval: int, tmp_path: Path) -> None:
    arrays = undamaged(tmp_path, interval)

    assert [] == found(arrays)
    for number, clock in enumerate(arrays["clocks"]):
        earlier = arrays["clocks"].copy()
        earlier[number] = clock - 1
        assert found(arrays | {"clocks": earlier}), number


def test_certificate_of_shared_links_is_refused(tmp_path: Path) -> None:
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


@examples(quick=25, deep=200)
@given(networks(), st.data())
def test_certificates_of_random_networks_are_accepted_and_early_ones_refused(
    network: Network, data: st.DataObject
) -> None:
    # Nor those for a slot less, but where that would change no clock.
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


@pytest.mark.parametrize(("step", "true"), spread([(-1000, 28), (-1, 84), (1, 67), (1000, 26)], 1))
def test_certificate_with_any_number_changed_is_refused_or_true(
    step: int, true: int, tmp_path: Path
) -> None:
    good = undamaged(tmp_path)
    accepted = 0
    for name, array in good.items():
        for place in range(array.size if array.dtype.kind == "i" else 0):
            changed = array.copy()
            changed.flat[place] += step
            if name == "channels" and place % 6 == 5:
                changed[:, 5] = changed.flat[place]  # a record has one interval for all
            accepted += _is_accepted_and_true(good | {name: changed})
    assert accepted == true


def _is_accepted_and_true(arrays: Arrays) -> bool:
    arrays = signed(arrays)
    if found(arrays):
        return False
    cycles = Retimer(_record(arrays)).time(arrays["depths"]).cycles
    assert cycles is not None
    assert cycles <= arrays["cycles"] <= arrays["limit"]
    return True


def _record(arrays: Arrays) -> Record:
    its, columns = arrays["events"], arrays["channels"]
    slots = np.isin(its[:, 0], (e.SEND, e.RESERVE))
    channels = tuple(
        RecordedChannel(
            on, str(on), str(option), by, to, "tile", 1, out, back, elements, 1,
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


@pytest.mark.parametrize("change", ["missing", "deeper", "pickled", "float", "unsigned", "cut"])
@pytest.mark.parametrize("name", FORM)
def test_certificate_with_an_array_of_another_form_is_refused(
    name: str, change: str, tmp_path: Path
) -> None:
    arrays = undamaged(tmp_path)
    array = arrays.pop(name)
    match change:
        case "deeper":
            arrays[name] = array[None]
        case "pickled":
            arrays[name] = array.astype(object)
        case "float" | "unsigned" if array.dtype.kind == "i":
            arrays[name] = array.astype(np.float64 if change == "float" else np.uint64)
        case "cut" if array.ndim:
            arrays[name] = array[:-1]
    assert found(arrays)


def _lying(form: str, shape: tuple[int, ...]) -> bytes:
    written = io.BytesIO()
    head = {"descr": form, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(written, head)
    return written.getvalue()


def _packed(path: Path, members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_small_file_of_a_large_array_is_not_read(tmp_path: Path) -> None:
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


class _Touches:
    def __init__(self, path: Path) -> None:
        self.path = path

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_pickle_in_a_certificate_is_not_executed(tmp_path: Path) -> None:
    arrays = undamaged(tmp_path)
    arrays["clocks"] = np.array([_Touches(tmp_path / "touched")], object)
    assert found(arrays)
    assert not (tmp_path / "touched").exists()


def test_checker_without_the_fabric_exits_with_its_answer(tmp_path: Path) -> None:
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

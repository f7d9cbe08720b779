from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pydot
import pytest

from fabric.analysis.drawing.picture import Arrow, Box, Picture, picture_of
from fabric.analysis.drawing.svg import dot, mermaid, svg
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.causes import Cause
from fabric.shell.cli import main
from tests.drawing.geometry import drawn
from tests.symbolic.programs import PROGRAMS, wired

LOG = "logs/simplified-moe-1"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def simplified(*, unfold: bool = False) -> Picture:
    return picture_of(elaborate(wired("simplified_moe")), unfold=unfold)


def test_repeated_parts_are_one_box_with_a_count() -> None:
    picture = simplified()
    counts = {box.title: box.count for box in picture.boxes}

    assert (28, 18) == (sum(box.count for box in picture.boxes), len(picture.boxes))
    assert {"partition_1": 1, "matmul_1..2": 2, "linear_off_chip_load_2..3": 2}.items() <= (
        counts.items()
    )
    assert 31 == sum(arrow.count for arrow in picture.arrows)
    operators = [box.operator for box in picture.boxes]
    source, target = operators.index("Map(Matmul)"), operators.index("Accum(RetileCol)")
    assert Arrow(source, target, "[ceil(D_selectors_1[0..1]/4), 4] of 4x64", 2) in (picture.arrows)


def test_svg_has_all_arrows_and_titles() -> None:
    picture = simplified()
    root = ET.fromstring(svg(picture))
    texts = {text.text for text in root.iter(f"{SVG}text")}

    assert len(picture.arrows) == drawn(svg(picture)).tips
    for box in picture.boxes:
        many = f"  \N{MULTIPLICATION SIGN}{box.count}" if box.count > 1 else ""
        assert box.title + many in texts
    words = {text.strip() for text in texts if text}
    assert {"compute unit", "memory unit", "routing unit", "simplified-moe"} <= words


def test_long_name_is_shortened_and_in_a_tooltip() -> None:
    name = "a" * 40 + "b" * 40
    box = Box(name, 1, "Map", "compute", "x.py:1", None)
    root = ET.fromstring(svg(Picture("p", (box,), ())))

    shown = "a" * 31 + "\N{HORIZONTAL ELLIPSIS}" + "b" * 16
    assert shown in {text.text for text in root.iter(f"{SVG}text")}
    assert name in {title.text for title in root.iter(f"{SVG}title")}


def test_special_characters_are_escaped() -> None:
    box = Box('a<b>&"c', 1, "Map", "compute", "x.py:1", None)
    picture = Picture('<&">', (box,), ())
    root = ET.fromstring(svg(picture))
    (graph,) = pydot.graph_from_dot_data(dot(picture)) or []

    assert {'a<b>&"c', '<&">'} <= {text.text for text in root.iter(f"{SVG}text")}
    assert "n0" in {node.get_name() for node in graph.get_nodes()}


def test_dot_is_parsed_with_all_nodes_and_edges() -> None:
    picture = picture_of(elaborate(wired("moe", model="tiny", batch=16)))
    (graph,) = pydot.graph_from_dot_data(dot(picture)) or []

    assert len(picture.arrows) == len(graph.get_edges())
    assert {f"n{number}" for number in range(len(picture.boxes))} <= {
        node.get_name() for node in graph.get_nodes()
    }


def by_hand() -> Picture:
    kinds = ("compute", "memory", "routing")
    names = (
        "load",
        "split",
        "up_0..3",
        "gate_0..3",
        "product",
        "a_name_longer_than_its_box",
        "out",
    )
    boxes = tuple(
        Box(
            name,
            4 if "0..3" in name else 1,
            f"Kind{number}",
            kinds[number % 3],
            f"x.py:{10 + number}",
            shares(number),
        )
        for number, name in enumerate(names)
    )
    wires = ((0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6), (0, 6), (5, 1), (4, 6), (4, 6))
    return Picture(
        "by hand <&>",
        boxes,
        tuple(Arrow(a, b, f"[{a}, {b}] of 4x4", 1 + a % 3) for a, b in wires),
    )


def shares(number: int) -> dict[Cause, float]:
    busy = number / 10
    return {
        Cause.BUSY: busy,
        Cause.EMPTY: 0.1,
        Cause.FULL: 0.05,
        Cause.HBM: 0.1,
        Cause.CAPACITY: 0.05,
        Cause.IDLE: 0.7 - busy,
    }


def test_bar_of_a_box_has_the_shares_of_its_cycles() -> None:
    picture = by_hand()
    root = ET.fromstring(svg(picture))
    groups = {group.get("class"): group for group in root.iter(f"{SVG}g")}
    for number, box in enumerate(picture.boxes):
        widths = {}
        for part in groups[f"node box box{number}"].iter(f"{SVG}polygon"):
            across = [float(point.split(",")[0]) for point in part.attrib["points"].split()]
            widths[part.attrib["fill"]] = max(across) - min(across)
        whole = sum(widths.values())
        for cause, share in (box.shares or {}).items():
            assert abs(share * whole - widths.get(cause.colour, 0)) <= 1


@pytest.mark.parametrize(("suffix", "draw"), [("dot", dot), ("mmd", mermaid)])
def test_picture_of_a_measured_run_is_as_before(
    suffix: str, draw: Callable[[Picture], str], golden: Callable[[str, str], None]
) -> None:
    golden(f"by_hand_measured.{suffix}", draw(by_hand()))


FILE = str(PROGRAMS / "simplified_moe.py")


@pytest.mark.parametrize(
    ("file", "start"), [("x.svg", "<svg "), ("x.dot", "digraph "), ("x.mmd", "flowchart ")]
)
def test_graph_command_writes_the_language_of_the_suffix(
    capsys: pytest.CaptureFixture[str], file: str, start: str
) -> None:
    status = main(["graph", FILE, "-o", file, "-p", "experts=3"])

    assert 0 == status
    assert f"38 operators in 18 boxes, drawn in {file}\n" == capsys.readouterr().out
    assert Path(file).read_text(encoding="utf-8").startswith(start)


def test_graph_command_with_a_run_shows_its_shares(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["run", FILE])
    assert 0 == main(["graph", FILE, "--run", LOG, "-o", "x.svg"])
    text = Path("x.svg").read_text(encoding="utf-8")
    counters = json.loads(Path(LOG, "counters.json").read_text())
    cycles = json.loads(Path(LOG, "report.json").read_text())["cycles"]
    maps = [unit for unit in counters["units"] if unit["name"] in ("matmul_1", "matmul_2")]
    busy = sum(unit["busy_cycles"] for unit in maps) / 2 / cycles

    assert f"<title>matmul_1..2: busy {100 * busy:.1f} %, empty " in text
    assert [channel["elements"] for channel in counters["channels"]] == [
        channel["expected_elements"] for channel in counters["channels"]
    ]
    capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "counters", "said"),
    [
        (("-o", "x.png"), None, "'x.png': expected a name that ends in .svg, .dot or .mmd\n"),
        (
            ("--run", "nowhere"),
            None,
            "fabric: nowhere/counters.json: --run nowhere: No such file or directory: expected the "
            "folder of a finished run\n",
        ),
        (("--run", LOG), '{"units": [{"name": []}]}', "not the counters of a run: expected a file"),
        (("--run", LOG), "\udcff", "not the counters of a run: expected a file of `run`"),
        (
            ("--run", LOG, "-p", "experts=3"),
            None,
            "the run has no operator flatten_7: expected a run of this program with the same "
            "parameters\n",
        ),
    ],
)
def test_graph_command_with_a_wrong_file_or_run_is_refused(
    options: tuple[str, ...],
    counters: str | None,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert 0 == main(["run", FILE])
    if counters is not None:
        content = counters.encode("utf-8", "surrogateescape")
        Path(LOG, "counters.json").write_bytes(content)
    capsys.readouterr()

    assert 2 == main(["graph", FILE, "-o", "x.svg", *options])
    assert said in capsys.readouterr().err

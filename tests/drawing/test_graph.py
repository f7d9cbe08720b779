"""Pictures of programs: what is drawn, how often, in which language, and without overlaps."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pydot
import pytest

from fabric.analysis.drawing.lines import LINE, arrow
from fabric.analysis.drawing.picture import Arrow, Box, Picture, picture_of, shares_of_run
from fabric.analysis.drawing.svg import dot, mermaid, svg
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.telling.causes import SHOWN, Cause
from fabric.shell.cli import main
from tests.symbolic.programs import PROGRAMS, wired

LOG = "logs/simplified-moe-1"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def simplified(*, unfold: bool = False) -> Picture:
    return picture_of(elaborate(wired("simplified_moe")), unfold=unfold)


class TestPicture:
    def test_repeated_parts_once(self) -> None:
        picture = simplified()
        counts = {box.title: box.count for box in picture.boxes}

        assert (28, 18) == (sum(box.count for box in picture.boxes), len(picture.boxes))
        assert {"partition_1": 1, "matmul_1..2": 2, "linear_off_chip_load_2..3": 2}.items() <= (
            counts.items()
        )
        assert 31 == sum(arrow.count for arrow in picture.arrows)
        operators = [box.operator for box in picture.boxes]
        source, target = operators.index("Map(Matmul)"), operators.index("Accum(RetileCol)")
        assert Arrow(source, target, "[ceil(D_selectors_1[0..1]/4), 4] of 4x64", 2) in (
            picture.arrows
        )

    def test_unfolded(self) -> None:
        picture = simplified(unfold=True)

        assert [1] * 28 == [box.count for box in picture.boxes]
        assert 31 == len(picture.arrows)

    def test_a_whole_layer(self) -> None:
        plan = elaborate(wired("moe"))
        picture = picture_of(plan)

        assert 30 == len(picture.boxes)
        assert len(plan.nodes) == sum(box.count for box in picture.boxes)
        assert len(plan.edges) == sum(arrow.count for arrow in picture.arrows)

    def test_one_line_is_one_box(self) -> None:
        plan = elaborate(wired("swiglu"))

        assert [2] == [box.count for box in picture_of(plan).boxes if box.count > 1]
        assert len(plan.nodes) == len(picture_of(plan, unfold=True).boxes)


class TestSvg:
    def test_elements(self) -> None:
        picture = simplified()
        root = ET.fromstring(svg(picture))
        texts = {text.text for text in root.iter(f"{SVG}text")}

        assert len(picture.arrows) == len(list(root.iter(f"{SVG}path")))
        assert len(picture.arrows) == len(list(root.iter(f"{SVG}polygon")))
        for box in picture.boxes:
            many = f"  \N{MULTIPLICATION SIGN}{box.count}" if box.count > 1 else ""
            assert box.title + many in texts
        assert {"compute unit", "memory unit", "routing unit", "simplified-moe"} <= texts

    def test_one_program_one_picture(self) -> None:
        assert svg(simplified()) == svg(simplified())

    def test_cycles(self) -> None:
        picture = picture_of(elaborate(wired("attention", strategy="dynamic")))
        ET.fromstring(svg(picture))

        assert any(arrow.source > arrow.target for arrow in picture.arrows)

    def test_tint(self) -> None:
        none = dict.fromkeys(SHOWN, 0.0)
        for cause, share in ((Cause.HBM, 0.8), (Cause.BUSY, 1.0), (Cause.EMPTY, 0.4)):
            found = none | {cause: share, Cause.IDLE: min(1 - share, 0.3), Cause.CAPACITY: 0.1}
            box = Box("x", 1, "Map", "compute", "x.py:1", found)
            text = svg(Picture("p", (box,), ()))
            assert f'fill="{cause.colour}" fill-opacity="{share / 2:.2f}"/>' in text
        idle = Box("x", 1, "Map", "compute", "x.py:1", none | {Cause.IDLE: 0.9, Cause.BUSY: 0.1})
        assert 'fill-opacity="0.00"/>' in svg(Picture("p", (idle,), ()))

    def test_long_names(self) -> None:
        name = "a" * 40 + "b" * 40
        box = Box(name, 1, "Map", "compute", "x.py:1", None)
        root = ET.fromstring(svg(Picture("p", (box,), ())))

        shown = "a" * 31 + "\N{HORIZONTAL ELLIPSIS}" + "b" * 16
        assert shown in {text.text for text in root.iter(f"{SVG}text")}
        assert name in {title.text for title in root.iter(f"{SVG}title")}

    @pytest.mark.parametrize(("letters", "shown"), [(48, 48), (49, 31 + 1 + 16)])
    def test_names_that_just_fit(self, letters: int, shown: int) -> None:
        name = "a" * letters
        box = Box(name, 1, "Map", "compute", "x.py:1", None)
        root = ET.fromstring(svg(Picture("p", (box,), ())))
        found = [text.text or "" for text in root.iter(f"{SVG}text")]

        assert (shown, letters == 48) == (max(map(len, found)), name in found)

    def test_a_title_wider_than_all_else(self) -> None:
        box = Box("x", 1, "Map", "compute", "x.py:1", None)
        root = ET.fromstring(svg(Picture("t" * 100, (box,), ())))
        (frame,) = (each for each in root.iter(f"{SVG}g") if "transform" in each.attrib)

        # A letter is 0.61 of 15 pixels wide; 16 pixels are on either side.
        assert "947" == root.attrib["width"]
        found = re.fullmatch(r"translate\((.*) 62.0\)", frame.attrib["transform"])
        assert found is not None
        (rect, *_) = frame.iter(f"{SVG}rect")
        middle = float(rect.attrib["x"]) + float(rect.attrib["width"]) / 2
        assert 947 / 2 == pytest.approx(float(found[1]) + middle, abs=0.2)

    def test_an_arrow_of_no_length(self) -> None:
        point = (5.0, 9.0)
        drawn = arrow([(point, point, point, point)], LINE)

        assert '<polygon points="5.0 9.0 8.0 2.0 2.0 2.0" ' in drawn

    def test_dark(self) -> None:
        text = svg(simplified())
        (sheet,) = (each.text or "" for each in ET.fromstring(text).iter(f"{SVG}style"))
        by_browser, _, by_notebook = sheet.partition("}}")

        assert by_browser.startswith("@media (prefers-color-scheme:dark){")
        for name in set(re.findall(r'class="(\w[\w-]*)" (?:fill|stroke)=', text)):
            assert f" .{name}{{" in by_browser
            assert f" .{name}{{" in by_notebook

    def test_special_letters(self) -> None:
        box = Box("a<b>&c", 1, "Map", "compute", "x.py:1", None)
        root = ET.fromstring(svg(Picture("<&>", (box,), ())))

        assert {"a<b>&c", "<&>"} <= {text.text for text in root.iter(f"{SVG}text")}


def parsed_dot(text: str) -> tuple[set[str], list[tuple[str, str, str]]]:
    nodes, edges = set(), []
    label = r'"(?:[^"\\]|\\.)*"'
    lines = text.splitlines()
    assert re.fullmatch(rf"digraph {label} {{", lines[0])
    assert "}" == lines[-1]
    for line in lines[3:-1]:
        if found := re.fullmatch(rf"  (n\d+) -> (n\d+) \[label=({label})\];", line):
            edges.append((found[1], found[2], found[3]))
        else:
            node = re.fullmatch(rf'  (n\d+) \[label={label}, fillcolor="#[0-9a-f]+"\];', line)
            assert node is not None, line
            nodes.add(node[1])
    return nodes, edges


class TestLanguages:
    def test_dot(self) -> None:
        picture = simplified()
        nodes, edges = parsed_dot(dot(picture))

        assert {f"n{number}" for number in range(len(picture.boxes))} == nodes
        assert [(f"n{a.source}", f"n{a.target}") for a in picture.arrows] == [
            (source, target) for source, target, _ in edges
        ]
        assert '"[ceil(D_selectors_1[0..1]/4), 4] of 4x64 x2"' in {label for *_, label in edges}

    def test_dot_in_a_parser(self) -> None:
        picture = picture_of(elaborate(wired("moe", model="tiny", batch=16)))
        (graph,) = pydot.graph_from_dot_data(dot(picture)) or []

        assert len(picture.arrows) == len(graph.get_edges())
        assert {f"n{number}" for number in range(len(picture.boxes))} <= {
            node.get_name() for node in graph.get_nodes()
        }

    def test_quotes(self) -> None:
        box = Box('a"b\\c', 1, "Map", "compute", "x.py:1", None)

        assert ({"n0"}, []) == parsed_dot(dot(Picture('p"q', (box,), ())))

    def test_mermaid(self) -> None:
        picture = simplified()
        first, *lines = mermaid(picture).splitlines()

        assert "flowchart TD" == first
        boxes = [line for line in lines if re.fullmatch(r'  n\d+\["[^"\[\](){}]*"\]:::\w+', line)]
        arrows = [
            line for line in lines if re.fullmatch(r'  n\d+ -->\|"[^"\[\](){}]*"\| n\d+', line)
        ]
        assert (len(picture.boxes), len(picture.arrows)) == (len(boxes), len(arrows))
        assert 3 == sum(line.startswith("  classDef ") for line in lines)
        assert len(lines) == len(boxes) + len(arrows) + 3


def by_hand(*, measured: bool = False) -> Picture:
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
            shares(number) if measured else None,
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


class TestGolden:
    @pytest.mark.parametrize(("name", "measured"), [("by_hand", False), ("by_hand_measured", True)])
    @pytest.mark.parametrize(("suffix", "draw"), [("svg", svg), ("dot", dot), ("mmd", mermaid)])
    def test_by_hand(
        self,
        name: str,
        measured: bool,
        suffix: str,
        draw: Callable[[Picture], str],
        golden: Callable[[str, str], None],
    ) -> None:
        golden(f"{name}.{suffix}", draw(by_hand(measured=measured)))

    def test_program(self, golden: Callable[[str, str], None]) -> None:
        golden("simplified_moe.svg", svg(simplified()))


class TestCommand:
    PROGRAM = str(PROGRAMS / "simplified_moe.py")

    @pytest.mark.parametrize(
        ("file", "start"), [("x.svg", "<svg "), ("x.dot", "digraph "), ("x.mmd", "flowchart ")]
    )
    def test_files(self, capsys: pytest.CaptureFixture[str], file: str, start: str) -> None:
        status = main(["graph", self.PROGRAM, "-o", file, "-p", "experts=3"])

        assert 0 == status
        assert f"38 operators in 18 boxes, drawn in {file}\n" == capsys.readouterr().out
        assert Path(file).read_text(encoding="utf-8").startswith(start)

    def test_unknown_language(self, capsys: pytest.CaptureFixture[str]) -> None:
        status = main(["graph", self.PROGRAM, "-o", "x.png"])

        assert 2 == status
        assert capsys.readouterr().err.endswith(
            "'x.png': expected a name that ends in .svg, .dot or .mmd\n"
        )

    def test_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert 0 == main(["run", self.PROGRAM])
        assert 0 == main(["graph", self.PROGRAM, "--run", LOG, "-o", "x.svg"])
        text = Path("x.svg").read_text(encoding="utf-8")
        counters = json.loads(Path(LOG, "counters.json").read_text())
        cycles = json.loads(Path(LOG, "report.json").read_text())["cycles"]
        maps = [unit for unit in counters["units"] if unit["name"] in ("matmul_1", "matmul_2")]
        busy = sum(unit["busy_cycles"] for unit in maps) / 2 / cycles

        assert f"<title>busy: {100 * busy:.1f} %</title>" in text
        assert "<title>HBM: " in text
        assert [channel["elements"] for channel in counters["channels"]] == [
            channel["expected_elements"] for channel in counters["channels"]
        ]
        capsys.readouterr()

    def test_shares(self) -> None:
        plan = elaborate(wired("simplified_moe"))
        causes = ("busy", "empty", "full", "credit", "hbm", "capacity", "idle")
        cycles = {f"{cause}_cycles": number for number, cause in enumerate(causes, 2)}
        units = [{"name": node.name, **cycles} for node in plan.nodes]
        Path("counters.json").write_text(json.dumps({"units": units}), encoding="utf-8")
        parts = {"BUSY": 2, "EMPTY": 3, "FULL": 4 + 5, "HBM": 6, "CAPACITY": 7, "IDLE": 8}

        for found in shares_of_run(Path(), plan).values():
            assert {cause.name: share * 35 for cause, share in found.items()} == pytest.approx(
                parts
            )

    def test_no_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        status = main(["graph", self.PROGRAM, "--run", "nowhere", "-o", "x.svg"])

        assert 2 == status
        assert (
            "fabric: nowhere/counters.json: --run nowhere: No such file or directory: expected the "
            "folder of a finished run\n"
        ) == capsys.readouterr().err

    @pytest.mark.parametrize(
        "content",
        [
            "[" * 100_000,
            "{}",
            "[]",
            '{"units": 3}',
            '{"units": [{}]}',
            '{"units": [{"name": []}]}',
            "\udcff",
        ],
    )
    def test_damaged_run(self, content: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert 0 == main(["run", self.PROGRAM])
        capsys.readouterr()
        counters = Path(LOG, "counters.json")
        counters.write_bytes(content.encode("utf-8", "surrogateescape"))

        assert 2 == main(["graph", self.PROGRAM, "--run", LOG, "-o", "x.svg"])
        assert "not the counters of a run: expected what `run` writes" in capsys.readouterr().err

    def test_another_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert 0 == main(["run", self.PROGRAM])
        capsys.readouterr()
        status = main(["graph", self.PROGRAM, "-p", "experts=3", "-o", "x.svg", "--run", LOG])

        assert 2 == status
        assert capsys.readouterr().err.endswith(
            "the run has no operator flatten_7: expected a run of this program with the same "
            "parameters\n"
        )

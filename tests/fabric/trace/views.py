from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceMessage
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from vcdvcd import VCDVCD

from tests.fabric.trace.page_data import page_data, transfers_of, waits_of

CAUSES: Final[tuple[str, ...]] = ("empty", "full", "hbm", "capacity")
_COLUMNS: Final = {
    "busy": "busy", "empty": "empty", "full": "full", "HBM": "hbm", "capacity": "capacity",
    "idle": "idle",
}  # fmt: skip

Command = Callable[..., str]


class Seen(NamedTuple):
    status: str | None = None
    cycles: int | None = None
    columns: dict[str, dict[str, int]] | None = None
    waits: dict[str, dict[str, int]] | None = None
    still: dict[str, str] | None = None
    since: dict[str, int] | None = None
    finished: set[str] | None = None
    elements: dict[str, int] | None = None
    held: dict[str, int] | None = None
    shares: dict[str, str] | None = None
    most: list[str] | None = None
    moved_bytes: int | None = None
    verdict: str | None = None


def _report(folder: Path, _call: Command) -> Seen | None:
    if not (folder / "counters.json").exists():
        return None
    report = json.loads((folder / "report.json").read_text("utf-8"))
    counters = json.loads((folder / "counters.json").read_text("utf-8"))
    if not counters["units"]:
        return Seen(status=report["status"])
    columns = {}
    for unit in counters["units"]:
        cycles = {name: unit[f"{name}_cycles"] for name in ("busy", *CAUSES, "idle")}
        cycles["full"] += unit["credit_cycles"]
        columns[unit["name"]] = _kept(cycles)
    cycles = report["cycles"]
    shares = {unit: _share(each.get("busy", 0), cycles) for unit, each in columns.items()}
    return Seen(
        status=report["status"],
        cycles=report["cycles"],
        columns=columns,
        elements={each["name"]: each["elements"] for each in counters["channels"]},
        shares=shares,
        most=_most({unit: shares[unit] for unit, each in columns.items() if "busy" in each}),
        moved_bytes=report["hbm_bytes_moved"],
    )


def _text(folder: Path, _call: Command) -> Seen | None:
    text = (folder.parent / "report.txt").read_text("utf-8")
    if "\nBusiest units" not in text:
        return None
    cycles = re.search(r"^cycles +([\d,]+)$", text, re.MULTILINE)
    moved = re.search(r"^moved by the HBM +([\d,]+)", text, re.MULTILINE)
    assert cycles is not None
    assert moved is not None
    table = text.split("\nBusiest units")[1].split("\n\n")[0].splitlines()[1:]
    rows = _table(table)
    return Seen(
        status=re.split(r"[ ,]", text.splitlines()[1])[0],
        cycles=_number(cycles[1]),
        shares={row["unit"]: row["busy"] for row in rows},
        most=[row["busy"] for row in rows][:5],
        moved_bytes=_number(moved[1]),
    )


def _summary(folder: Path, call: Command) -> Seen:
    text = call("trace", "summary", folder, "--unfold")
    match = re.search(r"^(\w+)\b.* in \w+ mode, ([\d,]+) cycles?$", text, re.MULTILINE)
    moved = re.search(r"^bytes of the HBM +([\d,]+)$", text, re.MULTILINE)
    assert match is not None
    assert moved is not None
    return Seen(status=match[1], cycles=_number(match[2]), moved_bytes=_number(moved[1]))


def _stalls(folder: Path, call: Command) -> Seen:
    text = call("trace", "stalls", folder, "--rows", 10_000, "--unfold")
    match = re.search(r"each row sums to ([\d,]+) cycles?", text)
    assert match is not None
    columns = {
        row["unit"]: _kept(
            {_COLUMNS[title]: _number(row[title]) for title in row.keys() & _COLUMNS}
        )
        for row in _table(text[match.end() :].split("\n\n")[0].splitlines()[1:])
    }
    verdict = text.partition("\n")[0]
    return Seen(cycles=_number(match[1]), columns=columns, verdict=verdict)


def _show(folder: Path, call: Command) -> Seen:
    last = _cycles(folder, call)
    text = call("trace", "show", folder, "--at", last)
    units, channels = text.split("\n\n")[:2]
    still, since, finished = {}, {}, set()
    for row in _table(units.splitlines()[1:]):
        if row["is"] == "idle, at its end":
            finished.add(row["unit"])
        doing, _, to_the_end = row["is"].partition(", to the end of the run")
        if doing != row["is"]:
            assert not to_the_end
            still[row["unit"]], since[row["unit"]] = _cause(doing), _number(row["since"])
    rows = _table(channels.splitlines()[1:])
    held = Counter({row["channel"]: _number(row["held"].partition("/")[0]) for row in rows})
    return Seen(still=still, since=since, finished=finished, held=dict(+held))


def _query(folder: Path, call: Command) -> Seen:
    def rows(sql: str) -> list[dict[str, str]]:
        return _table(call("trace", "query", folder, sql).splitlines())

    (run,) = rows("SELECT status, cycles FROM run")
    columns: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in rows("SELECT name, busy_cycles FROM states JOIN units USING (unit)"):
        columns[row["name"]] = _kept({"busy": _number(row["busy_cycles"])})
    for row in rows(
        "SELECT name, cause, sum(cycles)::BIGINT AS cycles FROM waits JOIN units USING (unit) "
        "WHERE cycles > 0 GROUP BY ALL"
    ):
        columns[row["name"]][row["cause"]] = _number(row["cycles"])
    cycles = _number(run["cycles"])
    for unit, spent in columns.items():
        columns[unit] = spent | _kept({"idle": cycles - sum(spent.values())})
    still = rows(
        "SELECT name, cause, start_cycle, end_cycle FROM waits JOIN units USING (unit) WHERE open"
    )
    assert {run["cycles"]} >= {row["end_cycle"] for row in still}
    per_channel = rows(
        "SELECT name, count(taken_cycle) FILTER (NOT bare) AS elements, "
        "count(*) FILTER (sent_cycle IS NOT NULL AND taken_cycle IS NULL) AS held "
        "FROM channels LEFT JOIN transfers USING (channel) GROUP BY ALL"
    )
    busiest = [
        row
        for row in _table(call("trace", "query", folder, "utilisation", "--unfold").splitlines())
        if _number(row["busy_cycles"])
    ]
    (moved,) = rows("SELECT coalesce(sum(bytes), 0)::BIGINT AS bytes FROM bursts")
    ended = rows("SELECT name, finished FROM states JOIN units USING (unit)")
    return Seen(
        status=run["status"],
        cycles=cycles,
        columns=dict(columns),
        still={row["name"]: row["cause"] for row in still},
        since={row["name"]: _number(row["start_cycle"]) for row in still},
        finished={row["name"] for row in ended if row["finished"] == "yes"},
        elements={row["name"]: _number(row["elements"]) for row in per_channel},
        held={row["name"]: _number(row["held"]) for row in per_channel if row["held"] != "0"},
        shares={row["unit"]: row["busy_percent"] for row in busiest},
        most=[row["busy_percent"] for row in busiest][:5],
        moved_bytes=_number(moved["bytes"]),
    )


def _page(folder: Path, call: Command) -> Seen:
    call("trace", "report", folder, "-o", folder / "run.html")
    data = page_data((folder / "run.html").read_text("utf-8"))
    units, run = data["units"], data["run"]
    columns = {
        name: _kept({cause: units[cause][unit] for cause in ("busy", *CAUSES, "idle")})
        for unit, name in enumerate(units["name"])
    }
    waits: defaultdict[str, Counter[str]] = defaultdict(Counter)
    still, since, held = {}, {}, {}
    for unit, name in enumerate(units["name"]):
        waits_of_unit = waits_of(data, unit)
        assert waits_of_unit is not None
        for start, end, _, cause, _channel in waits_of_unit:
            waits[name][cause] += end - start
        if units["still"][unit]:
            still[name], since[name] = waits_of_unit[-1][3], waits_of_unit[-1][0]
    elements = {}
    for channel, name in enumerate(data["channels"]["name"]):
        moves = transfers_of(data, channel)
        assert moves is not None
        elements[name] = sum(taken is not None and not bare for _, taken, _, bare, *_ in moves)
        assert elements[name] == data["channels"]["elements"][channel]
        held[name] = sum(taken is None for _, taken, *_ in moves)
    assert {name: kept for name, each in waits.items() if (kept := _kept(each))} == {
        name: each
        for name, spent in columns.items()
        if (each := {cause: cycles for cause, cycles in spent.items() if cause in CAUSES})
    }
    return Seen(
        status=re.split(r"[ ,]", run["ran"])[0],
        cycles=run["cycles"],
        columns=columns,
        still=still,
        since=since,
        elements=elements,
        held=_kept(held),
        moved_bytes=sum(data["memory"]["moved"]) if data["memory"] else 0,
        verdict=run["verdict"],
    )


def _vcd(folder: Path, call: Command) -> Seen:
    file = folder / "run.vcd"
    call("trace", "export", folder, "--vcd", "-o", file)
    text = file.read_text("ascii")
    states = dict(re.findall(r"(\d) (\w+)", text.split("state of a unit: ")[1].split("$end")[0]))
    last = int(re.findall(r"^#(\d+)$", text, re.MULTILINE)[-1])
    dump = VCDVCD(str(file))
    columns, still, since, held = {}, {}, {}, {}
    for signal in dump.signals:
        _, kind, name = signal.split("[")[0].split(".")
        changes = [(cycle, int(value, 2)) for cycle, value in dump[signal].tv]
        if kind == "held":
            held[name] = changes[-1][1]
            continue
        ends = [cycle for cycle, _ in changes[1:]] + [last]
        spent: Counter[str] = Counter()
        for (cycle, value), end in zip(changes, ends, strict=True):
            spent[states[str(value)]] += end - cycle
        columns[name] = dict(+spent)
        cycle, value = changes[-1]
        if states[str(value)] in CAUSES:
            still[name], since[name] = states[str(value)], cycle
    readers = {each.replace(".", "_"): name for each, name in _readers(folder, call).items()}
    return Seen(
        cycles=last,
        columns=columns,
        still=still,
        held={readers[name]: level for name, level in held.items() if level},
    )


def _perfetto(folder: Path, call: Command) -> Seen:
    file = folder / "run.perfetto"
    call("trace", "export", folder, "--perfetto", "-o", file)
    message: Any = TraceMessage()
    message.ParseFromString(file.read_bytes())
    tracks = {
        packet.track_descriptor.uuid: packet.track_descriptor
        for packet in message.packet
        if packet.HasField("track_descriptor")
    }
    group = {
        uuid: tracks[t.parent_uuid].name if t.parent_uuid else "" for uuid, t in tracks.items()
    }
    spent: defaultdict[str, Counter[str]] = defaultdict(Counter)
    began: dict[int, tuple[int, str]] = {}
    still, since, held, moved = {}, {}, {}, 0
    ran = ("", 0)
    for packet in message.packet:
        event, cycle = packet.track_event, packet.timestamp
        if not packet.HasField("track_event"):
            continue
        uuid = event.track_uuid
        name, _, _ = tracks[uuid].name.partition(" (")
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            began[uuid] = cycle, event.name
        elif event.type == TrackEvent.TYPE_SLICE_END:
            start, title = began.pop(uuid)
            if group[uuid] == "units":
                spent[name][_cause(title)] += cycle - start
            else:
                ran = title, cycle - start
        elif event.type == TrackEvent.TYPE_INSTANT and not event.terminating_flow_ids:
            match = re.search(r", since ([\d,]+), when the run stopped$", event.name)
            assert match is not None
            still[name], since[name] = _cause(event.name), _number(match[1])
        elif name.startswith("HBM: "):
            moved += event.counter_value
        elif event.type == TrackEvent.TYPE_COUNTER:
            held[name] = event.counter_value
    status, _, cycles = ran[0].partition(", ")
    assert not ran[0] or cycles == f"{ran[1]:,} cycle{'s' * (ran[1] != 1)}"
    units = [t.name.partition(" (")[0] for uuid, t in tracks.items() if group[uuid] == "units"]
    columns = {unit: dict(+spent[unit]) for unit in units}
    for unit, spent_on in columns.items():
        columns[unit] = spent_on | _kept({"idle": ran[1] - sum(spent_on.values())})
    return Seen(
        status=status or None,
        cycles=ran[1],
        columns=columns,
        still=still,
        since=since,
        held=_kept(held),
        moved_bytes=moved,
    )


def _csv(folder: Path, call: Command) -> Seen:
    file = folder / "run.csv"
    call("trace", "export", folder, "--csv", "-o", file)
    elements = dict.fromkeys(_readers(folder, call).values(), 0)
    held: Counter[str] = Counter()
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            elements[row["channel"]] += bool(row["taken_cycle"]) and row["bare"] == "false"
            held[row["channel"]] += not row["taken_cycle"]
    return Seen(elements=elements, held=dict(+held))


def _json_lines(folder: Path, call: Command) -> Seen:
    file = folder / "run.jsonl"
    call("trace", "export", folder, "--jsonl", "-o", file)
    elements = dict.fromkeys(_readers(folder, call).values(), 0)
    waits: defaultdict[str, Counter[str]] = defaultdict(Counter)
    held: Counter[str] = Counter()
    still, since, moved = {}, {}, 0
    for line in file.read_text("utf-8").splitlines():
        event = json.loads(line)
        kind = event["event"]
        producer, _, consumer = (
            each.rpartition(".")[0] for each in re.split(" (->) ", event.get("channel") or ". -> .")
        )
        if kind in ("transfer", "held"):
            elements[event["channel"]] += kind == "transfer" and not event["bare"]
            held[event["channel"]] += kind == "held"
            waits[producer]["full"] += event["send_wait_cycles"]
            waits[consumer]["empty"] += event["receive_wait_cycles"]
        elif kind == "burst":
            moved += event["bytes"]
            waits[event["unit"]]["hbm"] += event["cycle"] - event["submitted_cycle"]
        elif kind == "open_wait":
            moved += event["bytes"]
            still[event["unit"]], since[event["unit"]] = event["cause"], event["start_cycle"]
            waits[event["unit"]][event["cause"]] += event["cycle"] - event["start_cycle"]
        else:
            cause = {"end": "empty", "idle": "empty", "reserve": "full", "allocate": "capacity"}
            waits[event["unit"]][cause[kind]] += event["wait_cycles"]
    return Seen(
        waits={unit: dict(+cycles) for unit, cycles in waits.items() if any(cycles.values())},
        still=still,
        since=since,
        elements=elements,
        held=dict(+held),
        moved_bytes=moved,
    )


VIEWS: Final[dict[str, Callable[[Path, Command], Seen | None]]] = {
    "run --json": _report,
    "run": _text,
    "trace summary": _summary,
    "trace stalls": _stalls,
    "trace show": _show,
    "trace query": _query,
    "trace report": _page,
    "trace export --vcd": _vcd,
    "trace export --perfetto": _perfetto,
    "trace export --csv": _csv,
    "trace export --jsonl": _json_lines,
}


def _cycles(folder: Path, call: Command) -> int:
    return _number(call("trace", "query", folder, "SELECT cycles FROM run").splitlines()[1])


def _readers(folder: Path, call: Command) -> dict[str, str]:
    rows = _table(call("trace", "query", folder, "SELECT reader, name FROM channels").splitlines())
    return {row["reader"]: row["name"] for row in rows}


def _table(lines: list[str]) -> list[dict[str, str]]:
    head = lines[0]
    titles = [
        (match.start(), match.end(), match[0]) for match in re.finditer(r"\S+(?: \S+)*", head)
    ]
    rows = []
    for line in lines[1:]:
        cells: dict[str, str] = {title: "" for _, _, title in titles}
        for match in re.finditer(r"\S+(?: \S+)*", line):
            # The title of a column overlaps its cells, whichever way they are aligned.
            over = [t for start, end, t in titles if match.start() < end and start < match.end()]
            assert len(over) == 1, (head, line)
            cells[over[0]] = match[0]
        rows.append(cells)
    return rows


def _cause(title: str) -> str:
    return next(cause for words, cause in _COLUMNS.items() if title.startswith(words))


def _most(shares: dict[str, str]) -> list[str]:
    return sorted(shares.values(), key=float, reverse=True)[:5]


def _kept(cycles: dict[str, int]) -> dict[str, int]:
    return {name: int(each) for name, each in cycles.items() if each}


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "0.0"


def _number(text: str) -> int:
    return int(text.replace(",", ""))

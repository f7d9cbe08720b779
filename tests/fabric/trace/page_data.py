"""What a page of ``trace report`` has inside, unpacked and put into words.

Nothing of ``fabric`` computes here.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator

# Any: what is inside is JSON.
from typing import Any

import numpy as np

__all__ = ["page_data", "told", "transfers_of", "waits_of"]

Data = dict[str, Any]


def page_data(page: str) -> Data:
    """Return the figures of a page, with its columns as arrays."""
    found = re.search(r'<script type="application/octet-stream" id="data">([^<]*)</script>', page)
    assert found is not None
    raw = zlib.decompress(base64.b64decode(found[1]))
    end = 4 + int.from_bytes(raw[:4], "little")
    data: Data = json.loads(raw[4:end])
    for name, about in data["columns"].items():
        count, size = about["count"], about["bytes"]
        planes = np.frombuffer(raw, np.uint8, count * size, end).reshape(size, count)
        data["columns"][name] = sum(
            (plane.astype(np.int64) << 8 * place for place, plane in enumerate(planes)),
            np.zeros(count, np.int64),
        )
        end += count * size
    assert end == len(raw)
    return data


def waits_of(data: Data, unit: int) -> list[tuple[int, int, int, str, int | None]] | None:
    """Return start, end, when what ended it set out, cause and channel; None if left out."""
    rows = _rows(data, "wait", data["detail"]["waits"], unit)
    if rows is None:
        return None
    ends = data["channels"]
    inputs = [channel for channel, reader in enumerate(ends["consumer"]) if reader == unit]
    outputs = [channel for channel, writer in enumerate(ends["producer"]) if writer == unit]
    ports: list[tuple[str, int | None]] = [
        *(("empty", channel) for channel in inputs),
        *(("full", channel) for channel in outputs),
        *((data["causes"][cause]["id"], None) for cause in data["waits"]),
    ]
    found, cycle = [], data["detail"]["origin"]
    for gap, cycles, way, port in zip(
        rows["gap"], rows["cycles"], rows["way"], rows["port"], strict=True
    ):
        start = cycle + gap
        cycle = start + cycles
        found.append((start, cycle, cycle - way, *ports[port]))
    return found


def transfers_of(
    data: Data, channel: int
) -> list[tuple[int, int | None, int, bool, int, int]] | None:
    """Return sent, taken, stop, bare, and both waits of each element; None if left out."""
    rows = _rows(data, "transfer", data["detail"]["transfers"], channel)
    if rows is None:
        return None
    sent = (data["detail"]["origin"] + np.cumsum(rows["gap"])).tolist()
    return [
        (begin, begin + held - 1 if held else None, stop // 2, bool(stop % 2), send, receive)
        for begin, held, stop, send, receive in zip(
            sent, *(rows[name] for name in ("held", "stop", "send_wait", "receive_wait")),
            strict=True,
        )
    ]  # fmt: skip


def _rows(data: Data, table: str, counts: list[int | None], owner: int) -> Data | None:
    if counts[owner] is None:
        return None
    begin = sum(count or 0 for count in counts[:owner])
    end = begin + (counts[owner] or 0)
    return {
        name.partition(".")[2]: column[begin:end].tolist()
        for name, column in data["columns"].items()
        if name.startswith(f"{table}.")
    }


def told(data: Data) -> Iterator[str]:
    """Yield lines about all that is in the page, for people; where boxes are of small graphs."""
    for title in ("run", "causes", "left_out", "memory", "detail", "stages", "help"):
        yield f"# {title}"
        yield from _items(data[title])
    for graph in data["graphs"]:
        yield f"# {graph['title']}"
        yield from (f"{box['title']}: {box['units']}" for box in graph["boxes"])
        for arrow in graph["arrows"]:
            start, end = (graph["boxes"][each]["title"] for each in arrow["ends"])
            yield f"{start} to {end}: {arrow['channels']}"
        if len(graph["boxes"]) < 10:
            yield from _places(graph)
    yield "# units"
    for unit in range(len(data["units"]["name"])):
        yield from _unit(data, unit)
    yield "# channels"
    for channel in range(len(data["channels"]["name"])):
        yield from _channel(data, channel)
    yield "# roots"
    yield from _roots(data)


def _places(graph: Data) -> Iterator[str]:
    """Yield how large a graph is, and where its boxes and arrows are."""
    yield f"size {graph['size']}"
    for box in graph["boxes"]:
        texts = ", ".join(map(repr, (box["large"], box["small"])))
        yield f"  {box['title']}, {box['size']} at {box['at']}: {texts}"
    for arrow in graph["arrows"]:
        yield f"  {arrow['ends']}, {arrow['label']!r} at {arrow['at']}: {arrow['curves']}"


def _unit(data: Data, unit: int) -> Iterator[str]:
    yield _row(data["units"], unit, "ranked")
    yield "  waited for: " + ", ".join(
        f"{data['roots'][root]['name']} {cycles}"
        for root, cycles in data["charged_by_unit"].get(str(unit), [])
    )
    for start, end, until, cause, channel in waits_of(data, unit) or []:
        where = "" if channel is None else f" at {data['channels']['name'][channel]}"
        yield f"  {start} to {end}, until {until}: {cause}{where}"


def _channel(data: Data, channel: int) -> Iterator[str]:
    yield _row(data["channels"], channel)
    for sent, taken, stop, bare, send, receive in transfers_of(data, channel) or []:
        yield f"  {sent} to {taken}, stop {stop}{' bare' * bare}, waits {send} and {receive}"


def _roots(data: Data) -> Iterator[str]:
    names = [root["name"] for root in data["roots"]]
    for root in data["roots"]:
        state = data["causes"][root["state"]]["id"]
        yield f"{root['name']}: {state}, {root['family']}, {root['units']} stalled"
    for title in ("charged", "path"):
        yield from (f"{title}: {cycles} through {names[root]}" for root, cycles in data[title])
    for start, end, root, share in data["phases"]:
        yield f"{start} to {end}: {share} % through {names[root]}"
    steps = (data["columns"][f"step.{name}"] for name in ("cycles", "root"))
    yield from (
        f"step: {cycles} through {names[root]}" for cycles, root in zip(*steps, strict=True)
    )


def _row(table: Data, number: int, *others: str) -> str:
    figures = (
        f"{title} {column[number]}"
        for title, column in table.items()
        if title not in ("name", *others)
    )
    return f"{table['name'][number]}: {', '.join(figures)}"


def _items(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield f"{name}: {json.dumps(each, ensure_ascii=False)}"
    elif isinstance(value, list):
        for each in value:
            yield json.dumps(each, ensure_ascii=False)

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

import numpy as np

Data = dict[str, Any]


def page_data(page: str) -> Data:
    match = re.search(r'<script type="application/octet-stream" id="data">([^<]*)</script>', page)
    assert match is not None
    raw = zlib.decompress(base64.b64decode(match[1]))
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
    transfers, cycle = [], data["detail"]["origin"]
    for gap, cycles, way, port in zip(
        rows["gap"], rows["cycles"], rows["way"], rows["port"], strict=True
    ):
        start = cycle + gap
        cycle = start + cycles
        transfers.append((start, cycle, cycle - way, *ports[port]))
    return transfers


def transfers_of(
    data: Data, channel: int
) -> list[tuple[int, int | None, int, bool, int, int]] | None:
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

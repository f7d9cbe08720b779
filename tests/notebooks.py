"""Executes notebooks of tests, and returns what their cells show.

``python -m tests.notebooks`` executes ``programs/tour.ipynb`` and stores its outputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

TOUR: Final = Path(__file__).parents[1] / "programs" / "tour.ipynb"

# Any: nbformat's notebooks are dictionaries.
Notebook = Any

_OF_THE_HOST: Final = ("metadata", "execution_count")


def executed(*cells: str) -> Notebook:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    return _run(notebook)


def outputs(notebook: Notebook) -> list[list[dict[str, Any]]]:
    return [
        [
            {name: value for name, value in _portable(output).items() if name not in _OF_THE_HOST}
            for output in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def stored(notebook: Notebook) -> Notebook:
    _run(notebook)
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            output.update(_portable(output))
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def store() -> None:
    notebook = stored(nbformat.read(TOUR, as_version=4))
    TOUR.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def page(notebook: Notebook, theme: Literal["light", "dark"]) -> str:
    body, _ = HTMLExporter(theme=theme).from_notebook_node(notebook)
    return str(body)


def _portable(output: Notebook) -> dict[str, Any]:
    """Return ``output`` without the text beside its HTML, which has addresses and folders."""
    data = output.get("data", {})
    if "text/html" not in data:
        return dict(output)
    kept = {kind: value for kind, value in data.items() if kind != "text/plain"}
    return {**output, "data": kept}


def _run(notebook: Notebook) -> Notebook:
    NotebookClient(notebook, timeout=300, kernel_name="python3", record_timing=False).execute()
    return notebook


if __name__ == "__main__":
    store()

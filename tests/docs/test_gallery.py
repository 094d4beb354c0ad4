"""The notebooks of the gallery run, as a reader would run them, and their page lists all of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs pip install 'physdiffuser[notebooks]'")
nbclient = pytest.importorskip("nbclient", reason="needs pip install 'physdiffuser[notebooks]'")
pytest.importorskip("ipykernel", reason="needs pip install 'physdiffuser[notebooks]'")

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "gallery").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem == "cluster":
        pytest.importorskip("distributed", reason="needs pip install 'physdiffuser[dask]'")
    folder = tmp_path / "docs" / "gallery"
    folder.mkdir(parents=True)
    shutil.copytree(DOCS.parent / "examples", tmp_path / "examples")
    monkeypatch.setenv(
        "MPLBACKEND", os.environ.get("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    )
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code[-1].source.startswith("assert "), "a notebook ends with what it has shown"
    assert any(cell.outputs for cell in code)


def test_the_page_lists_every_notebook() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) >= 16
    assert [path.name for path in NOTEBOOKS if f"](gallery/{path.name})" not in page] == []

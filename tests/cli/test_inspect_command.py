"""`physdiffuser inspect`: what it writes, and what it refuses without writing anything."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "inspection"))

import itertools

from inspected_networks import BARRIER, SLICES, saved

from physdiffuser.cli import main
from physdiffuser.errors import FileError
from physdiffuser.inspection import page as folders
from physdiffuser.inspection.drawing.figures import Picture
from physdiffuser.inspection.networks import open_networks
from physdiffuser.inspection.page import Report, Table, html
from physdiffuser.io import output_folder

SMALL = ("--trajectories", "8", "--dpi", "50", "--quiet")


@pytest.fixture(name="table")
def _table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    values = rng.uniform(1.0, 4.0, (40, 3))
    values[:, 2] = values[:, 0] ** 2 / values[:, 1]
    path = tmp_path / "data.csv"
    np.savetxt(path, values, delimiter=",", header="<b>v</b>,omega,T", comments="")
    return path


@pytest.fixture(name="weights", scope="module")
def _weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("weights"))


class Page(HTMLParser):
    """What the page is made of."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, Any]]:
        return [attributes for name, attributes in self.tags if name == tag]


def check_page(folder: Path) -> Page:
    """The page is complete, self-contained, and can be read without seeing or pointing."""
    page = Page(folder / "inspection.html")
    images = page.all("img")
    files = sorted(path.name for path in folder.glob("*.png"))
    assert len(images) == len(files) > 0
    for image in images:
        assert image["src"].startswith("data:image/png;base64,") and len(image["alt"]) > 40
        assert int(image["width"]) > 100 and int(image["height"]) > 100
    assert not page.all("script") and not page.all("link") and not page.all("iframe")
    for _, attributes in page.tags:
        for name in ("src", "href"):
            target = attributes.get(name) or ""
            assert target == "" or target.startswith(("#", "data:")), "a request to elsewhere"
        assert not any(name.startswith("on") for name in attributes)
    policy = next(meta for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy["content"]
    assert any("width=device-width" in (meta.get("content") or "") for meta in page.all("meta"))
    assert page.all("html")[0]["lang"] == "en"
    anchors = {attributes.get("id") for _, attributes in page.tags}
    for link in page.all("a"):
        assert link["href"][1:] in anchors
    # What scrolls sideways on a phone can be reached and scrolled with a keyboard, and says its name.
    wide = [attributes for _, attributes in page.tags if attributes.get("class") == "wide"]
    assert len(wide) >= len(images)
    assert all(box["tabindex"] == "0" and box["role"] == "region" and box["aria-label"] for box in wide)
    # No picture is blown up far beyond its size on paper.
    sizes = [float(box["style"].split()[1][:-2]) for box in wide if box.get("style")]
    expected = [1.15 * int(image["width"]) / 50 for image in images]
    assert sizes == pytest.approx(expected, rel=0.02)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    for path in folder.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*files, "inspection.html", "inspection.json"]
    )
    return page


def test_a_table(
    table: Path,
    weights: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PHYSDIFFUSER_WEIGHTS", str(weights))
    out = tmp_path / "new" / "folder"
    columns = ("--columns", "omega,T", "--remask", "0.5")
    assert main(["inspect", str(table), *columns, "--out", str(out), *SMALL]) == 0
    said = capsys.readouterr()
    assert said.out == f"{out / 'inspection.html'}\n"
    assert said.err.count("\n") == 1 and "untrained" in said.err
    page = check_page(out)
    assert {path.stem for path in out.glob("*.png")} == {
        "encoder-block-1", "encoder-block-2", "encoder-reads", "encoder-rows", "encoder-pooling",
        "encoder-memory",
        "trajectory", "resolution-order", "denoiser-self", "denoiser-cross", "decoder-self", "decoder-cross",
    }  # fmt: skip
    assert "<b>v</b>" not in page.text and "&lt;b&gt;v&lt;/b&gt;" in page.text
    assert "drawn on omega and T" in page.text
    assert "UNTRAINED random weights" in page.text and "nothing was learned" in page.text
    numbers = json.loads((out / "inspection.json").read_text())
    assert numbers["columns"] == ["<b>v</b>", "omega", "T"] and len(numbers["reliance"]) == 2


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        (SLICES, {"encoder-reads", "slices-rows-1", "slices-rows-2", "slices-attention", "slices-cost"}),
        (BARRIER, {"bias-1", "bias-2", "bias-learned"}),
    ],
    ids=["physics-slice", "biased"],
)
def test_an_equation_with_another_attention(
    variant: dict[str, Any], expected: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = saved(tmp_path / "weights", **variant)
    monkeypatch.setattr("physdiffuser.inspection.drawing.slices_compared.COST_ROWS", (64, 256))
    monkeypatch.setenv("PHYSDIFFUSER_WEIGHTS", str(weights))
    out = tmp_path / "out"
    words = ["inspect", "--equation", "I.24.6", "--attention", str(variant["attention"]), "--rows", "40"]
    assert main([*words, "--out", str(out), *SMALL]) == 0
    page = check_page(out)
    assert expected | {"encoder-pooling", "trajectory"} <= {path.stem for path in out.glob("*.png")}
    assert f"UNTRAINED random weights, {variant['attention']} attention" in page.text


def test_other_numbers_of_slices_are_shown_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = saved(tmp_path / "weights", **SLICES)
    saved(tmp_path / "weights" / "few", tables=7, attention="physics-slice", options={"slices": 4})
    saved(tmp_path / "weights" / "none", attention="standard")
    monkeypatch.setattr("physdiffuser.inspection.drawing.slices_compared.COST_ROWS", (64, 256))
    monkeypatch.setenv("PHYSDIFFUSER_WEIGHTS", str(weights))
    out = tmp_path / "out"
    assert main(["inspect", "--equation", "I.24.6", "--rows", "40", "--out", str(out), *SMALL]) == 0
    page = check_page(out)
    names = {path.stem for path in out.glob("*.png")}
    assert {"slices-compared", "slices-rows-1", "slices-4-rows-1", "slices-4-attention"} <= names
    assert "The same rows with M = 4, 8 slices" in page.text
    assert "weights physics-slice (few), 7 tables seen, encoder " in page.text


def test_a_gate_beside_a_bias_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = saved(tmp_path / "weights", tables=9, attention="biased")
    saved(tmp_path / "weights" / "gated", tables=7, **BARRIER)
    monkeypatch.setenv("PHYSDIFFUSER_WEIGHTS", str(weights))
    out = tmp_path / "out"
    assert main(["inspect", "--equation", "I.24.6", "--rows", "40", "--out", str(out), *SMALL]) == 0
    page = check_page(out)
    names = {path.stem for path in out.glob("*.png")}
    assert {"bias-1", "bias-learned", "bias-gated-1", "bias-gated-2", "bias-gated-learned"} <= names
    assert "These weights have no gate (beta)." in page.text and "Learned strength and gate" in page.text
    assert "alpha began at 0.500" in page.text and "beta, gate: 0.000, 0.000" in page.text
    assert "weights biased (gated), 7 tables seen" in page.text


def test_generators_name_the_weights_they_come_from(tmp_path: Path) -> None:
    own = saved(tmp_path / "own", tables=500)
    encoder = saved(tmp_path / "taught", tables=20, **SLICES)
    description = json.loads((encoder / "model.json").read_text())
    for part in ("diffusion", "autoregressive"):
        (encoder / f"{part}.safetensors").unlink()
        total = json.loads((own / "model.json").read_text())["files"][f"{part}.safetensors"]
        del description["files"][f"{part}.safetensors"]
        description["files"][f"../own/{part}.safetensors"] = total
    (encoder / "model.json").write_text(json.dumps(description))
    networks = open_networks(weights=str(encoder))
    assert networks.label.startswith("weights physics-slice (taught), 20 tables seen, encoder ")
    assert networks.label_of("diffusion").startswith("weights own, 500 tables seen, diffusion ")
    assert networks.label_of("diffusion").endswith(networks.label.removeprefix("weights "))
    assert open_networks(weights=str(own)).label_of("diffusion") == open_networks(weights=str(own)).label


def test_a_suite(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHYSDIFFUSER_WEIGHTS", str(weights))
    out = tmp_path / "out"
    assert (
        main(["inspect", "--suite", "tiers", "--sample", "5", "--rows", "30", "--out", str(out), *SMALL]) == 0
    )
    check_page(out)
    assert {path.stem for path in out.glob("*.png")} >= {"entropy", "received", "tree", "own-column"}
    numbers = json.loads((out / "inspection.json").read_text())
    assert len(numbers["laws"]) == 5
    for part in ("denoiser self", "decoder cross"):
        assert set(numbers["entropy"][part]) == {
            "trivial",
            "simple",
            "moderate",
            "complex",
            "multi_step",
            "all",
        }
        middle, low, high = numbers["entropy"][part]["all"]["random"]
        assert 0.0 < low <= middle <= high <= 1.0
    assert len(numbers["tree"]["decoder"]["same distance"]["trained"]) == 4


REFUSED = [
    (["inspect"], 2, "name one thing"),
    (["inspect", "data.csv", "--suite", "tiers"], 2, "not TABLE and --suite"),
    (["inspect", "--equation", "I.24.66"], 2, "close are I.24.6"),
    (["inspect", "--equation", "einstien mass energy"], 2, "feynman_001"),
    (["inspect", "--suite", "feynman"], 2, "'feynman' is not one of"),
    (["inspect", "--suite", "tiers", "--columns", "a,b"], 2, "--columns says nothing about --suite"),
    (["inspect", "data.csv", "--noise", "0.1"], 2, "--noise says nothing about TABLE"),
    (["inspect", "data.csv", "--target", "omga"], 2, "omega"),
    (["inspect", "data.csv", "--columns", "omga,T"], 2, "did you mean 'omega'"),
    (["inspect", "data.csv", "--columns", "omega"], 2, "two columns"),
    (["inspect", "data.csv", "--remask", "2"], 2, "between 0 and 1"),
    (["inspect", "data.csv", "--attention", "biased"], 2, "no weights for the attention 'biased'"),
    (["inspect", "data.csv", "--attention", "standart"], 6, "did you mean 'standard'"),
    (["inspect", "wide.csv"], 3, "at most 9 with --inputs"),
    (["inspect", "flat.csv"], 3, "same in every row"),
    (["inspect", "short.csv"], 3, "rows"),
    (["inspect", "missing.csv"], 4, "missing.csv"),
]


@pytest.mark.parametrize(("words", "code", "message"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_cannot_be_done_is_one_message_and_no_file(
    words: list[str],
    code: int,
    message: str,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = table.parent
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PHYSDIFFUSER_WEIGHTS", raising=False)
    if "biased" in words:
        monkeypatch.setattr("physdiffuser.models.shipped.shipped", lambda: ("standard",))
    rng = np.random.default_rng(0)
    np.savetxt("wide.csv", rng.random((30, 12)), delimiter=",", header=",".join("abcdefghijkl"), comments="")
    Path("flat.csv").write_text("a,y\n" + "".join(f"{row},2\n" for row in range(9)))
    Path("short.csv").write_text("a,y\n1,2\n2,3\n")
    before = sorted(folder.iterdir())
    assert main([*words, "--out", "made/here"]) == code
    said = capsys.readouterr()
    assert said.out == "" and message in said.err
    lines = [line for line in said.err.splitlines() if line.startswith(("error:", "internal"))]
    assert len(lines) == 1 and "Traceback" not in said.err and "bug" not in said.err
    assert sorted(folder.iterdir()) == before


def test_a_folder_without_permission_is_refused_before_the_work(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*given: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    def work(*given: object) -> None:
        raise AssertionError("the work was begun")

    # Not by taking permissions away: root, as which containers run, may write everywhere.
    monkeypatch.setattr(output_folder.tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr("physdiffuser.cli.inspect._report", work)
    assert main(["inspect", str(table), "--out", str(table.parent / "out")]) == 4
    said = capsys.readouterr()
    assert "Permission denied" in said.err and "--out" in said.err and said.err.count("\n") == 1
    assert list(table.parent.iterdir()) == [table]


@pytest.mark.parametrize("where", ["file", "file/below", "/proc/nowhere"])
def test_a_place_that_cannot_be_a_folder(where: str, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (table.parent / "file").write_text("kept")
    assert main(["inspect", str(table), "--out", str(table.parent / where)]) == 4
    said = capsys.readouterr()
    assert "Choose a folder you can write to with --out" in said.err and said.out == ""
    assert (table.parent / "file").read_text() == "kept"
    assert sorted(path.name for path in table.parent.iterdir()) == ["data.csv", "file"]


def report() -> Report:
    pictures = [
        Picture(f"p{index}", "t", "c", "a", b"\x89PNG\r\n\x1a\n" + bytes(20), "S") for index in range(3)
    ]
    return Report(
        "<title>", {"a": "b"}, pictures, {"S": [Table("t", ("x",), (("1",),))]}, numbers={"n": float("nan")}
    )


@pytest.mark.parametrize("failing", [1, 3, 5])
def test_a_disk_that_fills_up_leaves_nothing_half_written(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    real = folders.write_bytes_atomic

    def full(path: Path, data: bytes) -> None:
        calls.append(1)
        if len(calls) == failing:
            raise FileError("cannot write: No space left on device")
        real(path, data)

    monkeypatch.setattr(folders, "write_bytes_atomic", full)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "p0.png").write_bytes(b"old")
    with pytest.raises(FileError, match="No space"):
        folders.write(report(), kept)
    assert [path.name for path in kept.iterdir()] == ["p0.png"] and (kept / "p0.png").read_bytes() == b"old"
    calls.clear()
    with pytest.raises(FileError, match="No space"):
        folders.write(report(), tmp_path / "made" / "below")
    assert not (tmp_path / "made").exists()


def test_pages_replace_pages_and_numbers_are_json(tmp_path: Path) -> None:
    for _ in range(2):
        paths = folders.write(report(), tmp_path / "out")
    assert paths[0].name == "inspection.html" and all(path.is_file() for path in paths) and len(paths) == 5
    assert json.loads((tmp_path / "out" / "inspection.json").read_text()) == {"n": None}
    assert "&lt;title&gt;" in html(report()) and "<title>&lt;title&gt;</title>" in html(report())


def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    output_folder.check_writable(tmp_path / "a" / "b")
    assert not list(tmp_path.iterdir())

"""Run the tutorials and write what they print and draw as pages.

    python docs/tutorials/render.py [NAME ...]       # all of them when none is named

A tutorial is a script in the percent format, which editors and Jupyter open as a notebook: `# %% [markdown]`
begins text, `# %%` begins code. The page NAME.md holds the text, the code and its output. The tables of
`examples/` are beside it when it runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
EXAMPLES = FOLDER.parents[1] / "examples"
MARK = "=====cell====="
_CELL = re.compile(r"^# %%(.*)\n", re.M)
# Put after each cell: ends its output, and saves the figures it drew.
_AFTER = """
print({mark!r}, {number}, flush=True)
if "matplotlib.pyplot" in __import__("sys").modules:
    from matplotlib import pyplot as _plots
    for _figure in _plots.get_fignums():
        _plots.figure(_figure).savefig(f"{name}-{number}-{{_figure}}.png", dpi=120)
    _plots.close("all")
"""


def scripts() -> list[Path]:
    """The tutorials, by name."""
    return sorted(path for path in FOLDER.glob("*.py") if path != Path(__file__).resolve())


def cells(path: Path) -> list[tuple[str, str]]:
    """Kind (`markdown` or `code`) and content of each cell."""
    parts = _CELL.split(path.read_text(encoding="utf-8"))[1:]
    found = []
    for kind, body in zip(parts[::2], parts[1::2], strict=True):
        if "[markdown]" in kind:
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.splitlines()]
            found.append(("markdown", "\n".join(lines).strip()))
        elif body.strip():
            found.append(("code", body.strip()))
    return found


def run(path: Path, folder: Path) -> dict[int, str]:
    """Run a tutorial in a folder; what each cell printed, by its number."""
    lines = []
    for number, (kind, content) in enumerate(cells(path)):
        if kind == "code":
            lines.append(content)
            lines.append(_AFTER.format(mark=MARK, number=number, name=path.stem))
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("plugins"))
    script = folder / path.name
    # `from __future__` would have to come first, so tutorials do without.
    script.write_text("\n".join(lines), encoding="utf-8")
    environment = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, script.name],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{path.name} failed\n{done.stdout}{done.stderr}")
    outputs, text = {}, done.stdout
    for match in re.finditer(rf"(.*?){MARK} (\d+)\n", text, re.S):
        outputs[int(match[2])] = match[1].rstrip()
    return outputs


def render(path: Path) -> None:
    """Write the page of a tutorial and its pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outputs = run(path, folder)
        for old in FOLDER.glob(f"{path.stem}-*.png"):
            old.unlink()
        page = []
        for number, (kind, content) in enumerate(cells(path)):
            if kind == "markdown":
                page.append(content)
                continue
            page.append(f"```python\n{content}\n```")
            if outputs.get(number):
                page.append(f"```text\n{outputs[number]}\n```")
            for picture in sorted(folder.glob(f"{path.stem}-{number}-*.png")):
                (FOLDER / picture.name).write_bytes(picture.read_bytes())
                page.append(f"![what the code above drew]({picture.name})")
    page.append(
        f"*This page is `docs/tutorials/{path.name}`, run by `python docs/tutorials/render.py {path.stem}`.*"
    )
    (FOLDER / f"{path.stem}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for one in scripts():
        if len(sys.argv) == 1 or one.stem in sys.argv[1:]:
            render(one)
            print(f"{one.stem}.md")

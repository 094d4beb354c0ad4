"""Make the picture of the README: a real run in a pseudo-terminal, its output drawn as SVG.

    python docs/make_picture.py [FILE.svg]

Nothing is edited by hand: what the program writes to standard output is what is drawn, in its
colours. Only POSIX systems have pseudo-terminals.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from html import escape
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "solve.svg"
TABLE = "examples/damped_oscillation.csv"
COLUMNS = 100
# Pixels.
CELL, LINE, MARGIN, BAR, FONT = 8.4, 19, 20, 34, 14
# What the program writes to style text, and how it is drawn.
STYLES = {
    "\x1b[0m": 'fill="#c9d1d9"',
    "\x1b[1m": 'fill="#ffffff" font-weight="bold"',
    "\x1b[2m": 'fill="#6e7681"',
    "\x1b[32m": 'fill="#7ee787"',
    "\x1b[33m": 'fill="#e3b341"',
    "\x1b[36m": 'fill="#56d4dd"',
}


def run() -> str:
    """What `physdiffuser solve TABLE` writes to a terminal, escape sequences and all."""
    terminal, other_end = pty.openpty()
    fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    environment |= {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:  # for the run folder
        (Path(folder) / TABLE).parent.mkdir()
        shutil.copy(ROOT / TABLE, Path(folder) / TABLE)
        program = subprocess.Popen(
            [sys.executable, "-m", "physdiffuser", "solve", TABLE],
            cwd=folder,
            stdout=other_end,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        os.close(other_end)
        pieces = []
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # Linux reports the closed other end as an error
                break
            if not piece:
                break
            pieces.append(piece)
        if program.wait() != 0:
            raise SystemExit(f"the run failed with exit code {program.returncode}")
    return b"".join(pieces).decode()


def cells(line: str) -> list[tuple[str, str]]:
    """Characters of a line, each with its attributes in SVG."""
    found, style = [], STYLES["\x1b[0m"]
    for sequence, character in re.findall(r"(\x1b\[[0-9;]*[A-Za-z])|(.)", line):
        if sequence and sequence not in STYLES:
            raise SystemExit(f"the picture cannot show the escape sequence {sequence!r}")
        if sequence:
            style = STYLES[sequence]
        else:
            found.append((character, style))
    return found


def svg(lines: list[str]) -> str:
    """The lines in a terminal window."""
    rows = [cells(line) for line in lines]
    width = 2 * MARGIN + CELL * COLUMNS
    height = BAR + 2 * MARGIN + LINE * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" '
        f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" '
        f'font-size="{FONT}">',
        f"<title>{escape(lines[0])}</title>",
        f'<rect width="{width:g}" height="{height}" rx="10" fill="#1b1f27"/>',
        *(
            f'<circle cx="{MARGIN + 20 * number}" cy="{BAR // 2 + 2}" r="6" fill="{colour}"/>'
            for number, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
    ]
    for number, row in enumerate(rows):
        y = BAR + MARGIN + LINE * (number + 0.7)
        column = 0
        for style, group in groupby(row, key=lambda cell: cell[1]):
            text = "".join(character for character, _ in group)
            start = column + len(text) - len(text.lstrip())
            column += len(text)
            text = text.strip()
            if not text:
                continue
            # The length is fixed, so columns meet in any font.
            parts.append(
                f'<text x="{MARGIN + CELL * start:g}" y="{y:g}" textLength="{CELL * len(text):g}" '
                f'lengthAdjust="spacingAndGlyphs" xml:space="preserve" {style}>{escape(text)}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main(path: Path) -> None:
    """Run, draw and write."""
    output = run().replace("\r\n", "\n").rstrip("\n")
    lines = [f"$ physdiffuser solve {TABLE}", "", *output.split("\n")]
    path.write_text(svg(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)

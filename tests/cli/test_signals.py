"""Ctrl-C and SIGTERM, sent to the program on a terminal of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_program import FAKE, program_environment

from physdiffuser import cli
from physdiffuser.cli.process.stopping import shortened

pty = pytest.importorskip("pty")


class OnTerminal:
    """The program with stderr and stdin on a pseudo-terminal and stdout in a file."""

    def __init__(self, folder: Path, *words: str, mode: str) -> None:
        self.stdout_path = folder / "stdout"
        self.screen = b""
        self.master, slave = pty.openpty()
        with self.stdout_path.open("wb") as stdout:
            self.process = subprocess.Popen(
                [sys.executable, str(FAKE), *words],
                cwd=folder,
                env=program_environment(FAKE_MODE=mode, FAKE_PLOT="1"),
                stdin=slave,
                stdout=stdout,
                stderr=slave,
                start_new_session=True,
                preexec_fn=_take_terminal,
            )
        os.close(slave)
        os.set_blocking(self.master, False)

    def read(self) -> bytes:
        with contextlib.suppress(OSError):  # nothing written since, or the program has ended
            self.screen += os.read(self.master, 65536)
        return self.screen

    def wait_for(self, text: bytes, limit: float = 20.0) -> None:
        end = time.monotonic() + limit
        while text not in self.read():
            assert time.monotonic() < end, self.screen
            time.sleep(0.01)

    def press_ctrl_c(self) -> None:
        os.write(self.master, b"\x03")

    def wait(self, limit: float) -> int:
        end = time.monotonic() + limit
        while (code := self.process.poll()) is None:
            assert time.monotonic() < end, f"still running after {limit} s: {self.screen!r}"
            self.read()
            time.sleep(0.005)
        self.read()
        return code

    @property
    def stdout(self) -> str:
        return self.stdout_path.read_text(encoding="utf-8")


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_ctrl_c_prints_and_saves_the_best_so_far_within_a_second(tmp_path: Path, table: Path) -> None:
    program = OnTerminal(tmp_path, "solve", table.name, "--out", "run", "--json", mode="slow")
    program.wait_for(b"2.0*v_m_s")
    program.press_ctrl_c()
    assert program.wait(1.0) == 130
    printed = json.loads(program.stdout)
    assert printed["best"]["expression"].endswith("*v_m_s")
    assert any("Ctrl-C" in warning for warning in printed["warnings"])
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == printed
    assert (tmp_path / "run" / "pareto.csv").exists()


def test_the_report_is_printed_without_json_too(tmp_path: Path, table: Path) -> None:
    program = OnTerminal(tmp_path, "solve", table.name, mode="slow")
    program.wait_for(b"2.0*v_m_s")
    program.press_ctrl_c()
    assert program.wait(1.0) == 130
    assert "T = 2.003*v_m_s" in program.stdout
    assert "Traceback" not in program.screen.decode()


def test_sigterm_does_the_same_with_its_own_code(tmp_path: Path, table: Path) -> None:
    program = OnTerminal(tmp_path, "solve", table.name, "--out", "run", mode="slow")
    program.wait_for(b"2.0*v_m_s")
    program.process.send_signal(signal.SIGTERM)
    assert program.wait(1.0) == 143
    assert "T = 2.003*v_m_s" in program.stdout
    assert json.loads((tmp_path / "run" / "result.json").read_text())["best"] is not None


@pytest.mark.parametrize("words", [["--json"], []])
def test_a_search_that_does_not_come_back_is_left_within_a_second(
    tmp_path: Path, table: Path, words: list[str]
) -> None:
    program = OnTerminal(tmp_path, "solve", table.name, "--out", "run", *words, mode="stuck")
    program.wait_for(b"2.0*v_m_s")
    program.press_ctrl_c()
    assert program.wait(1.0) == 130
    assert "2.0*v_m_s" in program.stdout
    if words:
        document = json.loads(program.stdout)
        assert (document["schema"], document["status"]) == (2, "approximate")
        assert document["best"]["expression"] == "2.0*v_m_s"
    # What the search had is kept for --resume.
    assert json.loads((tmp_path / "run" / "progress.json").read_text())["front"] == ["1.5", "2.0*v_m_s"]


def test_stopping_before_the_first_formula_still_prints_the_document(tmp_path: Path, table: Path) -> None:
    program = OnTerminal(tmp_path, "solve", table.name, "--json", mode="stuck early")
    program.wait_for(b"stuck")
    program.press_ctrl_c()
    assert program.wait(1.5) == 130
    document = json.loads(program.stdout)
    assert (document["status"], document["best"]) == ("none", None)


def test_the_second_ctrl_c_ends_at_once(tmp_path: Path, table: Path) -> None:
    program = OnTerminal(tmp_path, "solve", table.name, mode="stuck")
    program.wait_for(b"2.0*v_m_s")
    program.press_ctrl_c()
    time.sleep(0.15)
    program.press_ctrl_c()
    assert program.wait(0.3) == 130
    assert program.stdout == ""


def test_the_progress_line_stays_within_the_terminal_and_leaves_nothing(tmp_path: Path, table: Path) -> None:
    program = OnTerminal(tmp_path, "solve", table.name, "--time", "0.4", "--out", "run", mode="slow")
    program.wait_for(b"2.0*v_m_s")
    assert program.wait(10.0) == 0
    screen = program.screen.decode()
    assert "error 5.0e-01  2.0*v_m_s" in screen
    # tqdm clears its line: after the last carriage return only our notes follow.
    assert "v_m_s" not in screen.rsplit("\r", 1)[-1].replace("'v (m/s)'", "")


def test_quiet_shows_no_progress(tmp_path: Path, table: Path) -> None:
    program = OnTerminal(tmp_path, "solve", table.name, "--time", "0.3", "--quiet", mode="slow")
    assert program.wait(10.0) == 0
    assert program.screen == b""


def test_kill_9_at_any_moment_leaves_only_readable_files(tmp_path: Path, table: Path) -> None:
    """Eight moments from the start of the program to beyond its end, on one folder."""
    from physdiffuser.report.runfolder import load_solution

    finished = 0
    for moment in range(8):
        program = OnTerminal(tmp_path, "solve", table.name, "--out", "run", "--time", "0.2", mode="slow")
        time.sleep(0.25 + 0.2 * moment)
        finished += program.process.poll() == 0
        program.process.kill()
        program.process.wait()
        result = tmp_path / "run" / "result.json"
        if result.exists():
            assert load_solution(result).best is not None
            assert (tmp_path / "run" / "pareto.csv").read_bytes().endswith(b"\n") or not finished
        picture = tmp_path / "run" / "fit.png"
        if picture.exists():
            assert picture.read_bytes().endswith(b"IEND\xaeB`\x82")
    assert run_once_more(tmp_path, table) == 0


def run_once_more(folder: Path, table: Path) -> int:
    """The folder of a killed run can be used again."""
    return OnTerminal(folder, "solve", table.name, "--out", "run", "--resume", mode="quick").wait(20.0)


INTERRUPTED = """
import atexit, os, signal, sys
moment, words = sys.argv[1], sys.argv[2:]
press = lambda: os.kill(os.getpid(), signal.SIGINT)

class Finalised:
    # Exceptions raised here are printed and forgotten, as are those in callbacks of many libraries.
    def __del__(self):
        press()

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            press()
        if name + " finalised" == moment:
            Finalised()

sys.meta_path.insert(0, Finder())
if moment == "end of the interpreter":
    atexit.register(press)
sys.argv[1:] = words
from physdiffuser.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "moment",
    [
        "physdiffuser.cli.entry",
        "physdiffuser.cli.entry finalised",
        "click finalised",
        "physdiffuser.cli.solve finalised",
        "physdiffuser.cli.predict",
        "end of the interpreter",
    ],
)
def test_ctrl_c_ends_the_program_without_a_traceback_at_any_moment(tmp_path: Path, moment: str) -> None:
    command = "predict" if "predict" in moment else "solve"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, moment, command, "--help"],
        cwd=tmp_path,
        env=program_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_a_command_that_tidies_up_is_interrupted_and_not_ended(tmp_path: Path) -> None:
    code = (
        "import click, os, signal, sys\n"
        "from physdiffuser.cli import app, main\n"
        "@click.command()\n"
        "def tidy():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(60)\n"
        "    finally:\n"
        "        print('tidied up')\n"
        "sys.modules['tidy'] = sys.modules['__main__']\n"
        "app.BUILT_IN['tidy'] = app.LazyCommand('tidy', 'tidy', '')\n"
        "sys.argv[1:] = ['tidy']\n"
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=program_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (130, "tidied up\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("lag", "grace"), [(0.0, 0.75), (0.05, 0.55), (0.5, 0.25)])
def test_the_search_gets_less_time_to_come_back_where_threads_wait_for_a_processor(
    lag: float, grace: float
) -> None:
    assert shortened(0.75, lag) == pytest.approx(grace)


def test_ctrl_c_while_the_program_is_loading_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "physdiffuser.cli.entry":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "physdiffuser.cli.entry", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    assert cli.main(["--help"]) == 130

"""Files are the old ones or the new ones, whatever happens on the way."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from physdiffuser.errors import FileError
from physdiffuser.io import atomic
from physdiffuser.io.atomic import write_bytes_atomic, write_text_atomic

posix = pytest.mark.skipif(os.name != "posix", reason="needs fork and signals")
# Every call by which a write reaches the disk.
STEPS = ("fsync", "replace", "fchmod", "open", "close")


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]


def test_the_content_is_written_as_it_is(tmp_path: Path) -> None:
    write_bytes_atomic(tmp_path / "a", b"\x00\r\n")
    write_text_atomic(tmp_path / "b", "θ\n")
    assert (tmp_path / "a").read_bytes() == b"\x00\r\n"
    assert (tmp_path / "b").read_bytes() == "θ\n".encode()
    assert leftovers(tmp_path) == []


@posix
def test_a_new_file_has_the_usual_permissions_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    write_text_atomic(tmp_path / "new", "x")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    plain.chmod(0o640)
    write_text_atomic(plain, "x")
    assert stat.S_IMODE(plain.stat().st_mode) == 0o640


@posix
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text_atomic(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failing_disk_is_a_file_error_and_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail(*arguments: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(atomic.os, step, fail)
    with pytest.raises(FileError, match=os.strerror(code)) as caught:
        write_text_atomic(path, "new")
    assert caught.value.exit_code == 4
    assert path.read_text() == "old"
    assert leftovers(tmp_path) == []


def test_a_missing_folder_is_a_file_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        write_text_atomic(tmp_path / "none" / "file", "x")


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked process; the signal that ended it, or 0."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] & 0x7F


@posix
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_step_leaves_the_old_or_the_new_file(tmp_path: Path, step: str, after: bool) -> None:
    path = tmp_path / "file"
    path.write_text("old" * 1000)
    killed = 0
    for call in range(1, 6):

        def work(call: int = call) -> None:
            real = getattr(os, step)
            seen = 0

            def die(*arguments: object, **named: object) -> object:
                nonlocal seen
                seen += 1
                if seen == call and not after:
                    os.kill(os.getpid(), signal.SIGKILL)
                result = real(*arguments, **named)
                if seen == call and after:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            setattr(os, step, die)
            write_text_atomic(path, "new" * 1000)

        killed += in_child(work) == signal.SIGKILL
        assert path.read_text() in ("old" * 1000, "new" * 1000)
    assert killed


@posix
def test_a_kill_at_a_random_time_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    chosen = random.Random(0)
    contents = [bytes([digit]) * 200_000 for digit in b"01"]
    write_bytes_atomic(path, contents[0])
    for _ in range(40):
        child = os.fork()
        if child == 0:
            while True:
                for content in contents:
                    write_bytes_atomic(path, content)
        time.sleep(chosen.uniform(0.001, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert path.read_bytes() in contents

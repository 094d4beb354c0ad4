"""One run per folder: a lock that dies with its process."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
from pathlib import Path
from types import TracebackType

from physdiffuser.errors import FileError
from physdiffuser.io.display import visible

LOCK_NAME = ".lock"
_UNSUPPORTED = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


class FolderLock:
    """Holds a folder for this process until `release`.

    The lock is the kernel's, on an open file, so it is gone the moment its process is, however that
    ended: a lock file that a killed run left behind stops nobody. On file systems without locks (some
    cluster ones) the process number written in the file decides.

    Raises
    ------
    FileError
        If another run holds the folder, or the lock file cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK_NAME
        self._folder = folder
        self._handle = self._acquire()

    def _acquire(self) -> int:
        while True:
            try:
                handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
            except OSError as error:
                raise FileError(
                    f"cannot lock the run folder '{visible(str(self._folder), 300)}': {error.strerror}. "
                    "Choose a folder you can write to with --out."
                ) from error
            try:
                if not self._lock(handle):
                    raise self._busy(handle)
                if self._still_named(handle):
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
                    return handle
            except BaseException:
                os.close(handle)
                raise
            # The holder removed the file between our open and our lock: take the new one.
            os.close(handle)

    def _lock(self, handle: int) -> bool:
        if sys.platform == "win32":
            import msvcrt

            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError:
                return False
            return True
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                return False
            return not _alive(os.pread(handle, 200, 0))
        return True

    def _still_named(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _busy(self, handle: int) -> FileError:
        holder = os.pread(handle, 200, 0).decode("utf-8", "replace").split()
        who = f" (process {visible(holder[0])} on {visible(holder[1])})" if len(holder) == 2 else ""
        return FileError(
            f"the run folder '{visible(str(self._folder), 300)}' is in use by another run{who}. "
            "Wait for it, or choose another folder with --out."
        )

    def release(self) -> None:
        """Give the folder back; further calls do nothing."""
        if self._handle < 0:
            return
        # Removed while still locked, so that whoever opened the old file sees that it is gone.
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        os.close(self._handle)
        self._handle = -1

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _alive(content: bytes) -> bool:
    """Whether the process that a lock file names runs, as far as this machine can tell."""
    parts = content.decode("utf-8", "replace").split()
    if len(parts) != 2 or not parts[0].isdigit():
        return False
    if parts[1] != socket.gethostname():
        return True
    try:
        os.kill(int(parts[0]), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return int(parts[0]) != os.getpid()

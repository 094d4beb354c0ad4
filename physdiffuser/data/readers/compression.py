"""Gzip streams, decompressed as they are read, with a limit on what may come out."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import BinaryIO

from physdiffuser.data.limits import MAX_RATIO, ReadLimits
from physdiffuser.errors import DataError

FREE_BYTES = 2 << 20
"""Output up to this size is not judged: it takes a second to read."""


class GuardedGzip(io.RawIOBase):
    """Reads a gzip stream; damage, a missing end and bombs become errors of the data.

    Parameters
    ----------
    stream
        The compressed bytes.
    limits
        Checked at every read.
    """

    def __init__(self, stream: BinaryIO, source: str, limits: ReadLimits | None = None) -> None:
        self._limits = limits or ReadLimits()
        self._counter = _Counter(stream)
        self._gzip = gzip.GzipFile(fileobj=self._counter, mode="rb")
        self._source = source
        self._produced = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._limits.check(self._source)
        try:
            data = self._gzip.read(len(buffer))
        except EOFError as error:
            raise DataError(
                f"{self._source}: the gzip file ends too early, after {self._produced:,} decompressed "
                "bytes. The download or copy was cut off; fetch it again."
            ) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError(
                f"{self._source}: the gzip file is damaged after {self._produced:,} decompressed "
                f"bytes ({error}). Fetch it again."
            ) from error
        buffer[: len(data)] = data
        self._produced += len(data)
        if self._produced > FREE_BYTES and self._produced > MAX_RATIO * self._counter.consumed:
            raise DataError(
                f"{self._source}: the gzip file expands more than {MAX_RATIO}-fold, as no table of "
                "measurements does. If it is one, decompress it first."
            )
        return len(data)


class _Counter(io.RawIOBase):
    """Counts the compressed bytes, which also works for pipes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.consumed = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.consumed += len(data)
        return data

"""From bytes in some encoding to blocks of whole lines in UTF-8 with plain newlines."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass

from physdiffuser.data.limits import MAX_BYTES
from physdiffuser.data.readers.sources import file_error
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import visible

FIRST_BLOCK = 1 << 18
BLOCK = 1 << 20
LATER_BLOCK = 1 << 22
MANY_BYTES = 1 << 24
"""Past this many bytes blocks are `LATER_BLOCK` long."""

LONGEST_LINE = 1 << 21

# UTF-32 first: its little-endian mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

ENCODINGS_TO_TRY = "utf-8, utf-16, latin-1, cp1252, cp1250, cp1251, shift_jis or gb18030"

# What stands in tables, and text that some codecs take for an escape.
_TABLE_TEXT = (
    "name,a b;x\t_y|\n+1.5e+05,-2E-07;0123456789 'a' \"b\" #(m/s) +AGE- xn--a \\u0041 \\x41 \\n =41\n"
)


@dataclass(frozen=True)
class Block:
    """Some consecutive whole lines.

    Attributes
    ----------
    data
        UTF-8, lines ended by ``\\n`` (the last line of the file may lack it).
    first_line
        Line number of the first one, counted from 1.
    bytes_read
        How much of the stream had been consumed when the block was complete.
    """

    data: bytes
    first_line: int
    bytes_read: int

    def text(self) -> str:
        """The block as text."""
        return self.data.decode("utf-8")


def check_encoding(encoding: str) -> str:
    """Return the canonical name of an encoding in which tables are written.

    Raises
    ------
    UsageError
        When Python knows no such encoding, it does not produce text, or it gives the characters of a number
        another meaning (punycode, UTF-7, escapes of programming languages).
    """
    try:
        io.TextIOWrapper(io.BytesIO(b""), encoding=encoding)
        name = codecs.lookup(encoding).name
        suitable = _keeps_numbers(name)
    except (LookupError, ValueError, TypeError):
        suitable = False
    if not suitable:
        raise UsageError(
            f"--encoding: '{visible(encoding)}' is no encoding of text tables. Try {ENCODINGS_TO_TRY}."
        )
    return name


def _keeps_numbers(encoding: str) -> bool:
    """Whether the characters of a table have codes of one length, which mean the same in any order."""
    codes = []
    for character in _TABLE_TEXT:
        once, twice = (text.encode(encoding) for text in (character, 2 * character))
        codes.append(twice[len(once) :])  # without a byte order mark
    mark = _TABLE_TEXT[0].encode(encoding).removesuffix(codes[0])
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    # Of the Japanese encodings some have a yen sign in the place of the backslash.
    same_length = len({len(code) for code, of in zip(codes, _TABLE_TEXT, strict=True) if of != "\\"}) == 1
    return same_length and decoder.decode(mark + b"".join(codes), True) == _TABLE_TEXT


def find_encoding(head: bytes, asked: str | None) -> str:
    """Return the encoding to decode with: the one asked for, that of the byte order mark, or UTF-8.

    Anything else is used only when asked for: every byte string is valid Latin-1, so a guess could
    not fail, only be wrong.
    """
    marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    if asked is None:
        return marked or "utf-8"
    name = check_encoding(asked)
    return "utf-8-sig" if name == "utf-8" and marked == "utf-8-sig" else name


def line_blocks(stream: io.BufferedIOBase, encoding: str, source: str) -> Iterator[Block]:
    """Yield the whole stream as blocks of lines.

    Parameters
    ----------
    encoding
        As returned by `find_encoding`.

    Raises
    ------
    DataError
        On a byte that the encoding does not allow (with its offset), a NUL character, a line beyond 2 MB,
        or more bytes than a table has.
    """
    newlines = _Newlines()
    decoder = _Decoder(encoding, source)
    carry = b""
    line = 1
    ended = False
    while not ended:
        size = FIRST_BLOCK if decoder.consumed == 0 else BLOCK
        if decoder.consumed >= MANY_BYTES:
            size = LATER_BLOCK
        try:
            raw = stream.read(size)
        except OSError as error:
            raise file_error(source, error) from error
        ended = not raw
        data = newlines.translate(decoder.decode(raw, final=ended, line=line + carry.count(b"\n")), ended)
        if decoder.consumed > MAX_BYTES:
            raise DataError(f"{source}: more than {MAX_BYTES:,} bytes of text. Give fewer rows.")
        if b"\0" in data:
            raise _nul(carry + data, line, source)
        data = carry + data if carry else data
        cut = len(data) if ended else data.rfind(b"\n") + 1
        if cut == 0:
            if len(data) > LONGEST_LINE:
                raise _too_long(line, source)
            carry = data
            continue
        if ended and len(data) - data.rfind(b"\n", 0, -1) > LONGEST_LINE:
            raise _too_long(line + data.count(b"\n", 0, -1), source)
        block, carry = data[:cut], data[cut:]
        yield Block(block, line, decoder.consumed)
        line += block.count(b"\n")


class _Newlines:
    r"""Turns ``\r\n`` and ``\r`` into ``\n``, also where a pair is split between two reads."""

    def __init__(self) -> None:
        self._held = False

    def translate(self, data: bytes, final: bool) -> bytes:
        if self._held:
            data = b"\r" + data
            self._held = False
        if b"\r" not in data:
            return data
        if data.endswith(b"\r") and not final:
            data = data[:-1]
            self._held = True
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class _Decoder:
    """Brings bytes to UTF-8 and knows where in the stream a bad one stands."""

    def __init__(self, encoding: str, source: str) -> None:
        self._encoding = encoding
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._transparent = encoding == "utf-8"
        self.consumed = 0

    def decode(self, raw: bytes, *, final: bool, line: int) -> bytes:
        pending = len(self._decoder.getstate()[0])
        before = self.consumed - pending
        self.consumed += len(raw)
        if self._transparent and not pending and raw.isascii():
            return raw
        try:
            return self._decoder.decode(raw, final).encode("utf-8")
        except UnicodeDecodeError as error:
            offset = before + error.start
            part = error.object[: error.start]
            line += part.count(b"\n") or part.count(b"\r")
            bad = f"0x{error.object[error.start]:02x}" if error.start < len(error.object) else "the end"
            raise DataError(
                f"{self._source}: line {line}: byte {bad} at offset {offset:,} is not valid "
                f"{self._encoding.upper()} ({error.reason}). {self._advice()}"
            ) from error
        except UnicodeEncodeError as error:
            raise DataError(
                f"{self._source}: decoding as {self._encoding} gives characters that do not exist "
                f"({error.reason}). {self._advice()}"
            ) from error
        except UnicodeError as error:
            raise DataError(
                f"{self._source}: cannot be decoded as {self._encoding} ({error}). {self._advice()}"
            ) from error

    def _advice(self) -> str:
        if self._encoding.startswith("utf-8"):
            return "If the file is in another encoding, try --encoding latin-1; if not, repair that byte."
        return "Try another --encoding."


def _too_long(line: int, source: str) -> DataError:
    return DataError(
        f"{source}: line {line} is longer than {LONGEST_LINE >> 20} MB. This is no text table, "
        "or its line ends are missing."
    )


def _nul(data: bytes, line: int, source: str) -> DataError:
    at = data.index(b"\0")
    line += data.count(b"\n", 0, at)
    hint = (
        "It looks like UTF-16 without a byte order mark: try --encoding utf-16-le or utf-16-be."
        if data[:64].count(b"\0") >= min(len(data), 64) // 3
        else "The file is binary or damaged; export it again as text."
    )
    return DataError(f"{source}: line {line} contains a NUL character (byte 0). {hint}")

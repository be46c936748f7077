"""Reads the data of an R package: a lazy-load database of serialised values.

NAME.rdx is a packed list that tells where in NAME.rdb each variable lies; there each has its size
when unpacked, 4 bytes, and then its packed serialisation. R's manual "R Internals", section
"Serialization Formats", describes the latter. What data sets are made of is read: vectors of
numbers, logical values and strings, lists, and their attributes.
"""

import bz2
import lzma
import os
import struct
import zlib

SYMBOL, PAIRS, CHARS, LOGICAL, INTEGER, REAL, STRINGS, LIST = 1, 2, 9, 10, 13, 14, 16, 19
NIL, REFERENCE = 254, 255
HAS_ATTRIBUTES, HAS_TAG = 1 << 9, 1 << 10
GZIP_WINDOW = 32 + zlib.MAX_WBITS  # zlib's or gzip's header
LZMA = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]


class RDataError(ValueError):
    """The bytes are no R data, or are R data of a kind that is not read here."""


class Vector(list):
    """The elements of a vector or list, with R's attributes."""

    attributes = {}

    def named(self):
        """The elements by their names."""
        return dict(zip(self.attributes["names"], self))

    def labels(self):
        """The strings of a factor."""
        levels = self.attributes["levels"]
        return [levels[code - 1] for code in self]


class _Reader:
    """One serialised value, in the XDR format."""

    def __init__(self, data):
        self.data, self.at = data, 0
        self.references = []
        if self._take(2) != b"X\n":
            raise RDataError("not a value in R's XDR format")
        version, _, _ = self._integers(3)
        if version not in (2, 3):
            raise RDataError(f"version {version} of R's format, expected 2 or 3")
        if version == 3:
            self._take(self._integers(1)[0])  # the name of the encoding

    def _take(self, size):
        if size < 0 or size > len(self.data) - self.at:
            raise RDataError("an R value ends too early")
        self.at += size
        return self.data[self.at - size:self.at]

    def _integers(self, count):
        return struct.unpack(f">{count}i", self._take(4 * count))

    def _chars(self):
        size, = self._integers(1)
        return None if size == -1 else self._take(size).decode("utf-8", "replace")

    def _pairs(self, flags):
        """The tagged values of a pair list, whose first flags have been read."""
        pairs = {}
        while flags & 255 == PAIRS:
            if flags & HAS_ATTRIBUTES:
                self.value()
            tag = self.value() if flags & HAS_TAG else None
            pairs[tag] = self.value()
            flags, = self._integers(1)
        if flags & 255 != NIL:
            raise RDataError("a pair list that does not end with nil")
        return pairs

    def _referred(self, flags):
        index = flags >> 8 or self._integers(1)[0]
        if not 0 < index <= len(self.references):
            raise RDataError("a reference to nothing")
        return self.references[index - 1]

    def _elements(self, kind):
        count, = self._integers(1)
        if kind in (LOGICAL, INTEGER):
            return Vector(self._integers(count))
        if kind == REAL:
            return Vector(struct.unpack(f">{count}d", self._take(8 * count)))
        if kind in (STRINGS, LIST):
            return Vector(self.value() for _ in range(count))
        raise RDataError(f"an R value of type {kind}, which is not read here")

    def value(self):
        """The next value: None, str, dict for a pair list, or Vector."""
        flags, = self._integers(1)
        kind = flags & 255
        if kind == NIL:
            return None
        if kind == REFERENCE:
            return self._referred(flags)
        if kind == SYMBOL:
            self.references.append(self.value())
            return self.references[-1]
        if kind == CHARS:
            return self._chars()
        if kind == PAIRS:
            return self._pairs(flags)
        elements = self._elements(kind)
        if flags & HAS_ATTRIBUTES:
            elements.attributes = self._pairs(self._integers(1)[0])
        return elements


def parse(data):
    """The value that bytes in R's XDR format hold."""
    return _Reader(data).value()


def _unpack(data, kind):
    """A packed value; kind is the `compressed` of the index: 1 zlib, 2 and 3 named by a letter."""
    packed, letter = data[4:], b"1"
    if kind != 1:
        letter, packed = data[4:5], data[5:]
    if letter == b"1":
        return zlib.decompress(packed)
    if letter == b"2":
        return bz2.decompress(packed)
    if letter == b"Z":
        return lzma.decompress(packed, format=lzma.FORMAT_RAW, filters=LZMA)
    if letter == b"0":
        return packed
    raise RDataError(f"an R value packed in an unknown way, {letter!r}")


def read_database(stem):
    """The variables of STEM.rdx and STEM.rdb: name -> a function that reads the value."""
    with open(stem + ".rdx", "rb") as file:
        index = parse(zlib.decompress(file.read(), GZIP_WINDOW)).named()
    with open(stem + ".rdb", "rb") as file:
        values = file.read()
    kind = int(index["compressed"][0])

    def reader(start, size):
        if min(start, size) < 0 or start + size > len(values):
            raise RDataError(f"{os.path.basename(stem)}.rdb ends too early")
        return lambda: parse(_unpack(values[start:start + size], kind))

    return {name: reader(*place) for name, place in index["variables"].named().items()}

"""Reads a text or commentary of the SWORD project as plain paragraphs.

A module has the files ot.* and nt.*, either or both. Their last but one letter is s for blocks, v
for verses and z for text: *zs says where in *zz each zlib block lies and how long it is, *zv where
in the unpacked blocks each verse lies. Numbers are little-endian. A block is a book or a chapter.
"""

import glob
import html
import os
import re
import struct
import zlib

BLOCK = struct.Struct("<III")  # offset, packed size, size
VERSE = struct.Struct("<IIH")  # block, offset, size
LONG_VERSE = struct.Struct("<III")

NOTE = re.compile(r"<note\b.*?</note>", re.DOTALL)
PARAGRAPH = re.compile(r'<(?:div\b[^>]*type="x-p"|(?:/?title|/?list|/?table|chapter)\b)[^>]*>')
LINE = re.compile(r"<(?:lb|item|row|l\b(?=[^>]*\bsID=))\b[^>]*>")
CELL = re.compile(r"<cell\b[^>]*>")
TAG = re.compile(r"<[^>]*>")
PLAIN = {0xA0: " ", ord("¶"): None}  # pilcrows repeat the tags of paragraphs


class SwordError(ValueError):
    """The files are no SWORD module."""


def plain_text(markup):
    """OSIS markup without notes and tags; a paragraph or a line of a poem is a line."""
    text = NOTE.sub(" ", markup)
    text = " ".join(text.split())
    text = PARAGRAPH.sub("\n\n", text)
    text = LINE.sub("\n", text)
    text = CELL.sub(" ", text)
    text = html.unescape(TAG.sub("", text)).translate(PLAIN)
    text = re.sub(r" +", " ", text)
    text = re.sub(r" ([,.;:!?])(?!\.)", r"\1", text)
    text = re.sub(r" ?\n ?", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _records(layout, data, what):
    if len(data) % layout.size:
        raise SwordError(f"{what}: {len(data)} bytes, expected records of {layout.size}")
    return list(layout.iter_unpack(data))


def _verses(data, sizes, what):
    """(block, offset, size) of the verses. Either layout may be there, so the one that fits."""
    for layout in (VERSE, LONG_VERSE):
        if len(data) % layout.size == 0:
            verses = _records(layout, data, what)
            if all(size == 0 or block < len(sizes) and start + size <= sizes[block]
                   for block, start, size in verses):
                return verses
    raise SwordError(f"{what}: verses outside the text")


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def read_testament(stem):
    """The blocks of STEMs, STEMv and STEMz in their order, each as one marked-up string."""
    blocks = _records(BLOCK, _read(stem + "s"), stem + "s")
    verses = _verses(_read(stem + "v"), [size for _, _, size in blocks], stem + "v")
    packed = _read(stem + "z")
    # Several verses may have the same text, a comment on all of them.
    places = dict.fromkeys(verse for verse in verses if verse[2])
    texts = {}
    for block, start, size in places:
        if block not in texts:
            offset, length, _ = blocks[block]
            texts[block] = [zlib.decompress(packed[offset:offset + length])]
        texts[block].append(texts[block][0][start:start + size])
    return [b" ".join(text[1:]).decode("utf-8", "replace") for _, text in sorted(texts.items())]


def read_module(directory):
    """The plain texts of a module's books or chapters, empty ones left out."""
    paths = sorted(glob.glob(os.path.join(directory, "[on]t.?zs")), reverse=True)  # ot, nt
    if not paths:
        raise SwordError(f"{directory}: no ot.*zs or nt.*zs here")
    texts = [plain_text(markup) for path in paths for markup in read_testament(path[:-1])]
    return [text for text in texts if text]

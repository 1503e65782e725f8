"""Near copies: texts that differ in a few words (F6). A signature for each text, and the groups of texts that are near.

A signature is a minhash (Broder 1997) in one permutation with b-bit values (Li and König 2010): the text is cut into
pieces where its own letters say so, each piece has a hash, and of the hashes that fall into a place the smallest is kept.
The share of equal places is about the share of pieces that two texts have in common. Threshold and letters were chosen on
one half of the pairs of ``benchmarks/near_copies.py``, and measured on the other.

A signature takes time that grows with the text alone, and so does the search for near ones: it looks at a bounded number
of earlier texts that agree in one of the bands of places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

import orjson
import xxhash

from searchcrawl.access import Access

#: How many places a signature has, a byte each.
PLACES: Final = 64
#: Texts are near copies if so many places are equal.
NEAR_PLACES: Final = 53
#: Texts with fewer pieces have no signature: a name in them that differs is a large part of them.
_LEAST_PIECES: Final = 64
#: Nor have texts that repeat a few pieces, whose hashes leave more places empty than this.
_MOST_UNSET: Final = 40
#: So many places are a band. Near signatures are equal in one of the twelve bands at least: they differ in eleven places at most.
_BAND: Final = 5
#: So many earlier texts are compared in each band: whatever texts look like, a comparison takes constant time.
_MOST_IN_BAND: Final = 32
#: Of another version, signatures cannot be compared.
_VERSION: Final = "1"
_UNSET: Final = 1 << 64


def _build_cuts() -> bytes:
    """Letters in lower case; a piece ends at an r, and at some bytes of letters that are not Latin."""
    table = bytearray(range(256))
    table[ord("A") : ord("Z") + 1] = b"abcdefghijklmnopqrstuvwxyz"
    for ending in (*b"rR", 0x81, 0x84, 0x92, 0xA7, 0xB5):
        table[ending] = ord("\n")
    return bytes(table)


_CUTS: Final = _build_cuts()


def sign(text: str, access: Access | None = None) -> str:
    """The signature of a text, in hexadecimal digits after its version; empty for a text that says too little.

    Texts that others may see are not near to each other: ``access`` is who may see this one, None: everyone.
    """
    pieces = text.encode("utf-8", "surrogatepass").translate(_CUTS).split(b"\n")
    if len(pieces) < _LEAST_PIECES:
        return ""
    least = [_UNSET] * PLACES
    for number in map(xxhash.xxh3_64_intdigest, pieces):
        place = number % PLACES
        if number < least[place]:  # noqa: PLR1730  # a call takes longer
            least[place] = number
    unset = least.count(_UNSET)
    if unset > _MOST_UNSET:
        return ""
    for place in range(PLACES - 1, -PLACES - 1, -1) if unset else ():
        if least[place] == _UNSET:
            # Into which no hash fell, has that of the next place (Shrivastava and Li 2014).
            least[place] = least[place + 1 if place + 1 < PLACES else 0]
    places = bytes([number >> 8 & 255 for number in least])
    return _VERSION + (places if access is None else _hide(places, access)).hex()


def _hide(places: bytes, access: Access) -> bytes:
    """The places of a text that not everyone may see: equal to those of such texts alone that the same principals may see."""
    key = hashlib.shake_256(orjson.dumps([*access])).digest(PLACES)
    return (int.from_bytes(places) ^ int.from_bytes(key)).to_bytes(PLACES)


def count_equal_places(one: str, other: str) -> int:
    """In how many places two signatures are equal; 0 where one of them is none of this version."""
    first, second = _read(one), _read(other)
    return 0 if first is None or second is None else _count_equal(first, second)


class NearGroups:
    """Groups of texts by their signatures, which come in the order of their rank.

    The first text of a group stands for it, and all others are near to that one: being near is not handed on.
    """

    def __init__(self) -> None:
        self._bands: dict[bytes, list[int]] = {}
        self._first: list[tuple[int, bytes]] = []

    def add(self, number: int, signature: str) -> int:
        """The number of the text that stands for this one: that of an earlier text, or its own."""
        values = _read(signature)
        if values is None:
            return number
        first = self._find(values)
        if first is not None:
            return first
        for band in _split(values):
            held = self._bands.setdefault(band, [])
            if len(held) < _MOST_IN_BAND:
                held.append(len(self._first))
        self._first.append((number, values))
        return number

    def find(self, signature: str) -> int | None:
        """The number of the text that stands for this one, which is not added; None where it is near to none."""
        values = _read(signature)
        return None if values is None else self._find(values)

    def _find(self, values: bytes) -> int | None:
        candidates = {at for band in _split(values) for at in self._bands.get(band, ())}
        for at in sorted(candidates):
            first, known = self._first[at]
            if _count_equal(values, known) >= NEAR_PLACES:
                return first
        return None


def _read(signature: str) -> bytes | None:
    """The places of a signature; None without one, and for one of another version."""
    if len(signature) != 1 + 2 * PLACES or not signature.startswith(_VERSION):
        return None
    try:
        return bytes.fromhex(signature[1:])
    except ValueError:
        return None


def _split(values: bytes) -> Iterator[bytes]:
    """The bands, each after its number."""
    for start in range(0, PLACES - _BAND + 1, _BAND):
        yield bytes([start]) + values[start : start + _BAND]


def _count_equal(one: bytes, other: bytes) -> int:
    differing = int.from_bytes(one) ^ int.from_bytes(other)
    return differing.to_bytes(PLACES).count(0)

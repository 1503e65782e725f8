"""Lists of folders as SMB servers send them, and what is none."""

from __future__ import annotations

import struct

import pytest

from searchcrawl.kinds.file.remote import smb_structures as structures

_ENTRY = struct.Struct("<II4qqqIIIIQ")


def build_list(*names: str, following: int | None = None, length: int | None = None) -> bytes:
    """What a server sends of things with these names; each entry begins at a place that 8 divides."""
    found = b""
    for number, name in enumerate(names):
        raw = name.encode("utf-16-le", "surrogatepass")
        size = _ENTRY.size + len(raw)
        padded = size + -size % 8
        step = 0 if number == len(names) - 1 else padded
        fields = (
            step if following is None else following,
            0,
            1,
            2,
            3,
            4,
            5,
            6,
            0x20,
            length or len(raw),
            0,
            0,
            number + 1,
        )
        found += (_ENTRY.pack(*fields) + raw).ljust(padded, b"\0")
    return found


def test_list_when_it_has_things_then_they_are_read_without_itself_and_the_one_above() -> None:
    found = list(structures.read_entries(build_list(".", "..", "ä.txt", "\ud800x", "b")))

    assert [name for name, _ in found] == ["ä.txt", "\ud800x", "b"]
    assert found[0][1] == structures.Facts(5, 1, 3, 4, 0x20, 0, 3)
    assert list(structures.read_entries(b"")) == []


@pytest.mark.parametrize(
    "content",
    [
        build_list("a/b"),
        build_list("..\\x"),
        build_list("a\0"),
        build_list(""),
        build_list("abc")[:-8],
        build_list("abc", length=100_000),
        build_list("abc", "def", following=8),
        build_list("abc", "def", following=100_000),
        b"\0" * 20,
    ],
)
def test_list_when_it_is_none_then_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\A(a list|a name) that"):
        list(structures.read_entries(content))


@pytest.mark.parametrize("name", ["a", "ä b", "\ud800", "%41", "a\nb", "~1"])
def test_name_when_it_is_one_then_comes_back(name: str) -> None:
    assert structures.decode_name(structures.encode_name(name)) == name


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"a\\b", b"a:b", b"a\0", b"\xff"])
def test_name_when_it_leads_elsewhere_then_is_none(name: bytes) -> None:
    assert structures.decode_name(name) is None


@pytest.mark.parametrize(
    ("attributes", "tag", "leads"),
    [
        (0x20, 0xA000_000C, False),
        # A symbolic link, a mount point, and a part of DFS.
        (0x400, 0xA000_000C, True),
        (0x410, 0xA000_0003, True),
        (0x410, 0x8000_000A, True),
        # Files that are kept once for all their copies, or in a cloud.
        (0x420, 0x8000_0013, False),
        (0x420, 0x9000_001A, False),
    ],
)
def test_facts_when_something_is_a_reparse_point_then_some_lead_elsewhere(
    attributes: int, tag: int, leads: bool
) -> None:
    assert structures.Facts(0, 0, 0, 0, attributes, tag).leads_elsewhere is leads


@pytest.mark.parametrize("read", [structures.read_queried, structures.read_piece, structures.read_controlled])
def test_answer_when_it_promises_more_than_it_has_then_is_refused(read: object) -> None:
    for content in (b"", b"\x11" * 7, b"\xff" * 200, b"\x09\0\x48\0\xff\xff\xff\xff" + b"\x50" * 60):
        with pytest.raises(ValueError, match="cut short"):
            read(content)  # type: ignore[operator]

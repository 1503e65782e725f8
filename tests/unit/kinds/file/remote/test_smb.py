"""Which descriptors are asked for when a folder of a share is listed, and what tells versions of its files apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from searchcrawl.kinds.file.remote import smb
from searchcrawl.kinds.file.remote.smb_structures import Facts
from tests.smb_server import Ace, build_descriptor

LONG_AGO = 134_000_000_000_000_000
OWNER, GROUP, WORLD = "S-1-5-21-1-500", "S-1-5-21-1-513", "S-1-1-0"


class Server:
    """A share with one folder of files; what it is asked is noted."""

    def __init__(self) -> None:
        self.files: dict[str, Facts] = {}
        self.descriptors: dict[str, bytes] = {}
        self.folder = build_descriptor(OWNER, GROUP, [Ace(WORLD, 0x1F01FF)])
        self.described: list[str] = []
        self.listed = False
        self.host, self.name = "nas", "share"

    def connect(self) -> Any:
        return SimpleNamespace(ahead_ms=0)

    def run(self, work: Callable[[Any], Any]) -> Any:
        return work(self.connect())

    def go_on(self, link: Any, work: Callable[[Any], Any]) -> Any:
        return work(link)

    def leave(self, link: Any, work: Callable[[Any], Any]) -> None:
        work(link)

    def begin_list(self, link: Any, path: str) -> bytes:
        self.listed = False
        return b"handle"

    def list_more(self, link: Any, folder: bytes) -> Sequence[tuple[str, Facts]]:
        found = [] if self.listed else list(self.files.items())
        self.listed = True
        return found

    def end_list(self, link: Any, folder: bytes) -> None:
        pass

    def describe_folder(self, link: Any, path: str) -> bytes:
        return self.folder

    def describe_files(self, link: Any, paths: Sequence[str]) -> Iterator[bytes]:
        self.described += paths
        return iter([self.descriptors.get(path, b"first") for path in paths])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(smb, "Share", lambda *_: made)
    monkeypatch.setattr(smb, "find_share_level", lambda *_, **__: None)
    for name in ("begin_list", "list_more", "end_list", "describe_folder", "describe_files"):
        monkeypatch.setattr(smb.requests, name, getattr(made, name))
    return made


def list_tokens(permissions: str = "smb") -> dict[str, tuple[bytes, bytes]]:
    """The tokens of the files, and those of who may see them."""
    table = SimpleNamespace(username="u", password="p", hidden=False, find_permissions=lambda scheme: permissions)
    source: Any = SimpleNamespace(own=table, fetch=SimpleNamespace(timeout_seconds=1.0))
    connection = smb.SmbConnection(source, "smb://nas/share/")
    return {thing.name.decode(): (thing.token, thing.facts) for part in connection.list_folder(()) for thing in part}


def build_facts(written: int = LONG_AGO, changed: int = LONG_AGO, *, number: int = 7) -> Facts:
    return Facts(10, LONG_AGO, written, changed, 0x20, 0, number)


def test_token_when_the_time_of_a_change_is_that_of_writing_then_has_the_permissions(server: Server) -> None:
    server.files = {"same": build_facts(), "other": build_facts(changed=LONG_AGO + 1)}
    before = list_tokens()
    described = server.described
    server.descriptors = {"same": b"second", "other": b"second"}
    after = list_tokens()

    # A server that has times of change of its own changes them with the permissions.
    assert described == ["same", "same"]
    assert before["same"][0] == after["same"][0] != b""
    assert before["same"][1] != after["same"][1]
    assert before["other"] == after["other"] != (b"", b"")


def test_token_when_anything_of_a_file_changes_then_is_another_one(server: Server) -> None:
    variants = [
        build_facts(),
        build_facts(LONG_AGO - 10_000_000, LONG_AGO),
        build_facts(changed=LONG_AGO + 1),
        build_facts(number=8),
        build_facts()._replace(size=11),
    ]
    found = set()
    for facts in variants:
        server.files = {"a": facts}
        found.add(list_tokens()["a"][0])

    assert len(found) == len(variants)


def test_token_when_who_may_pass_the_folder_changes_then_is_another_one(server: Server) -> None:
    server.files = {"a": build_facts(changed=LONG_AGO + 1)}
    before, free = list_tokens(), list_tokens("none")
    server.folder = build_descriptor(OWNER, GROUP, [Ace(GROUP, 0x1F01FF)])

    after = list_tokens()["a"]
    assert (after[0], after[1] != before["a"][1]) == (before["a"][0], True)
    assert list_tokens("none") == free == {"a": (before["a"][0], b"")}
    assert server.described == []


def test_thing_when_it_is_hidden_or_leads_elsewhere_then_is_barred_and_not_described(server: Server) -> None:
    server.files = {
        "hidden": build_facts()._replace(attributes=0x22),
        "link": build_facts()._replace(attributes=0x420, tag=0xA000_000C),
        "a:b": build_facts(),
        "folder": build_facts()._replace(attributes=0x10),
    }
    table = SimpleNamespace(username="u", password="p", hidden=False, find_permissions=lambda scheme: "smb")
    source: Any = SimpleNamespace(own=table, fetch=SimpleNamespace(timeout_seconds=1.0))
    [things] = smb.SmbConnection(source, "smb://nas/share/").list_folder(())
    found = {thing.name.decode(): thing for thing in things}

    assert (found["hidden"].barred, found["hidden"].key) == ("is hidden", "hidden")
    assert found["link"].barred.startswith("leads elsewhere")
    assert found["a:b"].barred
    assert (found["folder"].is_folder, found["folder"].token, len(found["folder"].node)) == (True, b"", 8)
    assert server.described == []

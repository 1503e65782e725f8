"""Who may see what is in a share: what a search as a user finds is what the server would give this user (A1)."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, NoReturn

import pytest

from searchcrawl.answer_headers import find_permissions
from searchcrawl.bodies import Spool, hold
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.remote.connecting import connect
from searchcrawl.kinds.file.remote.model import Connection
from searchcrawl.kinds.file.roots import list_roots
from searchcrawl.sources.fetch_tables import Fetch
from tests import smb_server
from tests.acceptance.support_smb import SmbProject
from tests.smb_server import OTHERS, PASSWORD, Ace, RunningSmb

EVERYONE, AUTHENTICATED, NETWORK, OWNER_RIGHTS = "S-1-1-0", "S-1-5-11", "S-1-5-2", "S-1-3-4"
READ, PASS, WRITE, DELETE, ALL = 0x120089, 0x1200A9, 0x120116, 0x10000, 0x1F01FF
DENY, INHERIT_ONLY = 1, 0x0B

#: Users of whom some see less than the server gives them: whom one entry denies what an earlier one allows him under another name.
STRICTER: Final = {"sync": {"nt/allow-user-deny-group.txt"}}


#: ACLs of POSIX: tags of entries, and of those without a number.
USER_OBJ, NAMED_USER, GROUP_OBJ, NAMED_GROUP, MASK, OTHER = 1, 2, 4, 8, 0x10, 0x20
NO_NUMBER: Final = 0xFFFFFFFF


def set_posix_acl(path: Path, *named: tuple[int, str, int], group: int, mask: int, other: int) -> None:
    """Sets an ACL; ``named`` are a tag, a user or group, and bits."""
    entries = [
        (USER_OBJ, 6, NO_NUMBER),
        (GROUP_OBJ, group, NO_NUMBER),
        (MASK, mask, NO_NUMBER),
        (OTHER, other, NO_NUMBER),
    ]
    for tag, name, bits in named:
        number = pwd.getpwnam(name).pw_uid if tag == NAMED_USER else grp.getgrnam(name).gr_gid
        entries.append((tag, bits, number))
    content = b"".join(struct.pack("<HHI", *entry) for entry in sorted(entries, key=lambda entry: (entry[0], entry[2])))
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + content)


def sid_of_group(name: str) -> str:
    return f"S-1-22-2-{grp.getgrnam(name).gr_gid}"


@pytest.fixture(scope="module")
def server(part_missing: Callable[[str], NoReturn]) -> Iterator[RunningSmb]:
    """A server with several users; root crawls."""
    try:
        started = smb_server.start_smb(users=("root", *OTHERS))
    except smb_server.PartMissing as error:
        part_missing(str(error))
    with started:
        yield started


class Crawled(NamedTuple):
    project: SmbProject
    names: list[str]
    counts: dict[str, int]


#: Named users and groups, the bits of the group, the mask and the bits of all others.
POSIX: Final = {
    "posix/user.txt": ([(NAMED_USER, "man", 4)], 0, 4, 0),
    "posix/masked.txt": ([(NAMED_USER, "man", 4), (NAMED_GROUP, "nogroup", 4)], 4, 2, 0),
    "posix/not-the-user.txt": ([(NAMED_USER, "man", 0), (NAMED_USER, "sync", 0)], 4, 4, 4),
    "posix/group.txt": ([(NAMED_GROUP, "nogroup", 4)], 0, 4, 0),
    "posix/not-the-group.txt": ([(NAMED_GROUP, "nogroup", 0)], 0, 4, 4),
}


def list_acls(sids: dict[str, str], nogroup: str) -> dict[str, list[Ace]]:
    """ACLs of Windows, by names of files."""
    return {
        "user": [Ace(sids["games"], READ)],
        "group": [Ace(nogroup, READ)],
        "deny-user": [Ace(sids["man"], READ, DENY), Ace(EVERYONE, READ)],
        "deny-group-allow-user": [Ace(nogroup, READ, DENY), Ace(sids["sync"], READ), Ace(sids["man"], READ)],
        "allow-user-deny-group": [Ace(sids["sync"], READ), Ace(nogroup, READ, DENY), Ace(sids["man"], READ)],
        "allow-then-deny": [Ace(sids["man"], READ), Ace(sids["man"], READ, DENY)],
        "everyone-then-deny": [Ace(EVERYONE, READ), Ace(sids["man"], READ, DENY)],
        "write-only": [Ace(sids["games"], WRITE), Ace(sids["man"], READ)],
        "deny-delete": [Ace(EVERYONE, DELETE, DENY), Ace(EVERYONE, READ)],
        "deny-write": [Ace(sids["games"], 0x2, DENY), Ace(EVERYONE, READ)],
        "inherit-only": [Ace(EVERYONE, READ, flags=INHERIT_ONLY), Ace(sids["man"], READ)],
        "authenticated": [Ace(AUTHENTICATED, READ)],
        "network": [Ace(NETWORK, READ)],
        "all": [Ace(sids["_apt"], ALL)],
        "nobody": [],
    }


def fill(server: RunningSmb) -> list[str]:
    """Files and folders with all kinds of permissions: the names of the files."""
    sids = {user: server.find_sid(user) for user in OTHERS}
    nogroup = sid_of_group("nogroup")
    modes = {f"modes/{mode:04o}.txt": mode for mode in (0o600, 0o640, 0o604, 0o644, 0o044, 0o004, 0o000, 0o444, 0o222)}
    lists = list_acls(sids, nogroup)
    folders = {
        "pass/x.txt": 0o711, "list/x.txt": 0o744, "closed/x.txt": 0o700, "owned/x.txt": 0o710
    }  # fmt: skip
    described = {
        "for-games/x.txt": [Ace(sids["games"], PASS)],
        "not-for-man/x.txt": [Ace(sids["man"], 0x20, DENY), Ace(EVERYONE, PASS)],
        "for-group/open/x.txt": [Ace(nogroup, PASS)],
    }
    names = [*modes, *(f"nt/{name}.txt" for name in lists), *folders, *described, *POSIX]
    for name in names:
        path = server.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"apples of {name.replace('/', ' ')}")
    for name, mode in modes.items():
        shutil.chown(server.root / name, "games", "nogroup")
        (server.root / name).chmod(mode)
    for name, (named, group, mask, other) in POSIX.items():
        shutil.chown(server.root / name, "games", "man")
        set_posix_acl(server.root / name, *named, group=group, mask=mask, other=other)
    for name, entries in lists.items():
        server.describe(f"nt/{name}.txt", *entries)
    for name, mode in folders.items():
        shutil.chown(server.root / name.split("/")[0], "games", "nogroup")
        (server.root / name.split("/")[0]).chmod(mode)
    for name, entries in described.items():
        server.describe(name.split("/")[0], *entries)
    return names


@pytest.fixture(scope="module")
def crawled(server: RunningSmb, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """A project, and the files that it has crawled."""
    folder = tmp_path_factory.mktemp("crawled")
    project = SmbProject(folder, server, user="root", project={"principals": {"file": "groups.csv"}})
    domain = server.find_sid("root").rpartition("-")[0]
    lines = []
    for user in OTHERS:
        account = pwd.getpwnam(user)
        own = (server.find_sid(user), f"{domain}-513", f"S-1-22-1-{account.pw_uid}", f"S-1-22-2-{account.pw_gid}")
        lines += [f"{user},sid:{sid}" for sid in own]
    (project.folder / "groups.csv").write_text("\n".join(lines), "utf-8")
    return Crawled(project, fill(server), project.crawl())


def sees(project: SmbProject, user: str) -> set[str]:
    hits = project.ask("search", "apples", "--as-user", user, "--rows", "200")["hits"]
    return {project.name(hit["url"]) for hit in hits}


@pytest.mark.parametrize("user", OTHERS)
def test_search_when_it_is_made_as_a_user_then_it_finds_what_the_server_gives_him(crawled: Crawled, user: str) -> None:
    project, names, counts = crawled
    given = project.server.list_readable(user, names)
    found = sees(project, user)

    assert counts["indexed"] == len(names)
    assert found - given == set()
    assert given - found == STRICTER.get(user, set())
    assert 5 < len(found) < len(names) - 5


def test_search_when_a_share_is_for_few_then_others_see_nothing_of_it(crawled: Crawled) -> None:
    project, server = crawled.project, crawled.project.server
    before = sees(project, "man")
    server.allow_share(*(f"{server.find_sid(user)}:ALLOWED/0x0/READ" for user in ("root", "games")))
    project.crawl()

    assert before
    assert sees(project, "man") == server.list_readable("man", sorted(before)) == set()
    assert "modes/0640.txt" in sees(project, "games")


def test_file_when_its_folder_is_closed_as_it_is_read_then_what_was_written_since_is_for_nobody_else(
    server: RunningSmb,
) -> None:
    folder = server.root / "closing"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "x.txt").write_text("for all")
    connection = open_share(server)

    def close_folder() -> Spool:
        """What is done in the moment before the file is opened."""
        folder.chmod(0o700)
        (folder / "x.txt").write_text("for root alone")
        return hold()

    try:
        found = connection.read((b"closing", b"x.txt"), 1_000, close_folder)
    finally:
        connection.close()
    permissions = find_permissions(found.headers)

    assert found.body == b"for root alone"
    assert permissions is not None
    assert "everyone" in permissions.allow
    assert any("everyone" not in level.allow for level in permissions.levels)


def open_share(server: RunningSmb) -> Connection:
    own = FileTable.model_validate({"roots": [server.url], "username": "root", "password": PASSWORD})
    source: Any = SimpleNamespace(own=own, folder=Path("/"), fetch=Fetch(timeout_seconds=10.0))
    return connect(source, list_roots(source)[0], "tests")

"""Who may read a file, as the kernel decides it; where the two differ, a document is hidden and not shown."""

from __future__ import annotations

import grp
import os
import pwd
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from searchcrawl.answer_headers import EVERYONE, NOBODY, UNREADABLE, Level, Permissions
from searchcrawl.kinds.file.local.permissions import Levels, list_levels_above, read_level, read_permissions

ACL = "system.posix_acl_access"
OWNER, USER, GROUP_OF_FILE, GROUP, MASK, OTHER = 1, 2, 4, 8, 0x10, 0x20
NO_ID = 0xFFFFFFFF


def set_acl(path: Path, *entries: tuple[int, int, int]) -> None:
    content = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(path, ACL, content)


def permissions_of(path: Path) -> Permissions:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return read_permissions(descriptor, os.fstat(descriptor))
    finally:
        os.close(descriptor)


@pytest.fixture
def file(tree: Path) -> Path:
    """A file of user 1001 and group 2001, whom nobody knows by name."""
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    path = tree / "file"
    path.write_bytes(b"text")
    os.chown(path, 1001, 2001)
    return path


@pytest.mark.parametrize(
    ("mode", "allow", "deny"),
    [
        (0o640, ["uid:1001", "gid:2001"], []),
        (0o600, ["uid:1001"], []),
        (0o644, ["uid:1001", "gid:2001", EVERYONE], []),
        (0o444, ["uid:1001", "gid:2001", EVERYONE], []),
        (0o000, [NOBODY], []),
        # Only the bit to read counts.
        (0o333, [NOBODY], []),
        # Whom an earlier class names has no more than that gives.
        (0o044, ["gid:2001", EVERYONE], ["uid:1001"]),
        (0o604, ["uid:1001", EVERYONE], ["gid:2001"]),
        (0o004, [EVERYONE], ["uid:1001", "gid:2001"]),
    ],
)
def test_permissions_when_a_file_has_a_mode_then_are_those_of_its_classes(
    file: Path, mode: int, allow: list[str], deny: list[str]
) -> None:
    file.chmod(mode)

    assert permissions_of(file) == Permissions(tuple(allow), tuple(deny))


def test_permissions_when_users_have_names_then_have_both(file: Path) -> None:
    user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
    os.chown(file, os.geteuid(), os.getegid())
    file.chmod(0o640)

    found = permissions_of(file).allow

    assert found == (f"uid:{os.geteuid()}", f"user:{user}", f"gid:{os.getegid()}", f"group:{group}")


def test_permissions_when_an_acl_has_a_mask_then_it_limits_users_and_groups(file: Path) -> None:
    entries = [(OWNER, 6, NO_ID), (USER, 4, 1002), (USER, 0, 1003), (GROUP_OF_FILE, 4, NO_ID), (GROUP, 4, 2002)]
    set_acl(file, *entries, (MASK, 4, NO_ID), (OTHER, 0, NO_ID))
    assert permissions_of(file) == Permissions(("uid:1001", "uid:1002", "gid:2001", "gid:2002"), ("uid:1003",))

    set_acl(file, *entries, (MASK, 3, NO_ID), (OTHER, 0, NO_ID))
    assert permissions_of(file) == Permissions(("uid:1001",))


def test_permissions_when_they_cannot_be_read_then_let_nobody_see_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (b"", b"\x03\0\0\0", struct.pack("<I", 2), struct.pack("<IHHI", 2, OTHER, 7, 0), b"\x02\0\0\0xx"):
        monkeypatch.setattr("searchcrawl.kinds.file.local.permissions._read_attribute", lambda *_, said=content: said)
        assert permissions_of(file) == UNREADABLE

    def fail(*_: object) -> bytes:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr("searchcrawl.kinds.file.local.permissions._read_attribute", fail)
    assert permissions_of(file) == UNREADABLE
    assert read_level(os.fsencode(file.parent), file.parent.stat()) == Level((NOBODY,))
    monkeypatch.setattr("searchcrawl.kinds.file.local.permissions._read_attribute", None)
    assert permissions_of(file) == UNREADABLE


def test_levels_when_folders_let_not_everyone_pass_then_are_those(file: Path) -> None:
    folder = file.parent
    folder.chmod(0o755)
    assert read_level(os.fsencode(folder), folder.stat()) is None
    os.chown(folder, 1001, 2001)
    folder.chmod(0o754)
    level = read_level(os.fsencode(folder), folder.stat())
    assert level == Level(("uid:1001", "gid:2001"))
    folder.chmod(0o705)
    assert read_level(os.fsencode(folder), folder.stat()) == Level(("uid:1001", EVERYONE), ("gid:2001",))

    inner = folder / "inner"
    inner.mkdir()
    assert next(iter(list_levels_above(os.fsencode(inner)))) == Level(("uid:1001", EVERYONE), ("gid:2001",))
    levels = Levels([Level(("a",)), Level(("a",))])
    descriptor = os.open(folder, os.O_RDONLY)
    levels(descriptor, folder.stat())
    os.close(descriptor)
    assert levels.found == (Level(("a",)), Level(("uid:1001", EVERYONE), ("gid:2001",)))


def test_permissions_when_compared_with_the_kernel_then_never_show_more(file: Path) -> None:
    """200 random ACLs and modes, 12 users of several groups; what is hidden from one who may read is rare."""
    seed = random.Random(7)
    users = [(number, tuple(seed.sample(range(2001, 2006), seed.randint(1, 3)))) for number in range(1001, 1013)]
    hidden = shown = 0
    for _ in range(200):
        os.chown(file, seed.choice(users)[0], seed.randint(2001, 2005))
        if os.listxattr(file):
            os.removexattr(file, ACL)
        if seed.random() < 0.5:
            file.chmod(seed.randint(0, 0o777))
        else:
            set_acl(file, *random_acl(seed))
        found = permissions_of(file)
        for user, groups in users:
            may = is_readable_by(file, user, groups)
            sees = is_seen(found, {EVERYONE, f"uid:{user}", *(f"gid:{group}" for group in groups)})
            assert may or not sees, (found, user, groups)
            shown += may and sees
            hidden += may and not sees
    assert shown > 500
    assert hidden < shown / 5


def random_acl(seed: random.Random) -> list[tuple[int, int, int]]:
    users = [(USER, seed.randint(0, 7), number) for number in sorted(seed.sample(range(1001, 1013), 2))]
    groups = [(GROUP, seed.randint(0, 7), number) for number in sorted(seed.sample(range(2001, 2006), 2))]
    others = [(MASK, seed.randint(0, 7), NO_ID), (OTHER, seed.choice([0, 0, 4, 7]), NO_ID)]
    return [(OWNER, seed.randint(0, 7), NO_ID), *users, (GROUP_OF_FILE, seed.randint(0, 7), NO_ID), *groups, *others]


def is_seen(found: Permissions, principals: set[str]) -> bool:
    return bool(principals & set(found.allow)) and not principals & set(found.deny)


def is_readable_by(path: Path, user: int, groups: Sequence[int]) -> bool:
    with become(user, groups):
        return os.access(path, os.R_OK, effective_ids=True)


@contextmanager
def become(user: int, groups: Sequence[int]) -> Iterator[None]:
    own = os.getgroups()
    os.setgroups(groups)
    os.setegid(groups[0])
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(own)


def test_permissions_when_their_reader_may_not_read_the_file_then_nothing_is_said(
    file: Path, as_nobody: Callable[[], AbstractContextManager[None]]
) -> None:
    file.chmod(0o600)

    with as_nobody(), pytest.raises(PermissionError):
        permissions_of(file)

"""A root over SFTP against real servers: what a name is, who may see it, and a session that is lost, slow or refused."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import asyncssh
import pytest

from searchcrawl.answer_headers import Level, find_permissions
from searchcrawl.codes import Code
from searchcrawl.kinds.file.remote.model import RemoteFailure, Thing, TooLarge
from searchcrawl.kinds.file.remote.sftp import SftpConnection
from searchcrawl.kinds.file.roots import list_roots
from searchcrawl.sources.config import Source
from tests.sftp_server import RunningSftp
from tests.source_files import loaded, write_project, write_source

#: Long enough ago for any clock.
OLD = 1_600_000_000


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    return tree


def build(folder: Path, url: str, *, timeout: float = 30.0, **table: Any) -> Source:
    write_project(folder)
    keys = "".join(f'{name} = "{value}"\n' for name, value in table.items())
    write_source(
        folder, f'type = "file"\n[file]\nroots = ["{url}"]\n{keys}[fetch]\nretries = 0\ntimeout_seconds = {timeout}\n'
    )
    return loaded(folder)


def connect(folder: Path, server: RunningSftp, tree: Path, **table: Any) -> SftpConnection:
    keys = {"key_file": server.key_file, "known_hosts": server.known_hosts, "username": server.user}
    source = build(folder, server.url(tree), **(keys | table))
    return SftpConnection(source, list_roots(source)[0].url)


def names(connection: SftpConnection, *way: bytes) -> dict[bytes, Thing]:
    return {thing.name: thing for page in connection.list_folder(way) for thing in page}


def test_folder_when_it_has_all_kinds_of_things_then_each_is_what_it_is(
    tmp_path: Path, tree: Path, sftp: RunningSftp, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "a.txt").write_text("apples")
    os.utime(tree / "a.txt", (OLD, OLD))
    (tree / "young").write_text("x")
    (tree / "d").mkdir()
    os.mkfifo(tree / "pipe")
    (tree / "link").symlink_to("a.txt")
    with socket.socket(socket.AF_UNIX) as place, closing(connect(tmp_path, sftp, tree)) as connection:
        # The path of a socket is short.
        monkeypatch.chdir(tree)
        place.bind("socket")
        found = names(connection)

    assert {name: thing.barred for name, thing in found.items()} == {
        b"a.txt": "",
        b"young": "",
        b"d": "",
        b"pipe": "is a pipe",
        b"link": "is a link",
        b"socket": "is a socket",
    }
    assert [name for name, thing in found.items() if thing.is_folder] == [b"d"]
    assert found[b"a.txt"][2:5] == (6, OLD * 1000, f"6 {OLD * 1000}".encode())
    assert found[b"young"].token == b""


def test_folder_when_it_has_many_names_then_they_come_in_parts(tmp_path: Path, tree: Path, sftp: RunningSftp) -> None:
    for number in range(2300):
        (tree / f"f{number}").touch()
    with closing(connect(tmp_path, sftp, tree)) as connection:
        parts = [len(part) for part in connection.list_folder(())]
        begun = connection.list_folder(())
        next(begun)
        begun.close()  # type: ignore[attr-defined]  # it is a generator
        again = len(names(connection))

    assert (sum(parts), again) == (2300, 2300)
    assert max(parts) <= 1000


def test_file_when_it_is_behind_a_link_then_is_neither_listed_nor_read(
    tmp_path: Path, tree: Path, sftp: RunningSftp
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("canary")
    (tree / "link").symlink_to(tmp_path / "outside")
    with closing(connect(tmp_path, sftp, tree)) as connection:
        for ask in (lambda: names(connection, b"link"), lambda: connection.read((b"link", b"x"), 100)):
            with pytest.raises(RemoteFailure, match="is a link, or is behind one") as caught:
                ask()
            assert not caught.value.is_absent
        assert connection.look((b"link", b"x")).barred == "is behind a link"
        os.mkfifo(tree / "pipe")
        with pytest.raises(RemoteFailure, match="is a pipe"):
            connection.read((b"pipe",), 100)
        (tmp_path / "outside" / "x").rename(tree / "large")
        with pytest.raises(TooLarge):
            connection.read((b"large",), 5)
        assert connection.read((b"large",), 6).body == b"canary"


def test_permissions_when_modes_count_then_are_numbers_and_the_folders_above(
    tmp_path: Path, tree: Path, sftp: RunningSftp
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    for path in [tree, *tree.parents]:
        if path.owner() == "root" and not path.stat().st_mode & stat.S_IXOTH:
            path.chmod(path.stat().st_mode | stat.S_IXGRP | stat.S_IXOTH)
    (tree / "d").mkdir(mode=0o750)
    (tree / "d" / "x").write_text("x")
    (tree / "d" / "x").chmod(0o604)
    for path in (tree / "d", tree / "d" / "x"):
        os.chown(path, 4711, 4712)
    os.utime(tree / "d" / "x", (OLD, OLD))
    with closing(connect(tmp_path, sftp, tree, permissions="posix")) as connection:
        found = find_permissions(connection.read((b"d", b"x"), 10).headers)
        before = names(connection, b"d")[b"x"].token
        (tree / "d").chmod(0o700)
        after = names(connection, b"d")[b"x"].token

    assert found is not None
    assert (found.allow, found.deny) == (("uid:4711", "everyone"), ("gid:4712",))
    assert found.levels[-1] == Level(("uid:4711", "gid:4712"))
    assert before != after


def test_session_when_the_server_starts_anew_then_is_opened_again(
    tmp_path: Path, tree: Path, sftp: RunningSftp
) -> None:
    (tree / "x").write_text("x")
    with closing(connect(tmp_path, sftp, tree)) as connection:
        assert connection.read((b"x",), 9).body == b"x"
        sftp.stop()
        try:
            with pytest.raises(RemoteFailure) as caught:
                connection.look((b"x",))
        finally:
            sftp.start()
        assert (caught.value.code, caught.value.transient) == (Code.CONNECTION_REFUSED, True)
        assert connection.read((b"x",), 9).body == b"x"
        sftp.stop()
        sftp.start()
        assert connection.read((b"x",), 9).body == b"x"


def test_server_when_it_never_answers_then_the_time_is_limited(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = build(tmp_path, f"sftp://127.0.0.1:{silent.getsockname()[1]}/", timeout=0.3)
        with pytest.raises(RemoteFailure, match=r"no answer within 0\.3 seconds") as caught:
            SftpConnection(source, list_roots(source)[0].url)
    assert (caught.value.code, caught.value.transient) == (Code.TIMEOUT, True)


def test_server_when_its_name_has_no_address_then_is_said_so(tmp_path: Path) -> None:
    source = build(tmp_path, "sftp://no-such-host.invalid/")
    with pytest.raises(RemoteFailure) as caught:
        SftpConnection(source, list_roots(source)[0].url)
    assert (caught.value.code, caught.value.transient) == (Code.ADDRESS_NOT_FOUND, True)


class _Door(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("anna", "secret")


@contextmanager
def another_server(folder: Path, key: Path) -> Iterator[int]:
    """A server of another make, which shows a folder as its top to whoever knows the password; its port."""
    ports: SimpleQueue[int] = SimpleQueue()
    loop = asyncio.new_event_loop()
    ends = asyncio.Event()

    async def serve() -> None:
        server = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=_Door,
            server_host_keys=[str(key)],
            sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=os.fsencode(folder)),
        )
        ports.put(server.get_port())
        await ends.wait()
        server.close()
        await server.wait_closed()

    with ThreadPoolExecutor(1) as threads:
        served = threads.submit(loop.run_until_complete, serve())
        try:
            yield ports.get(timeout=30)
        finally:
            loop.call_soon_threadsafe(ends.set)
            served.result()
            loop.close()


def test_password_when_it_is_right_then_lets_in_and_when_wrong_then_not(
    tmp_path: Path, tree: Path, sftp: RunningSftp
) -> None:
    (tree / "d").mkdir()
    (tree / "d" / "x").write_text("apples")
    with another_server(tree, sftp.folder / "host_key") as port:
        known = tmp_path / "known"
        known.write_text(f"[127.0.0.1]:{port} {(sftp.folder / 'host_key.pub').read_text()}")
        keys = {"known_hosts": known, "username": "anna"}
        source = build(tmp_path, f"sftp://127.0.0.1:{port}/d", password="secret", **keys)
        with closing(SftpConnection(source, list_roots(source)[0].url)) as connection:
            assert connection.read((b"x",), 100).body == b"apples"
            assert list(names(connection)) == [b"x"]
        source = build(tmp_path, f"sftp://127.0.0.1:{port}/d", password="very-secret-word", **keys)
        with pytest.raises(RemoteFailure, match="the server refuses the login") as caught:
            SftpConnection(source, list_roots(source)[0].url)
    assert (caught.value.code, caught.value.transient) == (401, False)
    assert "very-secret-word" not in str(caught.value)

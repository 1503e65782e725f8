"""Folders and files of WebDAV servers: two real ones, and one that answers as no server should."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

from searchcrawl.kinds.file.remote.model import RemoteFailure, Thing, TooLarge
from searchcrawl.kinds.file.remote.webdav import DavConnection
from searchcrawl.sources.config import Source
from tests import webdav_server
from tests.certificates import write_certificate
from tests.proxy_server import ProxyServer
from tests.tcp_server import TcpServer, read_head
from tests.webdav_server import PASSWORD, USER, Apache, Wsgidav, start_apache, start_wsgidav

OLD = 1_000_000_000
NAMES = [
    "a.txt",
    "b #1?.txt",
    "100%25 ü+&;<x>.txt",
    "n\nl.txt",
    "x%2fy",
    "~$x.docx",
    "\u00e9.txt",
    "e\u0301.txt",
    ".hidden",
]


def fill(root: Path) -> None:
    for name in NAMES:
        (root / name).write_text(f"this is {name}")
        os.utime(root / name, (OLD, OLD))
    (root / "sub dir" / "deep").mkdir(parents=True, exist_ok=True)
    (root / "sub dir" / "c.txt").write_text("a file in a folder")
    (root / "sub dir" / "deep" / "d.txt").write_text("a file that is deeper")


def connect(url: str, *, fetch: dict[str, Any] | None = None, **table: Any) -> DavConnection:
    given = {"roots": [url], **table}
    source = Source.model_validate(
        {"name": "share", "path": "sources/share.toml", "type": "file", "file": given, "fetch": fetch or {}}
    )
    return DavConnection(source, f"{url}/", user_agent="tests/1 (+http://me.test)")


def list_all(connection: DavConnection, *way: bytes) -> dict[bytes, Thing]:
    return {thing.name: thing for part in connection.list_folder(way) for thing in part}


def fail(work: Callable[[], object]) -> RemoteFailure:
    with pytest.raises(RemoteFailure) as failure:
        work()
    return failure.value


@pytest.fixture(params=["wsgidav", "apache"])
def server(request: pytest.FixtureRequest, tmp_path: Path, part_missing: Callable[[str], NoReturn]) -> Iterator[Any]:
    try:
        found = start_wsgidav(tmp_path) if request.param == "wsgidav" else start_apache()
    except webdav_server.PartMissing as error:
        part_missing(str(error))
    with found:
        fill(found.root)
        yield found


@pytest.fixture(scope="module")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wsgidav]:
    with start_wsgidav(tmp_path_factory.mktemp("share")) as found:
        yield found


@pytest.fixture
def hostile(one_server: Wsgidav) -> Wsgidav:
    """A server that answers as it is told, and until then what is true."""
    one_server.instead = lambda method, path: None
    one_server.requests.clear()
    fill(one_server.root)
    return one_server


@pytest.mark.parametrize("login", ["basic", "digest"])
@pytest.mark.parametrize("start", ["wsgidav", "apache"])
def test_password_when_it_is_right_then_all_is_seen_and_a_wrong_one_is_sent_once(
    tmp_path: Path, login: str, start: str, part_missing: Callable[[str], NoReturn]
) -> None:
    try:
        server: Wsgidav | Apache = (
            start_wsgidav(tmp_path, login=login) if start == "wsgidav" else start_apache(login=login)
        )
    except webdav_server.PartMissing as error:
        part_missing(str(error))
    with server:
        fill(server.root)
        with closing(connect(server.url, username=USER, password=PASSWORD)) as connection:
            assert connection.read((b"a.txt",), 100).body == b"this is a.txt"
            assert len(list_all(connection)) == len(NAMES) + 1
        asked = len(server.requests)
        wrong = fail(lambda: connect(server.url, username=USER, password="wrong-one"))
        nobody = fail(lambda: connect(server.url))

        assert (wrong.code, wrong.transient, nobody.code) == (401, False, 401)
        assert "wrong-one" not in str(wrong)
        assert len(server.requests) == asked + 3


def test_tree_when_listed_and_read_then_is_that_of_the_disk(server: Wsgidav | Apache) -> None:
    with closing(connect(server.url)) as connection:
        found = list_all(connection)
        assert {thing.name: thing.is_folder for thing in found.values()} == {
            **{name.encode(): False for name in NAMES},
            b"sub dir": True,
        }
        for name in NAMES:
            way = (name.encode(),)
            assert connection.look(way) == found[way[0]]
            assert found[way[0]].size == (server.root / name).stat().st_size
            assert found[way[0]].modified_ms == OLD * 1000
            assert found[way[0]].token
            file = connection.read(way, 1000)
            assert file.body == (server.root / name).read_bytes()
            assert dict(file.headers) == {b"Last-Modified": b"Sun, 09 Sep 2001 01:46:40 GMT"}
        assert list_all(connection, b"sub dir").keys() == {b"c.txt", b"deep"}
        assert connection.look((b"sub dir",)).is_folder
        assert connection.look(()).is_folder
    with closing(connect(f"{server.url}/sub%20dir")) as connection:
        assert connection.read((b"deep", b"d.txt"), 100).body == b"a file that is deeper"


def test_token_when_a_file_is_young_or_changes_then_tells_versions_apart(server: Wsgidav | Apache) -> None:
    with closing(connect(server.url)) as connection:
        before = list_all(connection)
        assert list_all(connection, b"sub dir")[b"c.txt"].token == b""
        (server.root / "a.txt").write_text("this is b.txt")
        os.utime(server.root / "a.txt", (OLD + 7, OLD + 7))
        after = list_all(connection)

        assert {name for name in before if before[name].token != after[name].token} == {b"a.txt"}


def test_thing_when_it_is_not_there_then_is_absent_and_what_is_forbidden_is_not(server: Wsgidav | Apache) -> None:
    with closing(connect(server.url)) as connection:
        for ask in (
            connection.look,
            lambda way: connection.read(way, 10),
            lambda way: list(connection.list_folder(way)),
        ):
            failure = fail(lambda ask=ask: ask((b"nothing",)))
            assert (failure.code, failure.is_absent) == (404, True)
        assert fail(lambda: connection.read((b"sub dir",), 10)).is_absent
        with pytest.raises(TooLarge):
            connection.read((b"a.txt",), 12)
        assert connection.read((b"a.txt",), 13).body == b"this is a.txt"
        if isinstance(server, Apache) and os.geteuid() == 0:
            (server.root / "a.txt").chmod(0)
            failure = fail(lambda: connection.read((b"a.txt",), 100))
            assert (failure.code, failure.is_absent) == (403, False)


def test_server_when_it_ends_and_comes_back_then_the_same_connection_goes_on(server: Wsgidav | Apache) -> None:
    with closing(connect(server.url)) as connection:
        assert b"a.txt" in list_all(connection)
        server.stop()
        for work in (lambda: list_all(connection), lambda: connection.read((b"a.txt",), 100)):
            failure = fail(work)
            assert (failure.code, failure.transient, failure.is_absent) == (906, True, False)
        assert fail(lambda: connect(server.url)).transient
        server.start()
        assert b"a.txt" in list_all(connection)


def test_server_when_it_has_a_certificate_then_only_a_known_one_is_taken(tmp_path: Path) -> None:
    from cheroot.ssl.builtin import BuiltinSSLAdapter

    pem = write_certificate(tmp_path, host="site.test")
    with start_wsgidav(tmp_path, tls=BuiltinSSLAdapter(str(pem), str(pem))) as server:
        fill(server.root)
        url = f"davs://site.test:{server.port}"
        resolve = {"site.test": "127.0.0.1"}
        with closing(connect(url, fetch={"resolve": resolve, "ca_file": str(pem)})) as connection:
            assert b"a.txt" in list_all(connection)
        with closing(connect(server.url.replace("dav:", "davs:"), fetch={"verify_certificates": False})) as connection:
            assert b"a.txt" in list_all(connection)
        unknown = fail(lambda: connect(url, fetch={"resolve": resolve}))
        other = fail(lambda: connect(server.url.replace("dav:", "davs:"), fetch={"ca_file": str(pem)}))

    assert (unknown.code, other.code) == (962, 962)


def test_proxy_when_there_is_one_then_all_goes_through_it(hostile: Wsgidav) -> None:
    with ProxyServer({}) as proxy, closing(connect(hostile.url, fetch={"proxy": proxy.url})) as connection:
        assert b"a.txt" in list_all(connection)
        assert connection.read((b"b #1?.txt",), 100).body == b"this is b #1?.txt"
        assert len(proxy.asked) == len(hostile.requests)
        assert all("user-agent: tests/1 (+http://me.test)" in head.lower() for head in proxy.heads)


BEGIN = '<?xml version="1.0"?><multistatus xmlns="DAV:">'
FOLDER = (
    "<response><href>/</href><propstat><prop><resourcetype><collection/></resourcetype></prop></propstat></response>"
)
END = "</multistatus>"


def name_file(href: str, *, status: str = "") -> str:
    status = f"<status>HTTP/1.1 {status}</status>" if status else ""
    return f"<response><href>{href}</href>{status}<propstat><prop><resourcetype/><getetag>1</getetag></prop></propstat></response>"


def answer(hostile: Wsgidav, body: str, status: str = "207 Multi-Status", *headers: tuple[str, str]) -> None:
    hostile.instead = lambda method, path: (status, list(headers), body.encode())


@pytest.mark.parametrize(
    ("href", "name"),
    [
        ("http://other.test/a.txt", b"a.txt"),
        ("a.txt", b"a.txt"),
        ("//a.txt", b"a.txt"),
        ("/a#b?c.txt", b"a#b?c.txt"),
        ("/%61%2Etxt", b"a.txt"),
        ("/%FF%0a", b"\xff\n"),
    ],
)
def test_listing_when_names_are_written_in_other_ways_then_they_are_found(
    hostile: Wsgidav, href: str, name: bytes
) -> None:
    with closing(connect(hostile.url)) as connection:
        answer(hostile, BEGIN + FOLDER + name_file(href) * 2 + END)
        assert list_all(connection).keys() == {name}


def test_listing_when_it_has_all_that_is_below_then_only_the_folder_counts(hostile: Wsgidav) -> None:
    with closing(connect(hostile.url)) as connection:
        answer(
            hostile, BEGIN + name_file("/sub/x/y.txt") + name_file("/a.txt") + FOLDER + name_file("/sub/y.txt") + END
        )
        assert list_all(connection).keys() == {b"a.txt"}


def test_listing_when_a_name_has_a_slash_then_it_alone_is_left_out(hostile: Wsgidav) -> None:
    with closing(connect(hostile.url)) as connection:
        answer(hostile, BEGIN + FOLDER + name_file("/a%2F..%2Fb") + name_file("/c") + END)
        found = list_all(connection)

    assert {name for name, thing in found.items() if not thing.barred} == {b"c"}
    assert found[b"a%2F..%2Fb"].barred == "a slash in its name"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (FOLDER + name_file("/a.txt", status="403 Forbidden"), 403),
        (FOLDER + name_file("/a.txt", status="503 Busy"), 503),
        (FOLDER + name_file("/a.txt").replace("</propstat>", "<status>HTTP/1.1 401 no</status></propstat>"), 401),
        (FOLDER + name_file("/../etc/passwd"), 958),
        (FOLDER + name_file("/%2e%2e/etc/passwd"), 958),
        (name_file("/a.txt"), 958),
        (FOLDER.replace("<collection/>", "") + name_file("/a.txt"), 958),
        ("", 958),
        (FOLDER + name_file("/a.txt") + "<response>", 958),
    ],
)
def test_listing_when_a_part_of_it_is_wrong_then_it_is_not_whole(hostile: Wsgidav, body: str, code: int) -> None:
    with closing(connect(hostile.url)) as connection:
        answer(hostile, BEGIN + body + name_file("/b.txt") + END)
        assert fail(lambda: list_all(connection)).code == code


def test_listing_when_something_in_it_is_gone_then_it_is_whole(hostile: Wsgidav) -> None:
    with closing(connect(hostile.url)) as connection:
        answer(hostile, BEGIN + FOLDER + name_file("/a.txt", status="404 Not Found") + name_file("/b.txt") + END)
        assert list_all(connection).keys() == {b"b.txt"}


def test_listing_when_it_is_of_another_folder_then_is_refused(hostile: Wsgidav) -> None:
    with closing(connect(f"{hostile.url}/sub%20dir")) as connection:
        answer(hostile, BEGIN + FOLDER + name_file("/a.txt") + END)
        assert "does a proxy change its paths" in str(fail(lambda: list_all(connection)))
        answer(hostile, BEGIN + name_file(f"/%1B[2J%0A{'x' * 9999}") + END)
        said = str(fail(lambda: list_all(connection)))
        assert said.isprintable()
        assert len(said) <= 500
        answer(hostile, BEGIN + FOLDER.replace("/</href>", "/sub%20dir/deep/</href>") + END)
        assert "does not name the folder itself" in str(fail(lambda: list_all(connection)))


@pytest.mark.parametrize(
    ("status", "code", "is_absent", "transient"),
    [
        ("200 OK", 958, False, False),
        ("204 No Content", 958, False, False),
        ("304 Not Modified", 958, False, False),
        ("967 Gone", 958, False, False),
        ("302 Found", 302, False, False),
        ("403 Forbidden", 403, False, False),
        ("404 Not Found", 404, True, False),
        ("405 Method Not Allowed", 405, False, False),
        ("410 Gone", 410, True, False),
        ("500 Oops", 500, False, True),
        ("501 Not Implemented", 501, False, False),
        ("507 Full", 507, False, True),
    ],
)
def test_answer_when_it_is_no_listing_then_is_a_failure(
    hostile: Wsgidav, status: str, code: int, is_absent: bool, transient: bool
) -> None:
    page = "<html><title>Log in</title><form>" * 3000
    with closing(connect(hostile.url)) as connection:
        answer(
            hostile, page, status, ("Location", "http://127.0.0.1:1/login?next=secret"), ("Content-Type", "text/html")
        )
        for work in (lambda: list_all(connection), lambda: connection.look(()), lambda: connect(hostile.url)):
            failure = fail(work)
            assert (failure.code, failure.is_absent, failure.transient) == (code, is_absent, transient)
            assert "secret" not in str(failure)


def test_file_when_a_page_comes_in_its_place_then_is_not_read(hostile: Wsgidav) -> None:
    with closing(connect(hostile.url)) as connection:
        answer(hostile, "<html>We will be back soon", "200 OK")
        assert fail(lambda: connection.read((b"a.txt",), 1000)).code == 958


@pytest.mark.parametrize(
    ("path", "status", "is_absent"),
    [("sub dir", "405 No", True), ("a.txt", "405 No", False), ("a.txt", "204 No", False)],
)
def test_file_when_the_server_gives_none_then_only_a_folder_is_said_to_be_in_its_place(
    hostile: Wsgidav, path: str, status: str, is_absent: bool
) -> None:
    hostile.instead = lambda method, target: (status, [], b"") if method == "GET" else None
    with closing(connect(hostile.url)) as connection:
        assert fail(lambda: connection.read((path.encode(),), 1000)).is_absent == is_absent


def test_file_when_it_changes_while_it_is_read_then_is_read_again(hostile: Wsgidav) -> None:
    path = hostile.root / "a.txt"
    times = [0]

    def change(method: str, target: str) -> None:
        # Between the file and what is said of it.
        if method == "PROPFIND" and times[0] > 0:
            times[0] -= 1
            path.write_text("x" * times[0])

    with closing(connect(hostile.url)) as connection:
        hostile.instead = change
        times[0] = 1
        assert connection.read((b"a.txt",), 1000).body == b""
        times[0] = 100
        failure = fail(lambda: connection.read((b"a.txt",), 1000))
    assert (failure.code, failure.transient, failure.is_absent) == (958, True, False)


def test_pause_when_it_is_short_then_is_kept_and_a_long_one_fails_at_once(hostile: Wsgidav) -> None:
    with closing(connect(hostile.url)) as connection:
        answer(hostile, "", "429 Too Many Requests", ("Retry-After", "0"))
        assert fail(lambda: list_all(connection)).transient
        hostile.instead = lambda method, path: None
        assert list_all(connection)
        answer(hostile, "", "503 Service Unavailable", ("Retry-After", "3000"))
        assert fail(lambda: list_all(connection)).code == 503
        asked = len(hostile.requests)
        hostile.instead = lambda method, path: None
        failure = fail(lambda: connection.read((b"a.txt",), 100))

    assert (failure.code, failure.transient) == (503, True)
    assert len(hostile.requests) == asked


class CutServer(TcpServer):
    """Answers the first request of each connection, and cuts or stretches what it says."""

    def __init__(self, send: Callable[[CutServer, socket.socket, str], None]) -> None:
        super().__init__()
        self._send = send

    def serve(self, connection: socket.socket) -> None:
        while head := read_head(connection):
            self._send(self, connection, head.decode("latin-1").partition(" ")[0])


_HEAD = "HTTP/1.1 207 Multi-Status\r\nContent-Type: application/xml\r\n"
_WHOLE = BEGIN + FOLDER + name_file("/a.txt") + END


def send_whole(connection: socket.socket, body: str = _WHOLE) -> None:
    connection.sendall(f"{_HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode())


def cut_by_length(server: CutServer, connection: socket.socket, method: str) -> None:
    connection.sendall(f"{_HEAD}Content-Length: {len(_WHOLE)}\r\n\r\n{_WHOLE[:-20]}".encode())
    connection.close()


def cut_in_chunk(server: CutServer, connection: socket.socket, method: str) -> None:
    connection.sendall(f"{_HEAD}Transfer-Encoding: chunked\r\n\r\n{len(_WHOLE):x}\r\n{_WHOLE}\r\n".encode())
    connection.close()


def cut_without_length(server: CutServer, connection: socket.socket, method: str) -> None:
    connection.sendall(f"{_HEAD}Connection: close\r\n\r\n{_WHOLE[:-20]}".encode())
    connection.close()


def send_head_slowly(server: CutServer, connection: socket.socket, method: str) -> None:
    for letter in _HEAD.encode():
        connection.send(bytes([letter]))
        if server.stopping.wait(0.1):
            return


def send_body_slowly(server: CutServer, connection: socket.socket, method: str) -> None:
    connection.sendall(f"{_HEAD}Content-Length: 1000000\r\n\r\n{BEGIN}".encode())
    while not server.stopping.wait(0.1):
        connection.send(b" ")


def send_no_http(server: CutServer, connection: socket.socket, method: str) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
    connection.close()


@pytest.mark.parametrize(
    ("send", "code"),
    [
        (cut_by_length, 958),
        (cut_in_chunk, 958),
        (cut_without_length, 958),
        (send_head_slowly, 902),
        (send_body_slowly, 902),
        (send_no_http, 905),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_answer_when_it_is_cut_or_has_no_end_then_is_a_failure_that_may_pass(
    send: Callable[[CutServer, socket.socket, str], None], code: int
) -> None:
    with CutServer(send) as server:
        failure = fail(lambda: connect(f"dav://127.0.0.1:{server.port}", fetch={"timeout_seconds": 0.5}))

    assert (failure.code, failure.transient, failure.is_absent) == (code, True, False)


def test_file_when_it_is_cut_then_is_not_read() -> None:
    def send(server: CutServer, connection: socket.socket, method: str) -> None:
        if method == "PROPFIND":
            send_whole(connection, _WHOLE.replace("<getetag>", "<getcontentlength>9</getcontentlength><getetag>"))
            return
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n12345")
        connection.close()

    with CutServer(send) as server, closing(connect(f"dav://127.0.0.1:{server.port}")) as connection:
        failure = fail(lambda: connection.read((b"a.txt",), 100))

    assert (failure.code, failure.transient) == (958, True)


def test_folder_when_it_is_large_then_comes_in_parts_as_it_is_read(hostile: Wsgidav) -> None:
    number = 12_345
    with closing(connect(hostile.url)) as connection:
        answer(hostile, BEGIN + FOLDER + "".join(name_file(f"/{each}") for each in range(number)) + END)
        parts = [[thing.name for thing in part] for part in connection.list_folder(())]

    assert max(len(part) for part in parts) <= 1000
    assert {name for part in parts for name in part} == {b"%d" % each for each in range(number)}

"""L13, L6: what servers send wrongly to a page of the browser costs that part, and is read as a browser reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.crawl_forks import COMMANDS
from tests.hostile_server import HostileServer, whole
from tests.page_wall import need_browser
from tests.site.client import write_project

pytestmark = pytest.mark.extended

HOST: Final = "app.acme.test"
_FILLER: Final = " ".join(f"word{number}" for number in range(40))
_TEXT: Final = b"Content-Type: text/plain\r\n"
#: What comes back, and what a page reads of it; None is a network error.
PARTS: Final[dict[str, tuple[bytes, str | None]]] = {
    "old": (b"HTTP/1.0 200 OK\r\n" + _TEXT + b"\r\nold words", "old words"),
    "hints": (
        b"HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload; as=style\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" + _TEXT + b"\r\nhints",
        "hints",
    ),
    "trailers": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + _TEXT + b"\r\n5\r\ntrail\r\n0\r\nX-Later: 1\r\n\r\n",
        "trail",
    ),
    "cut": (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n" + _TEXT + b"\r\ncut", None),
    "cut-chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + _TEXT + b"\r\n500\r\ncut", None),
    "nothing": (b"", None),
    "garbage": (b"\x00\x01\x02 this is not http\r\n\r\n", None),
    "switch": (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", None),
    "lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", None),
    "folded": (b"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 6\r\n" + _TEXT + b"\r\nfolded", "folded"),
}


def build_page() -> str:
    """A page that shows what it reads of each part."""
    names = json.dumps([*PARTS, "endless"])
    code = (
        f"for (const name of {names}) fetch('/' + name).then(r => r.text()).then(t => t.slice(0, 40), e => 'broken')"
        ".then(t => document.getElementById('root').append(` ${name}=[${t}]`))"
    )
    text = f"document.getElementById('root').append('{_FILLER}');"
    return f"<title>parts</title><div id=root></div><script>{text}{code}</script>"


def test_l13_parts_when_servers_send_them_wrongly_then_the_page_reads_what_a_browser_reads(tmp_path: Path) -> None:
    need_browser()
    with HostileServer() as site:
        site.answers |= {"/": whole(build_page().encode()), **{f"/{name}": sent for name, (sent, _) in PARTS.items()}}
        # It sends a little for as long as somebody reads.
        site.act_as("/endless", "/drip-no-length")
        url = f"http://{HOST}:{site.port}/"
        write_project(
            tmp_path,
            site.port,
            start={"urls": [url], "sitemaps": "off"},
            scope={"include_hosts": [HOST]},
            fetch={"retries": 0, "timeout_seconds": 3, "delay_seconds": 0},
            robots={"obey": False},
            render={"mode": "always", "max_seconds": 8.0},
        )

        ended = COMMANDS.run(tmp_path, "test", url, "--source", "demo", "--render")

    read = {name: f"{name}=[{'broken' if text is None else text}]" for name, (_, text) in PARTS.items()}
    missing = {name: text for name, text in read.items() if text not in ended.stdout}
    assert not missing, ended.stdout + ended.stderr
    assert "endless=[broken]" in ended.stdout

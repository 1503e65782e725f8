"""A server that sends a secret back, in every word of its own that a text could quote: it is shown and kept nowhere (X-O3)."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.test_canary_secrets import files_with_secrets
from tests.crawl_forks import COMMANDS
from tests.hostile_server import HostileServer, head, redirect, whole
from tests.site.client import write_project
from tests.stored_rows import query_columns

SECRET: Final = "C4n4ry-Of-The-Header"
MARK: Final = SECRET.lower()
BODY: Final = b"<html><title>t</title><p>" + b"word " * 50


def typed(content_type: str, body: bytes = BODY, *headers: str) -> bytes:
    return head("200 OK", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers) + body


#: Each says the secret in one place of its answer.
ANSWERS: Final[dict[str, bytes]] = {
    "/type": typed(f"text/{SECRET}"),
    "/binary": typed(f"image/{SECRET}", b"\x00\x01\x02" * 50),
    "/large": typed(f"application/{SECRET}", b"\x00\x01" * 200_000),
    "/xml": typed(f"application/{SECRET}+xml", b"<?xml version='1.0'?><a><b>some words</b></a>"),
    "/charset": typed(f"text/html; charset={SECRET}"),
    "/binary-text": typed(
        "text/plain", b"\x00\x01\x02\x03" * 50, f"Content-Disposition: attachment; filename={SECRET}.txt"
    ),
    "/name": typed("application/octet-stream", b"words", f'Content-Disposition: attachment; filename="{SECRET}.zip"'),
    "/broken.zip": typed("application/zip", b"PK\x03\x04" + SECRET.encode()),
    "/broken.pdf": typed("application/pdf", b"%PDF-1.4\n" + f"/{SECRET} obj".encode()),
    "/coding": typed("text/html", gzip.compress(BODY), f"Content-Encoding: {SECRET}"),
    "/phrase": whole(BODY, f"404 {SECRET}"),
    "/phrase-500": whole(BODY, f"503 {SECRET}"),
    "/status": f"HTTP/1.1 {SECRET} x\r\n\r\n".encode(),
    "/header": head("200 OK", f"{SECRET} {SECRET}"),
    "/length": head("200 OK", f"Content-Length: {SECRET}"),
    "/chunk": head("200 OK", "Transfer-Encoding: chunked") + SECRET.encode() + b"\r\n",
    "/transfer": head("200 OK", f"Transfer-Encoding: {SECRET}") + b"x",
    "/basic": whole(BODY, "401 no", f'WWW-Authenticate: Basic realm="{SECRET}"'),
    "/scheme": whole(BODY, "401 no", f"WWW-Authenticate: {SECRET} realm=x"),
    "/retry": whole(BODY, "429 no", f"Retry-After: {SECRET}"),
    "/moved-nowhere": redirect("301 x", f"http://[{SECRET}"),
    "/moved-scheme": redirect("302 x", f"{SECRET}:x"),
    "/moved-outside": redirect("302 x", f"http://elsewhere.test/{SECRET}"),
    "/moved-long": redirect("302 x", f"/{SECRET}/" + "x" * 4000),
    "/robots-tag": whole(BODY, "200 OK", f"X-Robots-Tag: {SECRET}, noindex"),
    "/dates": whole(BODY, "200 OK", f"Last-Modified: {SECRET}", f"Date: {SECRET}"),
    "/refresh": whole(BODY, "200 OK", f"Refresh: 0;url=http://[{SECRET}"),
    "/cookie": whole(BODY, "200 OK", f"Set-Cookie: {SECRET}=1; Domain={SECRET}", f"Set-Cookie: {SECRET}"),
    "/language": whole(BODY, "200 OK", f"Content-Language: {SECRET}"),
    "/moved": redirect("302 x", f"/target?key={SECRET}"),
    "/moved-twice": redirect("302 x", f"/hop?key={SECRET}"),
    "/etag": whole(BODY, "200 OK", f'ETag: "{SECRET}"'),
    "/link": whole(BODY, "200 OK", f'Link: <http://[{SECRET}>; rel="canonical"'),
}


def read_cache(folder: Path) -> str:
    """All records of the cache."""
    segments = sorted((folder / "var" / "cache" / "demo").glob("*.warc.gz"))
    return "".join(gzip.decompress(path.read_bytes()).decode("latin-1") for path in segments)


COMMANDS_AFTER: Final = (
    *(("urls", "demo", *more) for more in ((), ("--json",))),
    *(("status", "demo", *more) for more in ((), ("--json",))),
    ("runs", "demo"),
)


@pytest.mark.parametrize("login", [False, True], ids=["plain", "login"])
def test_words_of_a_server_when_they_are_a_secret_then_nothing_shows_or_keeps_it(tmp_path: Path, login: bool) -> None:
    links = "".join(f"<a href='{path}'>{path}</a>" for path in ANSWERS)
    with HostileServer() as server:
        # No two of them are copies.
        server.answers |= {path: each.replace(b"word", path[1:5].encode().ljust(4)) for path, each in ANSWERS.items()}
        server.answers |= {
            "/": whole(f"<title>all</title>{links}".encode()),
            f"/target?key={SECRET}": whole(b"the target of a redirect"),
            f"/hop?key={SECRET}": redirect("302 x", "/end"),
            "/end": whole(b"the end of redirects"),
        }
        tables = {"login": {"type": "basic", "username": "u", "password": "p"}} if login else {}
        write_project(
            tmp_path,
            server.port,
            project={"logs": {"level": "DEBUG", "urls": True}},
            start={"urls": [f"{server.url}/"]},
            scope={"include_hosts": ["127.0.0.1"]},
            fetch={
                "headers": {"X-Key": {"env": "ECHOED"}},
                "retries": 0,
                "private_networks": ["127.0.0.1/32"],
                "timeout_seconds": 5,
            },
            **tables,
        )
        ended = COMMANDS.run(tmp_path, "crawl", "demo", ECHOED=SECRET)
        again = COMMANDS.run(tmp_path, "crawl", "demo", ECHOED=SECRET)
        told = [ended.stdout, ended.stderr, again.stdout, again.stderr]
        for words in COMMANDS_AFTER:
            answered = COMMANDS.run(tmp_path, *words, ECHOED=SECRET)
            told += [answered.stdout, answered.stderr]
        for path in ("/type", "/large", "/xml", "/charset", "/moved-outside", "/phrase", "/header"):
            for words in (("explain", "--live"), ("test", "--source", "demo")):
                answered = COMMANDS.run(tmp_path, *words, server.url + path, ECHOED=SECRET)
                told += [f"{words} {path}", answered.stdout, answered.stderr]
        assert sum(SECRET in each for each in server.requests) > len(ANSWERS)

    rows = query_columns(tmp_path, "SELECT * FROM urls")
    assert ended.returncode in {0, 3}
    assert "X-Crawler-Base-URI" in read_cache(tmp_path)
    assert len(rows) >= len(ANSWERS)
    found = {
        str((row["url"], name, value)) for row in rows for name, value in row.items() if MARK in str(value).lower()
    }
    found |= {line for line in "\n".join(told).splitlines() if MARK in line.lower()}
    found |= {line for line in read_cache(tmp_path).splitlines() if MARK in line.lower()}
    assert found | set(files_with_secrets(tmp_path)) == set()

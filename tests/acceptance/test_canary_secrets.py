"""O3: secrets of the environment and of files are used, and stand in no output, log, statistic or file, whoever sends them back."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, environment, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.crawl_forks import COMMANDS
from tests.hostile_server import HostileServer, head, redirect, whole
from tests.postgres_server import RunningPostgres
from tests.site.client import SiteProcess, write_project
from tests.stored_rows import query_columns

HOST: Final = "canary.acme.test"
#: With a blank and beyond a line's width: what Scrapy prints of settings is folded at blanks.
SECRETS: Final = {
    "HEADER": "Bearer c4n4ry-of-the-header " + "h" * 60,
    "SETTING": "c4n4ry of the setting " * 6 + "end",
    "STORE": "c4n4ry-of-the-store",
    "INDEX": "c4n4ry-of-the-index",
    "LOGIN": "c4n4ry-of-the-login",
}
MARK: Final = b"c4n4ry"
ASKED: Final = (
    ("status", "demo"),
    ("status", "demo", "--json"),
    ("sources", "show", "demo"),
    ("sources", "show", "demo", "--json"),
    ("sources", "check"),
    ("urls", "demo", "--json"),
    ("verify", "demo", "--json"),
)


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, one=page("one"), two=page("two"))
    site.set_behaviour(HOST, "/two.html", status=500)
    return site


def secret_project(site: SiteProcess, folder: Path, **tables: Any) -> CrawlProject:
    """A project whose source has a secret of each kind, and whose log says everything."""
    keys = source(site, HOST, headers={"Authorization": {"file": "keys/header"}, "X-Key": {"env": "CANARY_HEADER"}})
    settings = {
        # Scrapy writes these into its log, whoever set them.
        "AWS_SECRET_ACCESS_KEY": {"env": "CANARY_SETTING"},
        "FTP_PASSWORD": SECRETS["SETTING"],
        "MINE": {"token": {"env": "CANARY_SETTING"}},
    }
    login = {"type": "cookies", "fields": {"session": {"env": "CANARY_LOGIN"}}}
    project = new_project(
        folder, site, project={"logs": {"level": "DEBUG"}, **tables}, settings=settings, login=login, **keys
    )
    (folder / "keys").mkdir()
    (folder / "keys" / "header").write_text(SECRETS["HEADER"] + "\n", "utf-8")
    # A plain value in a source file is its owner's business; what is shown of it is ours.
    return project


def crawled(project: CrawlProject, monkeypatch: pytest.MonkeyPatch, *commands: tuple[str, ...]) -> tuple[int, str]:
    """The exit code of a crawl, and all that it and the commands after it wrote."""
    written = []
    for name, value in SECRETS.items():
        monkeypatch.setenv(f"CANARY_{name}", value)
    ended = project.crawl("-L", "DEBUG", "--logfile", str(project.folder / "copy.log"))
    written += [ended.errors, str(ended.status)]
    for command in commands:
        answered = project.command(*command)
        written += [answered.stdout, answered.stderr]
    return ended.exit_code, "\n".join(written)


def files_with_secrets(folder: Path) -> list[str]:
    """The files of a project that hold a canary, packed or not; those that have to are left out."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        content = path.read_bytes()
        if path.suffix == ".gz" or content.startswith(b"\x1f\x8b"):
            try:
                content += gzip.decompress(content)
            except (OSError, EOFError, zlib.error) as error:
                raise AssertionError(f"{name} cannot be unpacked") from error
        if MARK in content and name not in {"keys/header", "sources/demo.toml"}:
            found.append(name)
    return found


def test_crawl_when_it_has_secrets_then_they_are_sent_and_written_nowhere(
    site: SiteProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = secret_project(site, tmp_path)
    site.clear_log()

    exit_code, written = crawled(project, monkeypatch, *ASKED)

    sent = [entry["headers"] for entry in site.log(host=HOST, robots=False)]
    assert exit_code == 0
    assert {headers["authorization"] for headers in sent} == {headers["x-key"] for headers in sent}
    assert {headers["x-key"] for headers in sent} == {SECRETS["HEADER"]}
    assert {headers["cookie"] for headers in sent} == {f"session={SECRETS['LOGIN']}"}
    assert "Overridden settings" in project.log()
    assert "AWS_SECRET_ACCESS_KEY" in project.log()
    assert (tmp_path / "copy.log").stat().st_size > 0
    assert MARK.decode() not in written
    assert '{"env":"CANARY_HEADER"}' in written
    assert files_with_secrets(tmp_path) == []


def test_crawl_when_the_store_has_a_password_then_it_is_written_nowhere(
    site: SiteProcess, tmp_path: Path, postgres: RunningPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.create_database().replace("postgresql+psycopg://crawler:s3cret-of-the-store@", "", 1)
    monkeypatch.setenv("CANARY_STORE_URL", f"postgresql+psycopg://crawler:{SECRETS['STORE']}@{url}")
    project = secret_project(site, tmp_path, store={"url": {"env": "CANARY_STORE_URL"}})

    exit_code, written = crawled(project, monkeypatch, ("status", "demo"))

    assert exit_code == 0
    assert MARK.decode() not in written
    assert files_with_secrets(tmp_path) == []


@pytest.mark.parametrize(
    ("tables", "exit_code"),
    [
        ({"store": {"url": {"env": "CANARY_GONE_STORE"}}}, 7),
        ({"index": {"type": "solr", "url": {"env": "CANARY_GONE_INDEX"}}}, 6),
    ],
)
def test_crawl_when_store_or_index_cannot_be_reached_then_no_message_shows_its_password(
    site: SiteProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: dict[str, Any], exit_code: int
) -> None:
    monkeypatch.setenv("CANARY_GONE_STORE", f"postgresql+psycopg://me:{SECRETS['STORE']}@127.0.0.1:1/search")
    monkeypatch.setenv("CANARY_GONE_INDEX", f"http://me:{SECRETS['INDEX']}@127.0.0.1:1/solr/search")
    project = secret_project(site, tmp_path, **tables)
    hurried = CrawlProject(folder=project.folder, site=site, options=("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=2"))

    ended, written = crawled(hurried, monkeypatch, ("status", "demo", "--json"))

    assert ended == exit_code
    assert written.strip()
    assert MARK.decode() not in written
    assert files_with_secrets(tmp_path) == []


def test_crawl_when_a_password_is_given_as_an_argument_then_it_is_refused_and_not_repeated(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = new_project(tmp_path, site, **source(site, HOST))

    ended = project.crawl("-a", f"password={SECRETS['HEADER']}")

    assert ended.exit_code == 2
    assert ended.errors.splitlines()[-1].endswith("unknown spider argument: -a password (there is limit=N)")
    assert MARK.decode() not in ended.errors
    assert not any(name.startswith("CANARY") for name in environment())


ECHOED: Final = "C4n4ry-Of-The-Header"
ECHOED_MARK: Final = ECHOED.lower()
BODY: Final = b"<html><title>t</title><p>" + b"word " * 50


def typed(content_type: str, body: bytes = BODY, *headers: str) -> bytes:
    return head("200 OK", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers) + body


#: Each says the secret in one place of its answer.
ANSWERS: Final[dict[str, bytes]] = {
    "/type": typed(f"text/{ECHOED}"),
    "/binary": typed(f"image/{ECHOED}", b"\x00\x01\x02" * 50),
    "/large": typed(f"application/{ECHOED}", b"\x00\x01" * 200_000),
    "/xml": typed(f"application/{ECHOED}+xml", b"<?xml version='1.0'?><a><b>some words</b></a>"),
    "/charset": typed(f"text/html; charset={ECHOED}"),
    "/binary-text": typed(
        "text/plain", b"\x00\x01\x02\x03" * 50, f"Content-Disposition: attachment; filename={ECHOED}.txt"
    ),
    "/name": typed("application/octet-stream", b"words", f'Content-Disposition: attachment; filename="{ECHOED}.zip"'),
    "/broken.zip": typed("application/zip", b"PK\x03\x04" + ECHOED.encode()),
    "/broken.pdf": typed("application/pdf", b"%PDF-1.4\n" + f"/{ECHOED} obj".encode()),
    "/coding": typed("text/html", gzip.compress(BODY), f"Content-Encoding: {ECHOED}"),
    "/phrase": whole(BODY, f"404 {ECHOED}"),
    "/phrase-500": whole(BODY, f"503 {ECHOED}"),
    "/status": f"HTTP/1.1 {ECHOED} x\r\n\r\n".encode(),
    "/header": head("200 OK", f"{ECHOED} {ECHOED}"),
    "/length": head("200 OK", f"Content-Length: {ECHOED}"),
    "/chunk": head("200 OK", "Transfer-Encoding: chunked") + ECHOED.encode() + b"\r\n",
    "/transfer": head("200 OK", f"Transfer-Encoding: {ECHOED}") + b"x",
    "/basic": whole(BODY, "401 no", f'WWW-Authenticate: Basic realm="{ECHOED}"'),
    "/scheme": whole(BODY, "401 no", f"WWW-Authenticate: {ECHOED} realm=x"),
    "/retry": whole(BODY, "429 no", f"Retry-After: {ECHOED}"),
    "/moved-nowhere": redirect("301 x", f"http://[{ECHOED}"),
    "/moved-scheme": redirect("302 x", f"{ECHOED}:x"),
    "/moved-outside": redirect("302 x", f"http://elsewhere.test/{ECHOED}"),
    "/moved-long": redirect("302 x", f"/{ECHOED}/" + "x" * 4000),
    "/robots-tag": whole(BODY, "200 OK", f"X-Robots-Tag: {ECHOED}, noindex"),
    "/dates": whole(BODY, "200 OK", f"Last-Modified: {ECHOED}", f"Date: {ECHOED}"),
    "/refresh": whole(BODY, "200 OK", f"Refresh: 0;url=http://[{ECHOED}"),
    "/cookie": whole(BODY, "200 OK", f"Set-Cookie: {ECHOED}=1; Domain={ECHOED}", f"Set-Cookie: {ECHOED}"),
    "/language": whole(BODY, "200 OK", f"Content-Language: {ECHOED}"),
    "/moved": redirect("302 x", f"/target?key={ECHOED}"),
    "/moved-twice": redirect("302 x", f"/hop?key={ECHOED}"),
    "/etag": whole(BODY, "200 OK", f'ETag: "{ECHOED}"'),
    "/link": whole(BODY, "200 OK", f'Link: <http://[{ECHOED}>; rel="canonical"'),
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
            f"/target?key={ECHOED}": whole(b"the target of a redirect"),
            f"/hop?key={ECHOED}": redirect("302 x", "/end"),
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
        runs = [COMMANDS.run(tmp_path, "crawl", "demo", ECHOED=ECHOED) for _ in range(2)]
        told = [text for each in runs for text in (each.stdout, each.stderr)]
        for words in COMMANDS_AFTER:
            answered = COMMANDS.run(tmp_path, *words, ECHOED=ECHOED)
            told += [answered.stdout, answered.stderr]
        for path in ("/type", "/large", "/xml", "/charset", "/moved-outside", "/phrase", "/header"):
            for words in (("explain", "--live"), ("test", "--source", "demo")):
                answered = COMMANDS.run(tmp_path, *words, server.url + path, ECHOED=ECHOED)
                told += [f"{words} {path}", answered.stdout, answered.stderr]
        assert sum(ECHOED in each for each in server.requests) > len(ANSWERS)

    rows = query_columns(tmp_path, "SELECT * FROM urls")
    assert runs[0].returncode in {0, 3}
    assert "X-Crawler-Base-URI" in read_cache(tmp_path)
    assert len(rows) >= len(ANSWERS)
    found = {
        str((row["url"], name, value))
        for row in rows
        for name, value in row.items()
        if ECHOED_MARK in str(value).lower()
    }
    found |= {line for line in "\n".join(told).splitlines() if ECHOED_MARK in line.lower()}
    found |= {line for line in read_cache(tmp_path).splitlines() if ECHOED_MARK in line.lower()}
    assert found | set(files_with_secrets(tmp_path)) == set()

"""O3: secrets of the environment and of files are used, and stand in no output, log, statistic or file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, environment, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.postgres_server import RunningPostgres
from tests.site.client import SiteProcess

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
COMMANDS: Final = (
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

    exit_code, written = crawled(project, monkeypatch, *COMMANDS)

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

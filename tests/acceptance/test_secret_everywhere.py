"""A secret in each private place of a source file at once: it is used, and stands in nothing that is left or shown (X-O3).

The places are those of the model: a new key gets a secret by itself.
"""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

import pytest

from searchcrawl.cli import commands
from searchcrawl.kind import WEB
from searchcrawl.sources.privacy import Privacy
from tests.crawl_forks import COMMANDS
from tests.login_site import PASSWORD, USER, LoginSite
from tests.proxy_server import ProxyServer
from tests.secret_places import list_places
from tests.site.client import write_project
from tests.stored_rows import is_file, query

MARK: Final = "c4n4ry"
HOST: Final = "form.acme.test"
#: The words of each command; those that need no source have None.
WORDS: Final[Mapping[str, tuple[str, ...] | None]] = {
    "apply": ("demo-1",),
    "cache": ("count", "demo"),
    "completion": ("bash",),
    "crawl": ("demo",),
    # It would take away what the others are asked about.
    "delete": None,
    "doctor": (),
    "explain": ("{url}one.html", "--live"),
    "flush": ("demo",),
    "forget": None,
    "init": None,
    "list": (),
    "plan": ("demo",),
    "quarantine": ("list", "demo"),
    "quick": None,
    "receivers": ("list",),
    "recrawl": ("demo", "--failed"),
    "resend": ("demo",),
    "resume": ("demo",),
    # It ends when it is stopped.
    "run": None,
    "runs": ("demo",),
    "search": ("*",),
    # It has a project of its own.
    "selftest": None,
    "solr": None,
    "sources": ("show", "demo"),
    "status": ("demo",),
    "stop": ("demo",),
    "submit": ("{url}one.html", "--source", "demo"),
    "suspend": ("demo",),
    "test": ("{url}one.html", "--source", "demo"),
    "tick": (),
    "undelete": ("demo", "1"),
    "urls": ("demo",),
    "verify": ("demo",),
}
#: These show what the file says, or what became of a visit.
TELLING: Final = ("explain", "sources", "status", "test", "urls")
#: These write into Scrapy's own log if they are asked to.
VISITING: Final = {"explain", "test"}
FEED: Final = "ftp://me:c4n4ry-of-a-feed@feeds.acme.test/%(name)s.jsonl?signature=c4n4ry-of-a-query"
ODD: Final[Mapping[str, Any]] = {
    # Written into the file itself; a word that is public elsewhere is the name of some.
    "settings": {
        "MINE_FEEDS": {FEED: {"format": "jsonl", "overwrite": True}},
        "AWS_SECRET_ACCESS_KEY": "c4n4ry of a setting " * 6,
        "MINE": {"scope": {"env": "C4_SETTING"}, "clients": [{"apiKey": "c4n4ry of a client " * 6}]},
    },
    "headers": {
        "Authorization": "Bearer c4n4ry-of-a-header",
        "scope": {"env": "C4_HEADER"},
        "c4n4ry-of-a-name": "X-Api-Key",
    },
}


class ProcessList:
    """Looks for the mark in the command lines of all processes while it is open."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.looks = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stopped.wait(0.05):
            self.looks += 1
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    line = path.read_bytes().decode("utf-8", "replace")
                    if MARK in line and path.parent.name != str(os.getpid()):
                        self.found.add(line)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()


def private_keys() -> dict[tuple[str, str], Privacy]:
    """The keys of a source file whose values are not public, as (table, key)."""
    return {
        (place.tables[0] if place.tables else "", place.key): place.privacy
        for place in list_places()
        if place.privacy is not Privacy.PUBLIC
        and not place.is_table
        # Those of steps are for another kind of login: tests of the login in a browser look for them.
        and len(place.tables) < 2
        # Of a database: tests of tables look for its password.
        and WEB.has_key(*place.tables, place.key)
    }


def fill(given: Mapping[tuple[str, str], Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The tables with a secret in each private place, ``given`` or just a text, and the variables they come from."""
    tables: dict[str, Any] = {}
    variables: dict[str, str] = {"C4_SETTING": "c4n4ry of the environment " * 6, "C4_HEADER": "c4n4ry-of-a-scope"}
    for number, (table, key) in enumerate(private_keys()):
        value = given.get((table, key), f"{MARK}-{number}")
        if value is None:
            continue
        if isinstance(value, str):
            variables[f"C4_{number}"] = value
            value = {"env": f"C4_{number}"}
        if table:
            tables.setdefault(table, {})[key] = value
        else:
            tables[key] = value
    return tables, variables


def write(folder: Path, site: LoginSite, tables: Mapping[str, Any], **fetch: Any) -> None:
    filled = dict(tables)
    write_project(
        folder,
        site.port,
        project={"logs": {"level": "DEBUG"}},
        start={"urls": [site.url(host="form")]},
        scope={"include_hosts": [HOST]},
        fetch={"retries": 0, **filled.pop("fetch", {}), **fetch},
        **filled,
    )


def run_all(
    folder: Path, site: LoginSite, variables: Mapping[str, str], names: Collection[str] = WORDS
) -> tuple[int, str]:
    """The exit code of a crawl, and all that it and other commands printed."""
    begun = COMMANDS.run(folder, "crawl", "demo", "-L", "DEBUG", "--logfile", str(folder / "copy.log"), **variables)
    printed = [begun.stdout, begun.stderr]
    for name in names:
        words = WORDS[name]
        if words is not None:
            given = [word.format(url=site.url(host="form")) for word in words]
            logged = ("-L", "DEBUG", "--logfile", str(folder / f"{name}.log")) if name in VISITING else ()
            for option in (logged, ("--json",)):
                done = COMMANDS.run(folder, name, *given, *option, **variables)
                assert "Traceback" not in done.stderr
                printed += [done.stdout, done.stderr]
    return begun.returncode, "\n".join(printed)


def assert_nothing_is_left(folder: Path, printed: str) -> None:
    assert printed.strip()
    assert MARK not in printed
    mark = MARK.encode()
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix() for path in files if mark in path.read_bytes()}
    assert names <= {"sources/demo.toml"}
    assert all((folder / f"{name}.log").stat().st_size for name in ("copy", *VISITING))
    assert "Overridden settings" in (folder / "var" / "log" / "demo.log").read_text("utf-8")
    if not is_file(folder):
        names = {str(row[0]) for row in query(folder, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
        assert "urls" in names
        told = [str(row) for name in names for row in query(folder, f'SELECT * FROM "{name}"')]
        assert MARK not in "".join(told)


def test_commands_when_listed_then_each_is_asked_for_secrets() -> None:
    assert set(WORDS) == set(commands.list_names())


@contextmanager
def proxied() -> Iterator[tuple[ProxyServer, str]]:
    """A proxy that asks for a password, and its URL with that."""
    secret = base64.b64encode(b"me:c4n4ry-of-the-proxy").decode()
    with ProxyServer({HOST: "127.0.0.1"}, authorization=f"Basic {secret}") as proxy:
        yield proxy, f"http://me:c4n4ry-of-the-proxy@127.0.0.1:{proxy.port}"


def fill_rightly(site: LoginSite, proxy_url: str, *, plain: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """Tables with which the login works; ``plain``: some of the secrets stand in the file."""
    tables, variables = fill({
        ("login", "url"): f"{site.url('/login', 'form')}?next=/&key=c4n4ry-of-the-login-url",
        ("login", "username"): USER,
        ("login", "password"): PASSWORD,
        ("login", "form"): "form[method]:not(#c4n4ry-of-the-form)",
        ("login", "username_field"): "user",
        ("login", "password_field"): "pass",
        ("login", "check"): None,
        ("login", "fields"): {"scope": {"env": "C4_HEADER"}},
        ("fetch", "proxy"): proxy_url,
        ("fetch", "headers"): ODD["headers"],
        ("", "settings"): ODD["settings"],
    })  # fmt: skip
    tables["login"]["type"] = "form"
    if plain:
        tables["login"]["fields"] = {"session": "c4n4ry-of-a-field", "c4n4ry-of-a-key": "session"}
        for table, key in (("login", "password"), ("login", "url"), ("fetch", "proxy")):
            tables[table][key] = variables[tables[table][key]["env"]]
    return tables, variables


@pytest.mark.matrix
@pytest.mark.parametrize("plain", [False, True], ids=["references", "plain"])
def test_crawl_when_there_is_a_secret_everywhere_then_all_are_used_and_none_is_told(
    tmp_path: Path, plain: bool
) -> None:
    with ExitStack() as stack:
        site = stack.enter_context(LoginSite())
        proxy, proxy_url = stack.enter_context(proxied())
        processes = stack.enter_context(ProcessList())
        tables, variables = fill_rightly(site, proxy_url, plain=plain)
        # The proxy may have closed the connection on which the form is sent: then the login is tried again.
        write(tmp_path, site, tables, retries=1, resolve=None, private_networks=None)

        exit_code, printed = run_all(tmp_path, site, variables, TELLING if plain else WORDS)

        seen = site.seen("form")
    sent = {
        name: {one.headers.get(name) for one in seen} - {None}
        for name in ("authorization", "scope", "c4n4ry-of-a-name")
    }
    assert exit_code == 0
    assert sent == {
        "authorization": {"Bearer c4n4ry-of-a-header"}, "scope": {"c4n4ry-of-a-scope"}, "c4n4ry-of-a-name": {"X-Api-Key"},
    }  # fmt: skip
    assert "/login?next=/&key=c4n4ry-of-the-login-url" in {one.path for one in seen}
    assert any("c4n4ry" in one.body and one.method == "POST" for one in seen)
    assert proxy.asked
    assert processes.looks
    assert processes.found == set()
    assert_nothing_is_left(tmp_path, printed)


@pytest.mark.parametrize("away", [False, True], ids=["no-login", "no-proxy"])
def test_crawl_when_secrets_are_wrong_then_no_message_tells_them(tmp_path: Path, away: bool) -> None:
    with LoginSite() as site:
        tables, variables = fill({
            ("login", "url"): f"{site.url('/login', 'form')}?key=c4n4ry-of-the-login-url",
            ("login", "form"): "#c4n4ry-of-the-form",
            ("login", "fields"): {"robots": {"env": "C4_HEADER"}},
            ("fetch", "proxy"): "http://me:c4n4ry-of-the-proxy@127.0.0.1:1" if away else None,
            ("fetch", "headers"): ODD["headers"],
            ("", "settings"): ODD["settings"],
        })  # fmt: skip
        tables["login"]["type"] = "form"
        without = {"resolve": None, "private_networks": None} if away else {}
        write(tmp_path, site, tables, **without)

        exit_code, printed = run_all(tmp_path, site, variables, TELLING)

    assert exit_code == 8
    assert_nothing_is_left(tmp_path, printed)

"""The test site from a test's point of view: start it, change it, read its log, and point a source at it."""

from __future__ import annotations

import base64
import http.client
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self, TypedDict

from tests import backends
from tests.site.behaviour import is_aside, is_probe
from tests.site.forks import ForkedSite, start_site
from tests.site.toml_text import to_toml

ROOT: Final = Path(__file__).resolve().parents[2]
ADDRESS: Final = "127.0.0.1"


SCRAPY_CFG: Final = "[settings]\ndefault = searchcrawl.settings\n"
#: Also the names that must never be asked for lead to the site, so that its log shows them.
RESOLVED: Final = ("*.acme.test", "partner.test", "offsite.test", "elsewhere.test", "notacme.test", "*.evil.test")


class LogEntry(TypedDict):
    """One request as the site saw it; see ``RequestLog``."""

    time: float
    ended: float | None
    method: str
    host: str
    path: str
    query: str
    status: int | None
    headers: dict[str, str]
    bytes: int
    open: int


class SiteProcess:
    """A running test site; as a context manager it starts on entry and stops on exit.

    ``state`` keeps the log and the changes of pages (a temporary folder by default), so that a site started again there
    serves the same; behaviours end with the process. Port 0 takes a free one, which a restart keeps. Every change
    raises ValueError where it is refused.
    """

    def __init__(self, state: Path | None = None, *, port: int = 0, log: Path | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="site-") if state is None else None
        self.state = state if state is not None else Path(self._folder.name if self._folder else ".")
        self.port = port
        self.admin_port = 0
        self._log = log
        self._running: ForkedSite | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._folder is not None:
            self._folder.cleanup()

    def start(self) -> None:
        """Starts the process and waits until it listens; raises RuntimeError when it doesn't."""
        arguments = ["--port", str(self.port), "--admin-port", str(self.admin_port), "--state", str(self.state)]
        self._running = start_site([*arguments, *(["--log", str(self._log)] if self._log else [])])
        self.port, self.admin_port = self._running.ports

    def stop(self) -> None:
        """Ends the process, if it runs."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    def url(self, host: str = "www.acme.test", path: str = "/") -> str:
        """The URL of a page of this site."""
        return f"http://{host}:{self.port}{path}"

    def change(self, operation: str, *, method: str = "POST", **fields: Any) -> dict[str, Any]:
        """Sends one request to the admin interface (``tests.site.admin`` lists them) and returns its answer."""
        connection = http.client.HTTPConnection(ADDRESS, self.admin_port, timeout=30)
        try:
            connection.request(method, f"/-/{operation}", json.dumps(fields) if fields else None)
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise ValueError(f"{operation}: {answer['error']}")
        return answer

    def stage(self, name: str) -> None:
        """Lays a stage (``changed``) over the pages."""
        self.change("stage", name=name)

    def reset(self) -> None:
        """Back to the first stage, without behaviours, up; the log is kept."""
        self.change("reset")

    def set_page(self, host: str, path: str, body: str | bytes | None = None, **fields: Any) -> None:
        """Sets a page, or changes fields of it; ``Site.set_page`` names them."""
        if isinstance(body, bytes):
            fields["body_base64"] = base64.b64encode(body).decode("ascii")
        elif body is not None:
            fields["body"] = body
        self.change("page", host=host, path=path, **fields)

    def set_pages(self, host: str, bodies: Mapping[str, str]) -> None:
        """Sets the pages of these paths, all at once."""
        self.change("pages", pages=[{"host": host, "path": path, "body": body} for path, body in bodies.items()])

    def delete_page(self, host: str, path: str) -> None:
        """Makes a page answer 404."""
        self.change("page", method="DELETE", host=host, path=path)

    def set_behaviour(self, host: str = "*", path: str | None = None, **fields: Any) -> None:
        """Switches a rule on; ``Behaviour`` names the fields. Without path and prefix: each page."""
        self.change("behaviour", host=host, path=path, **fields)

    def clear_behaviours(self) -> None:
        """Switches all rules off."""
        self.change("behaviour", method="DELETE")

    def down(self) -> None:
        """Ends all connections and refuses new ones, for every host."""
        self.change("down")

    def up(self) -> None:
        """Takes connections again."""
        self.change("up")

    def pages(self) -> list[dict[str, Any]]:
        """What is served, generated pages left out."""
        served: list[dict[str, Any]] = self.change("pages", method="GET")["pages"]
        return served

    def log(self, *, host: str | None = None, robots: bool = True) -> list[LogEntry]:
        """The requests so far, in order of arrival; of one host, and without those for robots.txt, sitemaps and made-up paths, where asked."""
        entries: list[LogEntry] = self.change("log", method="GET")["requests"]
        return [
            entry
            for entry in entries
            if (host is None or entry["host"] == host)
            and (robots or not (is_aside(entry["path"]) or is_probe(entry["path"])))
        ]

    def requested(self) -> list[str]:
        """``host/path?query`` of each request but those for robots.txt, sitemaps and made-up paths, in order of arrival."""
        return [entry["host"] + _target(entry) for entry in self.log(robots=False)]

    def clear_log(self) -> None:
        """Forgets the requests so far."""
        self.change("log", method="DELETE")


def source_toml(site: SiteProcess | int, **overrides: Any) -> str:
    """The text of a sources/NAME.toml for a site (or its port).

    An override that is a table adds to the table of that name (``scope={"depth": 2}``; None takes a key out); any
    other is a key at the top (``title="…"``).
    """
    port = site if isinstance(site, int) else site.port
    tables: dict[str, Any] = {
        "type": "web",
        "title": "ACME Instruments",
        "start": {"urls": [f"http://www.acme.test:{port}/"]},
        "scope": {"include_hosts": ["acme.test"]},
        "fetch": {
            "delay_seconds": 0,
            "private_networks": [f"{ADDRESS}/32"],
            "resolve": dict.fromkeys(RESOLVED, ADDRESS),
        },
    }
    for name, value in overrides.items():
        old = tables.get(name)
        tables[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, Mapping) else value
    return to_toml(tables)


def project_toml(**overrides: Any) -> str:
    """The text of a searchcrawl.toml with the one mandatory value; overrides as in ``source_toml``."""
    return to_toml({"contact": "webmaster@acme.test", **overrides})


def write_project(
    folder: Path,
    site: SiteProcess | int,
    name: str = "demo",
    *,
    project: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Path:
    """Writes a project with one source for the site into ``folder`` and returns the folder."""
    sources = folder / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    (folder / "scrapy.cfg").write_text(SCRAPY_CFG, "utf-8")
    configure(folder, **(project or {}))
    (sources / f"{name}.toml").write_text(source_toml(site, **overrides), "utf-8")
    return folder


def configure(folder: Path, **given: Any) -> None:
    """Writes the searchcrawl.toml of a project."""
    # A test that names its store or its index means that one.
    chosen = {key: value for key, value in backends.current.tables(folder).items() if key not in given}
    (folder / "searchcrawl.toml").write_text(project_toml(**chosen, **given), "utf-8")


def _target(entry: LogEntry) -> str:
    return entry["path"] + (f"?{entry['query']}" if entry["query"] else "")

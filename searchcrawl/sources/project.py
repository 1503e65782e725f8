"""searchcrawl.toml as a value: the settings that all sources of a project share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import parse_qsl, quote, urlsplit

from pydantic import AfterValidator, Field

from searchcrawl import __version__
from searchcrawl.sources.config import Mode, Tables
from searchcrawl.sources.fetch_tables import WindowTable, Zone
from searchcrawl.sources.files import SOURCES_DIR
from searchcrawl.sources.plugin_classes import PluginName
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.receivers_table import ReceiverName, ReceiverTable
from searchcrawl.sources.values import (
    Check,
    Contact,
    Count,
    FilePath,
    IndexUrl,
    ListOf,
    PositiveAmount,
    PositiveCount,
    Product,
    PublicText,
    Table,
    Text,
    Umask,
    WebUrl,
    check_no_repeats,
    key,
    one_of,
    refuse,
    require_form,
)

FILE: Final = "searchcrawl.toml"
#: The contact of a new project, for its owner to change.
PLACEHOLDER_CONTACT: Final = "https://example.org/contact"
_MIME_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*")
_SQLITE: Final = "sqlite:///"
_POSTGRESQL: Final = "postgresql+psycopg://"
#: What a path keeps as it is in the URL of a file: all that means nothing else there.
_OF_PATHS: Final = "/ +~!$&'()*,;:=@[]"


#: Refuses a text that is no name of a parameter set or of a schedule.
_check_name: Final = require_form(re.compile(r"[A-Za-z0-9_-]+"), "names are made of A-Z a-z 0-9 _ -")


def _check_cron(text: str) -> str:
    # Only projects with schedules need it.
    from cronsim import CronSim, CronSimError  # noqa: PLC0415

    from searchcrawl import clock  # noqa: PLC0415  # see above

    try:
        # With six, the first one would be seconds.
        if len(text.split()) != 5:
            raise CronSimError
        next(CronSim(text, clock.now()))
    except CronSimError:
        refuse('not a cron expression, as "30 2 * * mon-fri"')
    except StopIteration:
        refuse("this moment never comes")
    return text


def _check_scrapyd(text: str) -> str:
    """Checks the parts of a URL; no message repeats its password."""
    parts = urlsplit(text)
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        refuse("must be the address of a scrapyd, as http://USER:PASSWORD@127.0.0.1:6800")
    try:
        # As it is asked for: it raises for a label that is empty or too long.
        host = (parts.hostname or "").removesuffix(".").encode("idna")
    except UnicodeError:
        host = b""
    if not host:
        refuse("not the name of a host")
    return text.rstrip("/")


ScrapydUrls = ListOf[Annotated[WebUrl, Privacy.SHOWN, Check(_check_scrapyd, "URL of a scrapyd")]]


class Schedule(Table):
    """Some sources, and when they are due: at the moments of ``cron``, or ``every_minutes`` after the last start."""

    sources: Annotated[ListOf[PublicText], AfterValidator(check_no_repeats)] = Field(
        description="The sources; a source is in one schedule only."
    )
    cron: Annotated[str, Privacy.PUBLIC, Check(_check_cron, "cron expression")] | None = key(
        None, "When the sources are due, in five fields; not together with `every_minutes`."
    )
    every_minutes: PositiveAmount | None = key(None, "The time from one start to the next.")
    window: WindowTable | None = key(None, "The only time of the week in which a run may begin.")
    timezone: Zone | None = key(None, "The time zone of `cron` and `window`; without it that of the machine.")
    mode: Mode | None = key(
        None, "What a run does that it starts, as `mode` of a source; without it what the source says."
    )
    misfire: Literal["run_once", "skip"] = key(
        "run_once",
        "What becomes of moments that passed while nothing could start a run: one run for all of them, or none.",
    )
    enabled: bool = key(True, "`false`: nothing is started, and moments that pass meanwhile are over.")
    scrapyd: ScrapydUrls = key(
        (), "The scrapyds that run the sources; without them the machine that `tick` or `run` is on does."
    )

    def _check_keys(self) -> None:
        if self.cron is not None and self.every_minutes is not None:
            refuse("not together with every_minutes", key="cron")
        if self.cron is None and self.every_minutes is None:
            refuse("is required, or every_minutes", key="cron")


def _check_schedules(schedules: Mapping[str, Schedule]) -> Mapping[str, Schedule]:
    """Refuses a source that two schedules hold (H1)."""
    holders: dict[str, str] = {}
    for name, schedule in schedules.items():
        for source in schedule.sources:
            other = holders.setdefault(source, name)
            if other != name:
                refuse(f"{source} is in schedules.{other} already: a source has one schedule", key=name)
    return schedules


Event = Literal["failed", "quarantine", "verify", "unreachable", "overdue", "not_started"]
EVENTS: Final[tuple[Event, ...]] = get_args(Event)
_ADDRESS: Final = re.compile(r"[^\s@<>()\[\],;:\\\"]+@[^\s@<>()\[\],;:\\\"]+")
#: The words of a command as they are written, with quotes and backslashes.
_WORDS: Final = re.compile(r"""(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s'"\\])+""")
_OF_SHELL: Final = re.compile(r"[0-9&]?(?:>>|[<>])|(?:\|\|?|&&?)$|;")
_LAST_OF_SHELL: Final = re.compile(r"(?<!\\);$")
_SERVER: Final = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?")


def _check_command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError:
        refuse("not a command: a quote is not closed")
    if not words:
        refuse("must not be empty")
    for word in _WORDS.findall(text):
        if (found := _OF_SHELL.match(word) or _LAST_OF_SHELL.search(word)) is not None:
            refuse(f"{found[0]} is for a shell, and none reads the command: have one run it, as sh -c '…'")
    return text


def _check_events(events: tuple[Event, ...]) -> tuple[Event, ...]:
    if not events:
        refuse("must not be empty")
    return tuple(dict.fromkeys(events))


class Notify(Table):
    """Who is told when a run fails or does not begin, deletions wait, the index differs or cannot be reached; each time once."""

    command: Annotated[Text, Check(_check_command, "command")] | None = key(
        None, "A program with its arguments, which no shell reads; it gets the event as JSON on standard input."
    )
    webhook: WebUrl | None = key(None, "A URL that the event is posted to, as JSON.")
    mail: Annotated[PublicText, Check(require_form(_ADDRESS, "not a mail address"), "mail address")] | None = key(
        None, "A mail address that the event is sent to."
    )
    mail_server: Annotated[
        str, Privacy.PUBLIC, Check(require_form(_SERVER, "must be HOST or HOST:PORT"), "host and port")
    ] = key("localhost:25", "The server that takes the mail.")
    on: Annotated[ListOf[Event], AfterValidator(_check_events)] = key(EVENTS, "What is told of.")

    def _check_keys(self) -> None:
        if self.mail is None and "mail_server" in self.model_fields_set:
            refuse("only together with mail", key="mail_server")
        if "on" in self.model_fields_set and not self.in_use:
            refuse("only together with command, webhook or mail: nobody is told", key="on")

    def list_shown(self) -> frozenset[str]:
        """A command that is the name of a program and nothing else has no secret, and people look for it."""
        words = shlex.split(self.command or "")
        return frozenset(words if len(words) == 1 else ())

    @property
    def in_use(self) -> bool:
        """Whether anybody is told."""
        return self.command is not None or self.webhook is not None or self.mail is not None


def _check_store_url(text: str) -> str:
    if text.startswith(_POSTGRESQL):
        return _check_postgresql_url(text)
    path = text.removeprefix(_SQLITE)
    if path == text or not path or path == ":memory:" or not path.isprintable() or set(path) & set("?#%"):
        refuse(f"must be {_SQLITE} and the path of a file, or {_POSTGRESQL}USER:PASSWORD@HOST/DATABASE of a database")
    return text


def _check_postgresql_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        refuse("not a URL of a database")
    if not text.isprintable() or " " in text or parts.fragment or port == 0:
        refuse("not a URL of a database")
    name = parts.path.removeprefix("/")
    if not name or "/" in name:
        refuse("must end in the name of a database")
    if any("password" in key for key, _ in parse_qsl(parts.query, keep_blank_values=True)):
        # In the URL it would be shown.
        refuse(f"the password belongs before the host: {_POSTGRESQL}USER:PASSWORD@HOST/DATABASE")
    return text


#: Where segments may be, by name; what opens them is in ``cache.opening``.
CACHE_LOCATIONS: Final = ["files"]

MimeType = Annotated[
    str, Privacy.PUBLIC, AfterValidator(require_form(_MIME_TYPE, 'must be a MIME type, as "image/vnd.djvu"'))
]
SetName = Annotated[str, Privacy.PUBLIC, AfterValidator(_check_name)]


class Store(Table):
    """Where the URL table is."""

    url: Annotated[str, Privacy.SHOWN, AfterValidator(_check_store_url)] = key(
        "sqlite:///var/searchcrawl.db",
        "`sqlite:///` and the path of a file, or `postgresql+psycopg://USER:PASSWORD@HOST/DATABASE`.",
    )
    retention_days: Count = key(
        90, "How long rows of gone and refused URLs, runs and deliveries are kept; 0 is for ever.", unit="days"
    )


class Cache(Table):
    """The document cache (E1, E2)."""

    dir: FilePath = key("var/cache", "The folder of the cache.")
    threshold_mb: PositiveAmount = key(
        250.0, "When decoded bodies that are not yet in the index reach this size, they are sent."
    )
    preserve: bool = key(True, "Keep documents in the cache after the index has them.")
    location: Annotated[str, Privacy.PUBLIC, one_of(CACHE_LOCATIONS, {"database"})] = key(
        "files", "Where documents are kept."
    )
    max_gb: PositiveAmount = key(
        20.0,
        "At this size fetching waits for the index; of what it has, superseded records are given up first, then"
        " the oldest.",
    )

    def _check_keys(self) -> None:
        # Fetching waits at max_gb for a delivery that starts at the threshold.
        if self.threshold_mb > self.max_gb * 1024:
            refuse("must not be more than cache.max_gb", key="threshold_mb")

    @property
    def threshold_bytes(self) -> int:
        return round(self.threshold_mb * 1024 * 1024)

    @property
    def max_bytes(self) -> int:
        return round(self.max_gb * 1024**3)


#: In the place of a type: a plan has an index that only counts (``PlanningReceiver``).
TRIAL_INDEX: Final[str] = "planning"


class Index(Table):
    """Where documents go."""

    type: Literal["local", "solr"] = key("local", "The embedded index, or a Solr server.")
    path: FilePath = key("var/index", "The folder of the embedded index.")
    url: IndexUrl | None = key(
        None, "The URL of the Solr server; it ends in the name of a core, a collection or an alias."
    )

    def _check_keys(self) -> None:
        if self.type == "solr" and self.url is None:
            refuse('is required where index.type is "solr"', key="url")
        if self.type == "local" and self.url is not None:
            # Documents would go where nobody who wrote this looks for them.
            refuse('is of a Solr server, and index.type is "local"', key="url")


class Logs(Table):
    """One log per source (J3)."""

    dir: FilePath = key("var/log", "The folder of the logs.")
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = key(
        "INFO", "The least level of lines that are written."
    )
    urls: bool = key(False, "A line for each visit: code, URL, bytes, milliseconds, what became of it.")
    max_bytes: PositiveCount = key(1_000_000, "A log that reaches this size is put aside.")
    backups: Count = key(2, "How many logs that were put aside are kept.", unit="files")


class Principals(Table):
    """Which groups a user is in: what all of these say is taken together."""

    file: FilePath | None = key(
        None,
        "A CSV file of users and their groups, a line each: `anna,staff`; `group:staff,all` puts a group into another.",
    )
    system: bool = key(False, "Take the groups that the accounts of this machine are in, with `uid:` and `gid:`.")
    class_: PluginName | None = Field(
        None,
        alias="class",
        description="A class of your own: its method `expand(user)` gives the groups of a user. It is asked again after 5 minutes.",
    )


class ProjectFile(Table):
    """All keys of searchcrawl.toml."""

    contact: Contact = Field(description="Whom the owner of a crawled site may ask; it is sent with each request.")
    user_agent: Product = key(
        "searchcrawl", "The first word of the User-Agent, and the name that robots.txt rules are found by."
    )
    store: Store = key(Store, "Where the URL table is.")
    cache: Cache = key(Cache, "Where fetched documents are kept, and how many.")
    index: Index = key(Index, "Where documents are sent.")
    receivers: Mapping[ReceiverName, ReceiverTable] = key(
        dict,
        "Who gets the documents of sources besides the index; a source names those that it has in its `receivers`.",
    )
    principals: Principals = key(Principals, "Which groups a user is in, for `search --as-user`.")
    require_user: bool = key(False, "Refuse a search that does not say as which user it is made (`--as-user`).")
    logs: Logs = key(Logs, "The log of each source.")
    notify: Notify = key(
        Notify,
        "Who is told when a run fails, deletions wait, the index differs or cannot be reached; each time once.",
    )
    converters: Mapping[MimeType, PluginName] = key(dict, "Classes of your own that read files, by MIME type.")
    umask: Umask = key("077", "Who may not read what is stored: folders are 0777 and files 0666 without it.")
    defaults: Tables = key(Tables, "Any table of a source file: the values of sources that do not set them.")
    parameters: Mapping[SetName, Tables] = key(
        dict, 'The same tables as a set, taken by sources with `parameters = "NAME"`.'
    )
    max_parallel: PositiveCount = key(
        2, "How many crawls `tick` and `run` have under way at the same time; more wait for their turn.", unit="crawls"
    )
    schedules: Annotated[Mapping[SetName, Schedule], AfterValidator(_check_schedules)] = key(
        dict, "When which sources are due, for `tick` and `run`."
    )


class Project(ProjectFile):
    """A project: its folder and its searchcrawl.toml. Relative paths start at ``root``.

    ``written`` is the content of the file, with references resolved; ``forgotten`` has the lines of ``forgotten.txt``.
    """

    root: Path
    forgotten: tuple[str, ...] = Field(default=(), repr=False)
    written: Mapping[str, Any] = Field(default_factory=dict, repr=False)

    def path(self, text: str) -> Path:
        """The absolute form of a path of a configuration file."""
        return self.root / text

    @property
    def sources_dir(self) -> Path:
        return self.root / SOURCES_DIR

    @property
    def database_url(self) -> str:
        """``store.url``, that of a file with its absolute path."""
        file = self.store_file
        # The folder of the project may have characters that mean something else in a URL.
        return self.store.url if file is None else f"{_SQLITE}{quote(str(file), safe=_OF_PATHS)}"

    @property
    def has_store(self) -> bool:
        """Whether the file of the database is there; a server's may be."""
        return self.store_file is None or self.store_file.is_file()

    @property
    def store_file(self) -> Path | None:
        """The file of the store; None where it is on a server."""
        path = self.store.url.removeprefix(_SQLITE)
        return None if path == self.store.url else self.path(path)

    @property
    def cache_dir(self) -> Path:
        return self.path(self.cache.dir)

    @property
    def index_dir(self) -> Path:
        """The folder of the local index."""
        return self.path(self.index.path)

    def of_receiver(self, name: str) -> Project:
        """The same project, with the receiver of this name, which is no class of a user's own, as its index."""
        table = self.receivers[name]
        place = {"path": table.path or f"var/receivers/{name}"} if table.type == "local" else {"url": table.url}
        index = self.index.model_copy(update={"type": table.type, **place})
        return self.model_copy(update={"index": index})

    @property
    def logs_dir(self) -> Path:
        return self.path(self.logs.dir)

    @property
    def plans_dir(self) -> Path:
        """The folder of the plans of edits."""
        return self.path("var/plans")

    def metrics_file(self, name: str) -> Path:
        """The metrics of a source's last run, for a collector of text files."""
        return self.path("var/metrics") / f"{name}.prom"

    def told_file(self, name: str) -> Path:
        """Which events of a source people were told of."""
        return self.path("var/told") / f"{name}.json"

    def said_file(self, name: str) -> Path:
        """The warnings that the last crawl of a source printed."""
        return self.path("var/told") / f"{name}.said"

    @property
    def stored_paths(self) -> tuple[Path, ...]:
        """All files and folders on this machine that crawls write, whether they are there or not."""
        database = self.store_file
        files = [] if database is None else [Path(f"{database}{suffix}") for suffix in ("", "-wal", "-shm")]
        indexes = (self.of_receiver(name).index_dir for name, each in self.receivers.items() if each.type == "local")
        folders = (self.cache_dir, self.index_dir, *indexes, self.logs_dir, self.plans_dir)
        return *files, *folders, self.metrics_file("").parent, self.told_file("").parent

    @property
    def user_agent_header(self) -> str:
        """What is sent as User-Agent: product, version, and whom to ask about the crawl."""
        return f"{self.user_agent}/{__version__} (+{self.contact})"

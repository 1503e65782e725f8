"""Looks at all that a run needs before it is needed, as a run itself finds it: nothing is requested of a site, nothing sent."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from searchcrawl import clock
from searchcrawl.cache.disk_space import list_folders, refuse_low
from searchcrawl.comparison.look import IndexLook
from searchcrawl.exceptions import (
    ConfigurationError,
    DeliveryError,
    DiskFull,
    SearchcrawlError,
    StoreError,
    StoreLocked,
)
from searchcrawl.http.address_guard import AddressGuard, build_guard
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.index.opening import use_index
from searchcrawl.index.receiver import LockedIndex, Receiver, SearchIndex
from searchcrawl.render.crawl_wall import PageRules
from searchcrawl.render.rendered_page import BrowserUnavailable
from searchcrawl.render.renderer import build_browser
from searchcrawl.scheduling.launching import AnswerLost, ScrapydRefused, name_of
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import read_start_urls
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.secrets import redact
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.opening import use_store
from searchcrawl.store.runs import job_table, lease, run_table
from searchcrawl.wording import counted

#: So long the store may be locked by others.
_STORE_SECONDS: Final = 5.0
_BROWSER_SECONDS: Final = 60.0
#: A job that no scrapyd has.
_NO_JOB: Final = "searchcrawl-doctor"
#: Of a folder so many entries are looked at.
_MOST_ENTRIES: Final = 10_000
#: Of the start URLs of a source so many hosts are looked at.
_MOST_HOSTS: Final = 50
_TLS_SECONDS: Final = 10.0
_LOOKUP_SECONDS: Final = 30.0
#: A certificate that ends sooner is a warning.
_SOON: Final = timedelta(days=14)
_RENEW: Final = "have it renewed"


class Health(StrEnum):
    """How something is that a run needs."""

    #: a run finds it
    OK = "ok"
    #: a run begins, and somebody should see to it
    WARNING = "warning"
    #: a run fails, or a part of it
    WRONG = "wrong"
    #: it was not looked at
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One thing that was looked at; ``remedy`` is what to do about it, None where nothing is to be done."""

    what: str
    state: Health
    message: object
    remedy: str | None = None
    source: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As ``--json`` has it, without secrets."""
        return {
            "what": self.what,
            "source": self.source,
            "state": self.state.value,
            "message": redact(str(self.message)),
            "remedy": None if self.remedy is None else redact(self.remedy),
        }


def examine(project: Project, sources: Mapping[str, Source], *, min_free_bytes: int) -> Iterator[HealthCheck]:
    """A check for each thing that runs of these sources need, beside the configuration files."""
    yield from _examine_folders(project, min_free_bytes)
    yield from _examine_store(project, sources)
    yield from _examine_receivers(project)
    for source in sources.values():
        yield from examine_names(project, source)
        yield from examine_certificates(project, source)
    yield from _examine_browser(project, sources)
    yield from _examine_scrapyds(project)
    yield from _examine_notify(project)


def _examine_folders(project: Project, min_free_bytes: int) -> Iterator[HealthCheck]:
    faults = {path: fault for path in project.stored_paths if (fault := _find_fault(project, path)) is not None}
    for path, fault in faults.items():
        remedy = "have it belong to the user of the crawls, who must be able to write it"
        yield HealthCheck("folders", Health.WRONG, f"{path}: {fault}", remedy)
    if not faults:
        yield HealthCheck("folders", Health.OK, f"those of {project.root} can be written")
    store = project.store_file
    try:
        refuse_low(list_folders(project, store.parent if store else None), min_free_bytes=min_free_bytes)
    except (DiskFull, OSError) as error:
        yield HealthCheck("space", Health.WRONG, error, "make room on that disk, or have the folder on another one")
    else:
        yield HealthCheck("space", Health.OK, f"more than {min_free_bytes >> 20} MB are left on each disk")


def _find_fault(project: Project, path: Path) -> str | None:
    """Why a file or folder of a project cannot be written, or cannot be made; None if it can."""
    if project.store_file is not None and str(path).startswith(str(project.store_file)):
        if path.exists():
            return None if os.access(path, os.R_OK | os.W_OK) else "cannot be written"
        path = path.parent
    folder = path
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        return f"{folder} is no folder"
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return f"{folder} cannot be written"
    entries = islice(os.scandir(path), _MOST_ENTRIES) if folder == path else ()
    foreign = next((each.name for each in entries if not os.access(each.path, os.R_OK | os.W_OK)), None)
    return None if foreign is None else f"{foreign} in it cannot be written"


def _examine_store(project: Project, sources: Mapping[str, Source]) -> Iterator[HealthCheck]:
    if not project.has_store:
        yield HealthCheck("store", Health.OK, "there is none yet: the first crawl makes it")
        yield from _examine_index(project, sources, None)
        return
    with ExitStack() as stack:
        database: Database | None = None
        try:
            database = stack.enter_context(use_store(project, patience_seconds=_STORE_SECONDS))
            # As a run does, which has to wait for whoever has it locked.
            database.write(lambda opened: None)
            yield HealthCheck("store", Health.OK, f"{database.name} can be read and written")
            yield from _examine_sources(database, sources)
        except StoreLocked as error:
            yield HealthCheck("store", Health.WRONG, error, "end the process that holds it, or wait for it")
            database = None
        except (StoreError, ConfigurationError) as error:
            yield HealthCheck("store", Health.WRONG, error, f"see to the database that store.url of {FILE} names")
            database = None
        yield from _examine_index(project, sources, database)


def _examine_sources(database: Database, sources: Mapping[str, Source]) -> Iterator[HealthCheck]:
    """Locks of sources, and times that are still to come: a clock that was wrong then, or is now."""

    def look(opened: Transaction) -> Iterator[HealthCheck]:
        holders, suspended, now_ms = lease.find_holders(opened), job_table.find_suspended(opened), clock.now_ms()
        late = []
        for name in sources:
            source_id = run_table.find_source(opened, name)
            if source_id is None:
                continue
            if source_id in holders:
                yield HealthCheck("locks", Health.OK, f"is held by {holders[source_id][1]}", source=name)
            if source_id in suspended:
                yield HealthCheck("locks", Health.WARNING, "is suspended", f"searchcrawl resume {name}", source=name)
            run = run_table.find_last(opened, source_id)
            if run is not None and run.is_later_than(now_ms):
                late.append(name)
        if late:
            message = f"it is {clock.iso(now_ms)}, and runs of {', '.join(late)} were later"
            remedy = "set the clock of this machine, if it is wrong (timedatectl)"
            yield HealthCheck("clock", Health.WARNING, message, remedy)
        else:
            yield HealthCheck("clock", Health.OK, f"it is {clock.iso(now_ms)}, later than all runs")

    yield from database.read(lambda opened: [*look(opened)])


def _examine_index(project: Project, sources: Mapping[str, Source], database: Database | None) -> Iterator[HealthCheck]:
    at = project.index.url or str(project.index_dir)
    try:
        with use_index(project) as index:
            if isinstance(index, SearchIndex):
                index.ping()
            if isinstance(index, LockedIndex):
                index.wait_for_writer()
            yield HealthCheck("index", Health.OK, f"{at} answers, and has our fields")
            if database is not None:
                yield from _compare(index, database, sources)
    except StoreError as error:
        yield HealthCheck("store", Health.WRONG, error, f"see to the database that store.url of {FILE} names")
    except (DeliveryError, DiskFull) as error:
        remedy = (
            f"start Solr, see to index.url of {FILE}, or make the core anew (searchcrawl solr configset DIR)"
            if project.index.type == "solr"
            else f"move {project.index_dir} away, and searchcrawl resend each source"
        )
        yield HealthCheck("index", Health.WRONG, error, remedy)


def _examine_receivers(project: Project) -> Iterator[HealthCheck]:
    """Asks the receivers besides the index that are indexes; no run needs them, and one that is away gets its part later."""
    for name, table in project.receivers.items():
        if table.type not in {"local", "solr"}:
            continue
        of_receiver = project.of_receiver(name)
        at = table.url or str(of_receiver.index_dir)
        try:
            with use_index(of_receiver) as index:
                if isinstance(index, SearchIndex):
                    index.ping()
        except (DeliveryError, DiskFull) as error:
            message = str(error).replace(f"{FILE}: index.", f"{FILE}: receivers.{name}.", 1)
            remedy = f"see to receivers.{name} of {FILE}, or searchcrawl receivers pause {name}"
            yield HealthCheck("receivers", Health.WARNING, message, remedy)
        else:
            yield HealthCheck("receivers", Health.OK, f"{name}: {at} answers, and has our fields")


def _compare(index: Receiver, database: Database, sources: Mapping[str, Source]) -> Iterator[HealthCheck]:
    """What ``status`` finds as well: an index that lost what it acknowledged."""
    look = IndexLook(index)
    for name in sources:
        finding = look.find(database, name)
        if finding is not None:
            # The command that mends it stands at its end.
            yield HealthCheck("index", Health.WRONG, finding.message, finding.message.rpartition(": ")[2], source=name)


class _NoWall:
    """The rules of a browser that opens no page."""

    def admit(self, url: str) -> PageRules:
        raise ValueError(f"{url} is not opened")


def _examine_browser(project: Project, sources: Mapping[str, Source]) -> Iterator[HealthCheck]:
    """Starts the browser once, where a source needs it."""
    needing = [each for each in sources.values() if each.render.in_use or each.login.type == "browser"]
    if not needing:
        yield HealthCheck("browser", Health.OK, "no source needs one")
        return

    async def start() -> None:
        browser = build_browser(project, needing[0], _NoWall())
        try:
            async with asyncio.timeout(_BROWSER_SECONDS):
                await browser.start()
        finally:
            await browser.close()

    try:
        asyncio.run(start())
    except (BrowserUnavailable, TimeoutError) as error:
        names = ", ".join(each.name for each in needing)
        remedy = "install it, or do without: docs/how-to/javascript.md"
        yield HealthCheck("browser", Health.WRONG, f"{str(error) or 'it does not start in time'} (for {names})", remedy)
    else:
        yield HealthCheck("browser", Health.OK, f"it starts, for {counted(len(needing), 'source', 'sources')}")


def _examine_scrapyds(project: Project) -> Iterator[HealthCheck]:
    urls = {name_of(url): url for each in project.schedules.values() if each.enabled for url in each.scrapyd}
    if not urls:
        return
    from searchcrawl.scheduling.scrapyd_client import ScrapydClient  # noqa: PLC0415  # heavy

    for name, url in urls.items():
        with closing(ScrapydClient(url)) as client:
            try:
                client.find_state(_NO_JOB)
            except (ScrapydRefused, AnswerLost) as error:
                yield HealthCheck(
                    "scrapyd", Health.WRONG, error, f"start it, or take it out of the schedules of {FILE}"
                )
            else:
                yield HealthCheck("scrapyd", Health.OK, f"{name} answers")


def _examine_notify(project: Project) -> Iterator[HealthCheck]:
    command = project.notify.command
    if command is not None:
        program = shlex.split(command)[0]
        if shutil.which(program) is None:
            yield HealthCheck("notify", Health.WRONG, f"{program} is no program", f"see to notify.command of {FILE}")
        else:
            yield HealthCheck("notify", Health.OK, f"{program} can be run")


def describe_errors(
    count: int,
    errors: Sequence[ConfigurationError],
    doubts: Sequence[ConfigurationError],
    project: Project | None = None,
) -> Iterator[HealthCheck]:
    """What ``sources check`` found, as checks."""
    for error in errors:
        what = "converters" if error.key.startswith("converters") else "files"
        yield HealthCheck(what, Health.WRONG, error, _find_remedy(error))
    for doubt in doubts:
        what = "contact" if doubt.key == "contact" else "files"
        yield HealthCheck(what, Health.WARNING, doubt, f"see to {doubt.file}")
    if not errors:
        yield HealthCheck("files", Health.OK, f"{counted(count, 'source', 'sources')}, no errors")
        if project is not None:
            own = counted(len(project.converters), "converter of your own", "converters of your own")
            yield HealthCheck("converters", Health.OK, f"{own}, no errors")
    if project is not None and not any(each.key == "contact" for each in doubts):
        yield HealthCheck("contact", Health.OK, project.contact)


def _find_remedy(error: ConfigurationError) -> str:
    if error.message.startswith("the environment variable ") and error.message.endswith(" is not set"):
        return "set it for the user of the crawls, and for what starts them"
    return f"mend it in {error.file}" if error.file else "mend it"


def skip_rest(error: SearchcrawlError) -> HealthCheck:
    """Nothing else can be looked at."""
    return HealthCheck("all else", Health.SKIPPED, f"not before {error} is mended")


def examine_names(project: Project, source: Source) -> Iterator[HealthCheck]:
    """Whether the hosts of the start URLs have addresses that may be reached."""
    if source.fetch.proxy:
        yield HealthCheck("names", Health.SKIPPED, "the proxy looks them up (fetch.proxy)", source=source.name)
        return
    hosts, more = _list_hosts(project, source)
    guard = build_guard(source.fetch)
    found = asyncio.run(_look_up(hosts, guard))
    wrong = 0
    for host, addresses in found.items():
        refused = [] if isinstance(addresses, OSError) else [a for a in addresses if not guard.decide(a).allowed]
        if isinstance(addresses, OSError):
            remedy = "see to the name, to this machine's name server, or name the address in fetch.resolve"
            yield HealthCheck("names", Health.WRONG, f"{host} is not found: {addresses}", remedy, source=source.name)
        elif len(refused) == len(addresses):
            remedy = f"if it is yours, put its network into fetch.private_networks of {source.path}"
            yield HealthCheck("names", Health.WRONG, f"{host}: {guard.explain(refused[0])}", remedy, source=source.name)
        else:
            continue
        wrong += 1
    if not wrong:
        beside = f", {more} more were not looked at" if more else ""
        text = f"{counted(len(found), 'host of start URLs is', 'hosts of start URLs are')} found{beside}"
        yield HealthCheck("names", Health.OK, text, source=source.name)


def _list_hosts(project: Project, source: Source, *, scheme: str = "") -> tuple[list[str], int]:
    """Hosts of start URLs, and how many more there are; with ``scheme`` with their ports."""
    try:
        parts = [urlsplit(url) for url in read_start_urls(project, source)]
    except ConfigurationError:
        # It is among the errors of the files.
        parts = []
    if scheme:
        names = dict.fromkeys(f"{each.hostname}:{each.port or 443}" for each in parts if each.scheme == scheme)
    else:
        names = dict.fromkeys(str(each.hostname) for each in parts)
    return [*names][:_MOST_HOSTS], max(len(names) - _MOST_HOSTS, 0)


async def _look_up(hosts: Sequence[str], guard: AddressGuard) -> dict[str, Sequence[str] | OSError]:
    """The addresses of hosts, found as a run finds them, or why there are none."""
    lookups = NameLookups()

    async def find(host: str) -> Sequence[str] | OSError:
        try:
            return [str(ip_address(host))]
        except ValueError:
            named = guard.addresses_for(host)
        try:
            async with asyncio.timeout(_LOOKUP_SECONDS):
                return named or await lookups.find(host)
        except TimeoutError:
            return OSError("the name server does not answer in time")
        except OSError as error:
            return error

    try:
        return dict(zip(hosts, await asyncio.gather(*map(find, hosts)), strict=True))
    finally:
        await lookups.close()


def examine_certificates(project: Project, source: Source) -> Iterator[HealthCheck]:
    """When the certificates of a source's files, and of the hosts of its start URLs, end."""
    files = source.fetch.tls_files(project.root)
    for key, path in (("ca_file", files.ca_file), ("client_certificate", files.client_certificate)):
        if path is not None and (ends := _read_ends(path)):
            # Of several authorities those that are over do not matter.
            end = max(ends) if key == "ca_file" else ends[0]
            yield _judge_end(f"fetch.{key}", end, _RENEW, source.name)
    if source.fetch.proxy or not source.fetch.verify_certificates:
        return
    guard = build_guard(source.fetch)
    for host in _list_hosts(project, source, scheme="https")[0]:
        yield from _examine_server(project, source, guard, host)


def _examine_server(project: Project, source: Source, guard: AddressGuard, server: str) -> Iterator[HealthCheck]:
    """Shakes hands with a server, as each connection does, and asks for no page."""
    host, _, port = server.rpartition(":")
    try:
        addresses = asyncio.run(_look_up([host], guard))[host]
        allowed = [] if isinstance(addresses, OSError) else [a for a in addresses if guard.decide(a).allowed]
        if not allowed:
            # The check of names says it.
            return
        context = source.fetch.tls_files(project.root).without_certificate().build_context(verify=True)
        with (
            socket.create_connection((allowed[0], int(port)), timeout=_TLS_SECONDS) as connection,
            context.wrap_socket(connection, server_hostname=host) as encrypted,
        ):
            certificate = encrypted.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        remedy = f"have its owner renew it, or name its authority in fetch.ca_file of {source.path}"
        yield HealthCheck("certificates", Health.WRONG, f"{server}: {error.verify_message}", remedy, source=source.name)
    except OSError as error:
        message = f"{server} cannot be reached: {error.strerror or error}"
        yield HealthCheck(
            "certificates", Health.WARNING, message, "see whether the server is up, and a firewall", source=source.name
        )
    else:
        end = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
        yield _judge_end(server, end, "have its owner renew it", source.name)


def _read_ends(path: Path) -> list[datetime]:
    """When the certificates in a file end; none where it cannot be read, which is among the errors of the files."""
    # Most sources have no files of certificates.
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415

    try:
        return [each.not_valid_after_utc for each in load_pem_x509_certificates(path.read_bytes())]
    except (OSError, ValueError):
        return []


def _judge_end(what: str, end: datetime, remedy: str, name: str) -> HealthCheck:
    left, day = end - clock.now(), end.date().isoformat()
    if left <= timedelta(0):
        return HealthCheck("certificates", Health.WRONG, f"{what}: its certificate ended on {day}", remedy, source=name)
    if left < _SOON:
        return HealthCheck(
            "certificates", Health.WARNING, f"{what}: its certificate ends on {day}", remedy, source=name
        )
    return HealthCheck("certificates", Health.OK, f"{what}: its certificate holds until {day}", source=name)

"""What ``doctor`` says of hosts: whether their names lead to addresses that may be reached, and how long certificates hold."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from searchcrawl import clock
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.http.address_guard import AddressGuard, build_guard
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.queries.checks import Check, find_doubtful, find_ok, find_skipped, find_wrong
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import read_start_urls
from searchcrawl.sources.project import Project
from searchcrawl.wording import counted

#: Of the start URLs of a source so many hosts are looked at.
_MOST_HOSTS: Final = 50
_TLS_SECONDS: Final = 10.0
_LOOKUP_SECONDS: Final = 30.0
#: A certificate that ends sooner is a warning.
_SOON: Final = timedelta(days=14)
_RENEW: Final = "have it renewed"


def examine_names(project: Project, source: Source) -> Iterator[Check]:
    """Whether the hosts of the start URLs have addresses that may be reached."""
    if source.fetch.proxy:
        yield find_skipped("names", "the proxy looks them up (fetch.proxy)", source=source.name)
        return
    hosts, more = _list_hosts(project, source)
    guard = build_guard(source.fetch)
    found = asyncio.run(_look_up(hosts, guard))
    wrong = 0
    for host, addresses in found.items():
        refused = [] if isinstance(addresses, OSError) else [a for a in addresses if not guard.decide(a).allowed]
        if isinstance(addresses, OSError):
            remedy = "see to the name, to this machine's name server, or name the address in fetch.resolve"
            yield find_wrong("names", f"{host} is not found: {addresses}", remedy, source=source.name)
        elif len(refused) == len(addresses):
            remedy = f"if it is yours, put its network into fetch.private_networks of {source.file}"
            yield find_wrong("names", f"{host}: {guard.explain(refused[0])}", remedy, source=source.name)
        else:
            continue
        wrong += 1
    if not wrong:
        beside = f", {more} more were not looked at" if more else ""
        text = f"{counted(len(found), 'host of start URLs is', 'hosts of start URLs are')} found{beside}"
        yield find_ok("names", text, source=source.name)


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


def examine_certificates(project: Project, source: Source) -> Iterator[Check]:
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


def _examine_server(project: Project, source: Source, guard: AddressGuard, server: str) -> Iterator[Check]:
    """Shakes hands with a server, as each connection does, and asks for no page."""
    host, _, port = server.rpartition(":")
    try:
        address = _find_allowed(host, guard)
        if address is None:
            # The check of names says it.
            return
        context = source.fetch.tls_files(project.root).without_certificate().build_context(verify=True)
        with (
            socket.create_connection((address, int(port)), timeout=_TLS_SECONDS) as connection,
            context.wrap_socket(connection, server_hostname=host) as encrypted,
        ):
            certificate = encrypted.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        remedy = f"have its owner renew it, or name its authority in fetch.ca_file of {source.file}"
        yield find_wrong("certificates", f"{server}: {error.verify_message}", remedy, source=source.name)
    except OSError as error:
        message = f"{server} cannot be reached: {error.strerror or error}"
        yield find_doubtful("certificates", message, "see whether the server is up, and a firewall", source=source.name)
    else:
        end = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
        yield _judge_end(server, end, "have its owner renew it", source.name)


def _find_allowed(host: str, guard: AddressGuard) -> str | None:
    """The first address of a host that may be reached."""
    addresses = asyncio.run(_look_up([host], guard))[host]
    return None if isinstance(addresses, OSError) else next((a for a in addresses if guard.decide(a).allowed), None)


def _read_ends(path: Path) -> list[datetime]:
    """When the certificates in a file end; none where it cannot be read, which is among the errors of the files."""
    # Most sources have no files of certificates.
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415

    try:
        return [each.not_valid_after_utc for each in load_pem_x509_certificates(path.read_bytes())]
    except (OSError, ValueError):
        return []


def _judge_end(what: str, end: datetime, remedy: str, name: str) -> Check:
    left, day = end - clock.now(), end.date().isoformat()
    if left <= timedelta(0):
        return find_wrong("certificates", f"{what}: its certificate ended on {day}", remedy, source=name)
    if left < _SOON:
        return find_doubtful("certificates", f"{what}: its certificate ends on {day}", remedy, source=name)
    return find_ok("certificates", f"{what}: its certificate holds until {day}", source=name)

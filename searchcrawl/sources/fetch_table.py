"""``[fetch]`` of a source: how pages are requested, and the files for TLS that it names (C1–C12)."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.schedule import Window, Zone
from searchcrawl.sources.values import (
    LIST,
    Address,
    Amount,
    Charset,
    Check,
    Count,
    FilePath,
    HeaderName,
    HeaderValue,
    Language,
    Networks,
    Origins,
    PositiveAmount,
    PositiveCount,
    ResolvedHost,
    Table,
    Text,
    refuse,
)

_LEAST_LOOKUPS: Final = 0.1
_PROXY_FORM: Final = "must be http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"


#: More are of no use: the first one has all that they read to write.
_MOST_PROCESSES: Final = 64

Processes = Annotated[int, Field(ge=1, le=_MOST_PROCESSES)]


class FetchWindow(Window):
    """One of ``fetch.windows``: the delay on these days between two times of the day (C2)."""

    delay_seconds: Amount = Field(description="The delay between two requests to a host in this time.")


def _check_proxy(text: str) -> str:
    """Checks the parts of a proxy's URL; no message repeats its password."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
        identity = urls.parse(f"http://{parts.netloc.rpartition('@')[2]}/")
    except (ValueError, InvalidUrl):
        refuse(_PROXY_FORM)
    plain = text.isascii() and text.isprintable() and not set(text) & set(' "<>\\^`{|}')
    if not plain or parts.scheme != "http" or not host or not port or parts.path not in {"", "/"}:
        refuse(_PROXY_FORM)
    if parts.query or parts.fragment or not identity.host or (parts.password is not None and not parts.username):
        refuse(_PROXY_FORM)
    return text


def _check_lookups(per_second: float) -> float:
    """Refuses limits with which a crawl would wait for minutes before it could go on, or end."""
    if 0 < per_second < _LEAST_LOOKUPS:
        refuse(f"must be 0, or at least {_LEAST_LOOKUPS:g}")
    return per_second


class Fetch(Table):
    """How pages are requested."""

    concurrency: PositiveCount = Field(
        8,
        json_schema_extra={"unit": "requests"},
        description="The requests of the source that may run at the same time.",
    )
    host_concurrency: PositiveCount = Field(
        4,
        json_schema_extra={"unit": "requests"},
        description="The requests to one host that may run at the same time; it is 1 while a delay is in force.",
    )
    processes: Processes = Field(
        1,
        json_schema_extra={"unit": "processes"},
        description="The processes of a run: one keeps the URL table and the index, the others visit and read pages. A source "
        "that logs in or renders is visited by one.",
    )
    max_minutes: Amount = Field(0.0, description="A run ends after this time with exit code 3; 0 is no limit.")
    sites: Count = Field(
        0, json_schema_extra={"unit": "hosts"}, description="The hosts that are asked at the same time; 0 is no limit."
    )
    delay_seconds: Amount = Field(
        1.0, description="The pause between two requests to a host; 0 only with the consent of the site's owner."
    )
    dns_per_second: Annotated[Amount, AfterValidator(_check_lookups)] = Field(
        0.0,
        json_schema_extra={"unit": "lookups"},
        description="The look-ups of host names a second of all crawls of the store that have this limit, 0.1 at least; 0 is "
        "no limit.",
    )
    windows: Annotated[tuple[FetchWindow, ...], LIST] = Field(
        (), description="Other delays by weekday and time of day."
    )
    timezone: Zone | None = Field(None, description="The time zone of `windows`; without it that of the machine.")
    timeout_seconds: PositiveAmount = Field(
        30.0, description="The longest time for one whole answer; each redirect starts anew."
    )
    max_bytes: PositiveCount = Field(
        32 * 1024 * 1024, description="The largest decoded body; a larger one ends the visit with code 960."
    )
    max_redirects: Count = Field(
        10, json_schema_extra={"unit": "redirects"}, description="The redirects that are followed for one URL."
    )
    retries: Count = Field(
        3, json_schema_extra={"unit": "visits"}, description="How often a failed visit is repeated in a run."
    )
    headers: Mapping[HeaderName, HeaderValue] = Field(
        default_factory=dict, description="Headers that are sent to the origins of the start URLs only."
    )
    headers_to: Origins = Field(
        (),
        description='Further origins, as `"https://api.example.org"`, that get `headers` and the client certificate. '
        "Neither is sent from https down to http.",
    )
    proxy: Annotated[Text, Privacy.SHOWN, Check(_check_proxy, "URL of an HTTP proxy")] | None = Field(
        None, description="The proxy for all requests; proxies of the environment are not used."
    )
    resolve: Mapping[ResolvedHost, Address] = Field(
        default_factory=dict,
        description='Addresses of host names, used in place of DNS; `"*.example.org"` is every host below it.',
    )
    verify_certificates: bool = Field(True, description="Refuse a host whose certificate is not valid (962).")
    ca_file: FilePath | None = Field(
        None, description="A PEM file of authorities to trust besides those of the machine."
    )
    client_certificate: FilePath | None = Field(
        None, description="A PEM file with the certificate that is presented to the origins that get `headers`."
    )
    client_key: FilePath | None = Field(None, description="The key of `client_certificate` if it is in another file.")
    private_networks: Networks = Field(
        (),
        description="Networks of private addresses that may be reached; all others are refused (907). Redirects to "
        "hosts outside the boundary reach them on the ports 80 and 443 and on those of the start URLs only.",
    )
    default_charset: Charset = Field("windows-1252", description="The charset of a page that shows none in any way.")
    default_language: Language = Field(
        "", description="The language of a page that shows none in any way, on a host without a usual language."
    )

    def tls_files(self, root: Path) -> TlsFiles:
        """The files for TLS; relative paths start at ``root``."""
        names = (self.ca_file, self.client_certificate, self.client_key)
        return TlsFiles(*(root / name if name else None for name in names))


class TlsFiles(NamedTuple):
    """The authorities to trust besides those of the machine; our certificate, and its key if in a file of its own."""

    ca_file: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None

    def without_certificate(self) -> TlsFiles:
        """The same without our certificate."""
        return TlsFiles(ca_file=self.ca_file)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Puts the files into ``context``; raises OSError, of which SSLError is one, for a file that is wrong."""
        if self.ca_file is not None:
            context.load_verify_locations(cafile=self.ca_file)
        if self.client_certificate is not None:
            # Without this, OpenSSL asks for the password of an encrypted key at the terminal.
            context.load_cert_chain(self.client_certificate, self.client_key, password=bytes)

    def build_context(self, *, verify: bool) -> ssl.SSLContext:
        """The context of a client that trusts the machine's authorities and these; raises OSError as ``load_into``."""
        context = ssl.create_default_context()
        self.load_into(context)
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["http/1.1"])
        return context

    def find_errors(self) -> Iterator[tuple[str, str]]:
        """The key of ``[fetch]`` and what is wrong, for each file that cannot be used; all of them exist."""
        if self.ca_file is not None and TlsFiles(ca_file=self.ca_file)._try() is not None:
            yield "ca_file", "has no certificates in PEM form"
        if self.client_certificate is None:
            if self.client_key is not None:
                yield "client_key", "is of no use without client_certificate"
            return
        if TlsFiles(ca_file=self.client_certificate)._try() is not None:
            yield "client_certificate", "has no certificate in PEM form"
            return
        error = self._replace(ca_file=None)._try()
        if error is not None and self.client_key is None:
            yield "client_certificate", "has no usable key: name its file in client_key"
        elif error is not None:
            other = getattr(error, "reason", None) == "KEY_VALUES_MISMATCH"
            yield (
                "client_key",
                "is not the key of client_certificate" if other else "has no unencrypted key in PEM form",
            )

    def _try(self) -> OSError | ValueError | None:
        """Loads the files; returns the error, or None."""
        try:
            self.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        except (OSError, ValueError) as error:
            return error
        return None

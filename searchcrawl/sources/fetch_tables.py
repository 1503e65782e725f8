"""``[fetch]``, ``[login]`` and ``[render]`` of a source: how its pages are got, and the files for TLS (C1–C12)."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from searchcrawl import urls
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.rules.url_rules import build_url_test
from searchcrawl.rules.week_window import WEEKDAYS
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import (
    Address,
    Amount,
    Charset,
    Check,
    Count,
    CssSelector,
    FilePath,
    HeaderName,
    HeaderValue,
    HostRules,
    Language,
    ListOf,
    Networks,
    Origins,
    PositiveAmount,
    PositiveCount,
    PublicText,
    ResolvedHost,
    Table,
    Text,
    WebUrl,
    check_no_repeats,
    check_selector,
    key,
    refuse,
    require,
    require_form,
    require_parsed,
)

_LEAST_LOOKUPS: Final = 0.1
_PROXY_FORM: Final = "must be http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"


#: More are of no use: the first one has all that they read to write.
_MOST_PROCESSES: Final = 64

Processes = Annotated[int, Field(ge=1, le=_MOST_PROCESSES)]


_check_time: Final = require_form(re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]"), 'not a time of day, as "08:00"')
_check_days: Final = require_form(
    re.compile(r"({0})(-({0}))?(,({0})(-({0}))?)*".format("|".join(WEEKDAYS))),
    'not days of the week, as "mon-fri" or "sat,sun"',
)


_check_zone: Final = require_parsed(
    ZoneInfo, (ZoneInfoNotFoundError, ValueError, OSError), 'not a time zone of IANA, as "Europe/Berlin"'
)
Zone = Annotated[PublicText, Check(_check_zone, "time zone of IANA")]


class WindowTable(Table):
    """A time of the week: days, and two times of the day."""

    days: Annotated[str, Privacy.PUBLIC, Check(_check_days, "days of the week")] = key(
        "mon-sun", 'The days, as `"mon-fri"` or `"sat,sun"`.'
    )
    from_: Annotated[str, Privacy.PUBLIC, Check(_check_time, "time of day")] = Field(
        alias="from", description='The begin, as `"08:00"`.'
    )
    to: Annotated[str, Privacy.PUBLIC, Check(_check_time, "time of day")] = Field(
        description="The end; one that is before the begin is on the next day."
    )


class FetchWindow(WindowTable):
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

    concurrency: PositiveCount = key(8, "The requests of the source that may run at the same time.", unit="requests")
    host_concurrency: PositiveCount = key(
        4, "The requests to one host that may run at the same time; it is 1 while a delay is in force.", unit="requests"
    )
    address_concurrency: Count = key(
        0,
        "The requests to one IP address that may run at the same time, whatever the number of its hosts; 0 is no limit, "
        "and so is any number with `proxy`.",
        unit="requests",
    )
    processes: Processes = key(
        1,
        "The processes of a run: one keeps the URL table and the index, the others visit and read pages. A source "
        "that logs in or renders is visited by one.",
        unit="processes",
    )
    max_minutes: Amount = key(0.0, "A run ends after this time with exit code 3; 0 is no limit.")
    sites: Count = key(0, "The hosts that are asked at the same time; 0 is no limit.", unit="hosts")
    delay_seconds: Amount = key(
        1.0, "The pause between two requests to a host; 0 only with the consent of the site's owner."
    )
    dns_per_second: Annotated[Amount, AfterValidator(_check_lookups)] = key(
        0.0,
        "The look-ups of host names a second of all crawls of the store that have this limit, 0.1 at least; 0 is "
        "no limit.",
        unit="lookups",
    )
    windows: ListOf[FetchWindow] = key((), "Other delays by weekday and time of day.")
    timezone: Zone | None = key(None, "The time zone of `windows`; without it that of the machine.")
    timeout_seconds: PositiveAmount = key(30.0, "The longest time for one whole answer; each redirect starts anew.")
    max_bytes: PositiveCount = key(
        32 * 1024 * 1024, "The largest decoded body; a larger one ends the visit with code 960."
    )
    max_redirects: Count = key(10, "The redirects that are followed for one URL.", unit="redirects")
    retries: Count = key(
        3,
        "How often a failed visit is repeated in a run. Where others have answered, hosts that never did are given up five "
        "seconds after all else is done.",
        unit="visits",
    )
    headers: Mapping[HeaderName, HeaderValue] = key(
        dict, "Headers that are sent to the origins of the start URLs only."
    )
    headers_to: Origins = key(
        (),
        'Further origins, as `"https://api.example.org"`, that get `headers` and the client certificate. '
        "Neither is sent from https down to http.",
    )
    proxy: Annotated[Text, Privacy.SHOWN, Check(_check_proxy, "URL of an HTTP proxy")] | None = key(
        None, "The proxy for all requests; proxies of the environment are not used."
    )
    resolve: Mapping[ResolvedHost, Address] = key(
        dict,
        'Addresses of host names, used in place of DNS; `"*.example.org"` is every host below it.',
    )
    verify_certificates: bool = key(True, "Refuse a host whose certificate is not valid (962).")
    ca_file: FilePath | None = key(None, "A PEM file of authorities to trust besides those of the machine.")
    client_certificate: FilePath | None = key(
        None, "A PEM file with the certificate that is presented to the origins that get `headers`."
    )
    client_key: FilePath | None = key(None, "The key of `client_certificate` if it is in another file.")
    private_networks: Networks = key(
        (),
        "Networks of private addresses that may be reached; all others are refused (907). Redirects to "
        "hosts outside the boundary reach them on the ports 80 and 443 and on those of the start URLs only.",
    )
    default_charset: Charset = key("windows-1252", "The charset of a page that shows none in any way.")
    default_language: Language = key(
        "", "The language of a page that shows none in any way, on a host without a usual language."
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


#: For each type, the keys that it requires, and further keys that it may have.
_KEYS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "basic": (frozenset({"username", "password"}), frozenset({"url"})),
    "digest": (frozenset({"username", "password"}), frozenset({"url"})),
    "form": (
        frozenset({"url", "password"}),
        frozenset({"username", "form", "username_field", "password_field", "fields", "check"}),
    ),
    "cookies": (frozenset(), frozenset({"url", "fields", "check"})),
    "browser": (frozenset({"url", "steps"}), frozenset({"check"})),
}
#: A cookie is ``name=value``, divided by semicolons (RFC 6265 §4.1.1).
_COOKIE_BREAKS: Final = frozenset('\x7f",;\\ ')
_NAME_BREAKS: Final = _COOKIE_BREAKS | frozenset("=()<>@:/[]?{}")


class ActionTable(Table):
    """A table with exactly one of ``actions``: what is done with the element that its CSS selector finds."""

    actions: ClassVar[tuple[str, ...]]

    def _check_keys(self) -> None:
        given = [name for name in self.actions if getattr(self, name) is not None]
        if not given:
            refuse(f"is required, or {' or '.join(self.actions[1:])}", key=self.actions[0])
        if len(given) > 1:
            refuse(f"not together with {given[0]}", key=given[1])

    @property
    def action(self) -> str:
        """The one that it has."""
        return next(name for name in self.actions if getattr(self, name) is not None)

    @property
    def selector(self) -> str:
        """The CSS selector of its element; empty for scrolling."""
        value = getattr(self, self.action)
        return value if isinstance(value, str) else ""


ShownText = Annotated[Text, Privacy.SHOWN]


class LoginStep(ActionTable):
    """One step of a login in a browser: ``fill`` with a ``value``, ``click``, or ``wait`` for an element to be seen."""

    actions = ("fill", "click", "wait")
    fill: CssSelector | None = key(None, "The field that gets `value`.")
    value: Annotated[Text, Privacy.SILENT] | None = key(
        None, "What is typed, a password best as `{env = …}` or `{file = …}`."
    )
    click: CssSelector | None = key(None, "What is clicked.")
    wait: CssSelector | None = key(None, "What has to be seen before the next step.")

    def _check_keys(self) -> None:
        super()._check_keys()
        if self.fill is None and self.value is not None:
            refuse("only with fill", key="value")
        if self.fill is not None and self.value is None:
            refuse("is required with fill", key="value")


class Login(Table):
    """How the crawler logs in; ``type`` is None if there is no login."""

    type: Literal["basic", "digest", "form", "cookies", "browser"] | None = key(None, "The kind of login.")
    url: Annotated[WebUrl, Privacy.SHOWN] | None = key(
        None,
        "The page with the form, the one at which `steps` begin, or one that sets cookies; of `basic` and "
        "`digest` only its origin counts.",
    )
    username: ShownText | None = key(None, "The name to log in with.")
    password: Annotated[Text, Privacy.SILENT] | None = key(None, "The password, best as `{env = …}` or `{file = …}`.")
    form: Annotated[ShownText, Check(check_selector, "CSS selector")] | None = key(
        None, "The form; without it the first one that has a password field."
    )
    username_field: ShownText | None = key(None, "The field of the name; without it found by its type.")
    password_field: ShownText | None = key(None, "The field of the password; without it found by its type.")
    fields: Annotated[Mapping[str, str], Privacy.SILENT] = key(dict, "More values of the form, or the cookies.")
    check: ShownText | None = key(None, "A text that only pages for logged-in users have.")
    steps: ListOf[LoginStep] = key((), "What is done in the browser, one after the other.")


def find_login_errors(login: Login) -> Iterator[tuple[str, str]]:
    """Keys of ``login`` that are missing or do not go together, each with a message.

    This is asked of a whole source only: a table of ``[defaults]`` or of a set may be a part of one.
    """
    given = {name for name in Login.model_fields if name != "type" and getattr(login, name)}
    if login.type is None:
        if given:
            yield "type", f"is required with {min(given)}"
        return
    required, others = _KEYS[login.type]
    for name in sorted(required - given):
        yield name, f'is required with type = "{login.type}"'
    for name in sorted(given - required - others):
        yield name, f'not with type = "{login.type}"'
    if login.type == "basic" and ":" in (login.username or ""):
        yield "username", "must have no colon: it ends the name (RFC 7617)"
    if login.type == "cookies":
        if not given:
            yield "fields", 'is required with type = "cookies", or url'
        elif not all(
            _is_plain(name, _NAME_BREAKS) and (not value or _is_plain(value, _COOKIE_BREAKS))
            for name, value in login.fields.items()
        ):
            # The values are credentials and are not shown.
            yield "fields", "a cookie's name and value have no blanks, quotes, commas or semicolons"


def _is_plain(text: str, breaks: frozenset[str]) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and not breaks & set(text)


#: What a browser calls the kinds of what a page loads. The page itself, its scripts and what these ask for are not among
#: them: a page that is rendered without is not the page.
RESOURCE_KINDS: Final = (
    "eventsource",
    "font",
    "image",
    "manifest",
    "media",
    "other",
    "stylesheet",
    "texttrack",
    "websocket",
)

_check_kind: Final = require(RESOURCE_KINDS.__contains__, f"must be one of {', '.join(RESOURCE_KINDS)}")


class RenderAction(ActionTable):
    """One ``[[render.actions]]``: a step that is done in each page that its rule names (C10)."""

    actions = ("click", "wait", "scroll")
    match: Annotated[PublicText, Check(require_parsed(build_url_test, ConfigurationError), "URL rule")] | None = key(
        None, "A URL rule: the pages in which it is done; without it all that are rendered."
    )
    click: CssSelector | None = key(None, "A CSS selector: its first element that is seen is clicked.")
    wait: CssSelector | None = key(None, "A CSS selector: the next action waits until the page has such an element.")
    scroll: PositiveCount | None = key(None, "How often, at most, the page is scrolled to its end.", unit="times")


class Render(Table):
    """Which pages are rendered by a browser, and when they are done; without this table none is, and none is started."""

    mode: Literal["never", "auto", "always"] = key(
        "never",
        "`auto` renders the pages that have next to no text without their scripts, `always` all HTML pages; "
        "each is fetched plainly first.",
    )
    wait_for: CssSelector | None = key(
        None, "A CSS selector: the page is done once it has such an element; without it, once it is quiet."
    )
    quiet_ms: Count = key(
        300, "The page is quiet once its elements and text have not changed for this long.", unit="milliseconds"
    )
    max_seconds: PositiveAmount = key(5.0, "After this time a page is taken as it is.")
    pages: PositiveCount = key(2, "How many pages are rendered at once.", unit="pages")
    block: Annotated[
        ListOf[Annotated[str, Privacy.PUBLIC, Check(_check_kind, "kind of resource")]],
        AfterValidator(lambda kinds: kinds and check_no_repeats(kinds)),
    ] = key(
        (),
        f"Kinds of what a page loads that are not loaded, besides images, fonts and media: "
        f"{', '.join(f'`{kind}`' for kind in RESOURCE_KINDS)}.",
    )
    scroll: Count = key(
        0, "How often, at most, a page is scrolled to its end, for lists that grow then; 0 is never.", unit="times"
    )
    allow_hosts: HostRules = key(
        (),
        "Host rules: the hosts outside the boundary from which a page may load something; without it any "
        "public host, for scripts and styles only.",
    )

    max_page_mb: PositiveAmount = key(
        64.0, "What a page may load in all, decoded; one that wants more cannot be rendered (904)."
    )
    post: bool = key(
        False,
        "Let scripts send POST to the origin of their page and to `allow_hosts`, as a GraphQL API wants it; forms "
        "are never sent.",
    )
    actions: ListOf[RenderAction] = key(
        (),
        "Steps that are done in a page, in this order, before it is read; each has one of `click`, `wait`, `scroll`.",
    )

    @property
    def max_page_bytes(self) -> int:
        """``max_page_mb`` in bytes, at least one."""
        return max(1, round(self.max_page_mb * (1 << 20)))

    def list_actions(self, url: str) -> list[RenderAction]:
        """What is done in the page of ``url``, an identity, in this order."""
        return [each for each in self.actions if each.match is None or build_url_test(each.match)(url)]

    @property
    def in_use(self) -> bool:
        """Whether any page is rendered."""
        return self.mode != "never"

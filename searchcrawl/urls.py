"""The identity of a URL: its WHATWG href without fragment and user info, but with a route where a source has such.

All functions are pure. URLs are parsed by ada-url, which agrees with browsers in each case of the web platform tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

import ada_url
import xxhash

from searchcrawl.exceptions import InvalidUrl
from searchcrawl.kind import FILE, KINDS, WEB

#: Of all kinds of sources.
DEFAULT_PORTS: Final = {scheme: port for kind in KINDS.values() for scheme, port in kind.ports.items()}
#: The host of URLs without one, by scheme.
_HOSTS: Final = {
    scheme: kind.host for kind in KINDS.values() for scheme, port in kind.ports.items() if kind.host and not port
}
#: The schemes of files on servers: parsers know neither that the case of their hosts does not count, nor their ports.
_ON_SERVERS: Final = frozenset(scheme for scheme, port in FILE.ports.items() if port)
#: One in which names may be empty, and whose host is a bucket.
_OF_KEYS: Final = "s3"
_WEB_PORTS: Final = frozenset(WEB.ports.values())
#: The schemes that links and redirects may lead to; what is listed is named by its lister alone (D8).
FETCHED: Final = frozenset(scheme for kind in KINDS.values() if not kind.is_listed for scheme in kind.ports)
_ANY: Final = ", or ".join(kind.url for kind in KINDS.values() if not kind.is_listed)
_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
#: A host as people type it, with or without a port, and what follows it.
_WITHOUT_SCHEME: Final = re.compile(r"\s*(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?#]|\s*\Z)")
#: Schemes of which a number may follow the colon, as if they were hosts with a port.
_WITH_NUMBERS: Final = frozenset({"callto", "javascript", "mailto", "sms", "tel", "urn", "vbscript", "view-source"})
#: How a fragment begins that is a route: of a source with ``scope.hash_routes`` it is part of the identity.
_ROUTES: Final = ("#/", "#!")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: Names that a parser of URLs takes for places.
_ODD_NAMES: Final = frozenset({b"", b".", b".."})


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """A parsed identity. ``port`` is the default of the scheme if the URL names none; ``query`` has no ``?``."""

    href: str
    scheme: str
    host: str
    port: int
    path: str
    query: str

    @property
    def origin(self) -> str:
        """``scheme://host[:port]``, the port only where it is not the scheme's default."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def netloc(self) -> str:
        """``host`` or, where the port is not the scheme's default, ``host:port``."""
        return self.host if self.port == DEFAULT_PORTS[self.scheme] else f"{self.host}:{self.port}"


def resolve(text: str, base: str | None = None, *, routes: bool = False, listed: bool = False) -> str:
    """The identity of the URL ``text``, relative to ``base``; with ``routes`` a fragment that is a route is part of it.

    With ``listed`` it may be that of what a lister names (``kind``). Raises InvalidUrl for a text that is no URL, has a scheme of
    no such kind of source, or has no host.
    """
    try:
        parsed = ada_url.URL(text, base)
    except ValueError as error:
        raise InvalidUrl(f"not a URL: {hide_user_info(text)[:200]!r}") from error
    return _take_identity(parsed, text, routes, listed)


def resolve_typed(text: str, *, routes: bool = False) -> str:
    """The identity of a URL of any kind as people type it: ``host:port/path`` without a scheme is one of http.

    An absolute path is one of a file, whose name may be written in any way. Raises InvalidUrl as ``resolve`` does.
    """
    if text.startswith("/") and not text.startswith("//"):
        # A path is what it is: escapes in it are part of a name.
        try:
            return f"{FILE.begins[0]}{_escape(text.encode('utf-8', 'surrogateescape'))}"
        except UnicodeEncodeError as error:
            raise InvalidUrl(f"not a path: {text[:200]!r}") from error
    try:
        found = resolve(text, routes=routes, listed=True)
        return _escape_names(found) if found.startswith(FILE.begins) else found
    except InvalidUrl:
        # The name of a host before its port looks like a scheme, so a URL of another scheme is looked at, too.
        name, colon, _ = text.strip().partition(":")
        if _WITHOUT_SCHEME.match(text) is None or (colon and name.lower() in _WITH_NUMBERS):
            raise
    return resolve(f"http://{text.strip()}", routes=routes)


def _escape_names(url: str) -> str:
    """The identity of a file, in which all is escaped but what is unreserved; of a file in an archive its archive's."""
    archive, mark, member = url.partition("!/")
    origin = origin_of(archive)
    path = archive[len(origin) :]
    scheme = archive.partition(":")[0]
    if scheme not in _ON_SERVERS:
        return f"{origin}{_escape(unquote_to_bytes(path))}{mark}{member}"
    names, last = path[1:].split("/")[:-1], path.rpartition("/")[2]
    found = [unescape_name(name) for name in names if name or scheme == _OF_KEYS]
    end = escape_name(unescape_name(last)) if last else ""
    return f"{origin}/{''.join(f'{escape_name(name)}/' for name in found)}{end}{mark}{member}"


def escape_name(name: bytes) -> str:
    """A name between slashes as it stands in the identity of a file; one that is a place to parsers gets a NUL at its end."""
    return quote_from_bytes(name + b"\0" if name in _ODD_NAMES else name, safe="-._~")


def unescape_name(text: str) -> bytes:
    """The name that stands in an identity (``escape_name``)."""
    return unquote_to_bytes(text).removesuffix(b"\0")


def _escape(path: bytes) -> str:
    return quote_from_bytes(path, safe="/-._~")


def hide_user_info(text: str) -> str:
    """A URL as somebody wrote it, or what is none, without user and password, for messages."""
    scheme, colon, rest = text.partition(":")
    if scheme.lower() == "mailto":
        return text
    # As browsers read it: slashes may lean back, or be missing.
    place = rest.lstrip("/\\ \t\r\n")
    end = min((place.find(mark) for mark in "/\\?#" if mark in place), default=len(place))
    _, has_user, host = place[:end].rpartition("@")
    return f"{scheme}{colon}//{host}{place[end:]}" if has_user else text


def _take_identity(parsed: ada_url.URL, text: str, routes: bool, listed: bool) -> str:
    scheme = parsed.protocol[:-1]
    # What has a host by itself names none.
    if scheme not in (DEFAULT_PORTS if listed else FETCHED) or bool(parsed.hostname) == (scheme in _HOSTS):
        raise InvalidUrl(f"not {_ANY}: {hide_user_info(text)[:200]!r}")
    if parsed.username or parsed.password:
        parsed.username = ""
        parsed.password = ""
    if scheme in _ON_SERVERS:
        _unify_host(parsed, scheme)
    href: str = parsed.href
    cut = href.find("#")
    return href if cut < 0 or (routes and href.startswith(_ROUTES, cut)) else href[:cut]


def _unify_host(parsed: ada_url.URL, scheme: str) -> None:
    """Spells the host of a server as that of a web server: in lower case, and without the port of the scheme."""
    if parsed.port == str(DEFAULT_PORTS[scheme]):
        parsed.port = ""
    if scheme != _OF_KEYS and parsed.hostname != parsed.hostname.lower():
        parsed.hostname = parsed.hostname.lower()


def keep_route(reference: str) -> str:
    """A reference without its fragment, unless that is a route."""
    cut = reference.find("#")
    return reference if cut < 0 or reference.startswith(_ROUTES, cut) else reference[:cut]


def split_route(url: str) -> tuple[str, str]:
    """An identity without its route, which is what is requested, and the route from ``#`` on; it may be empty."""
    bare, mark, route = url.partition("#")
    return bare, mark + route


def without_route(url: str) -> str:
    """An identity as it is requested."""
    return url.partition("#")[0]


def has_route(reference: str) -> bool:
    """Whether a URL or reference has a fragment that is a route."""
    cut = reference.find("#")
    return cut >= 0 and reference.startswith(_ROUTES, cut)


def parse(text: str, base: str | None = None) -> ParsedUrl:
    """Parses ``text`` (relative to ``base``), an identity of any kind; raises InvalidUrl as ``resolve`` does."""
    href = resolve(text, base, listed=True)
    parsed = ada_url.URL(href)
    scheme = parsed.protocol[:-1]
    return ParsedUrl(
        href=href,
        scheme=scheme,
        host=parsed.hostname or _HOSTS[scheme],
        port=int(parsed.port) if parsed.port else DEFAULT_PORTS[scheme],
        path=parsed.pathname,
        query=parsed.search[1:],
    )


def host_and_port(href: str) -> str:
    """``host:port`` of an identity, always with the port: the name of a host in the store."""
    netloc = shown_host(href)
    tail = netloc.rpartition("]")[2]
    return netloc if ":" in tail else f"{netloc}:{DEFAULT_PORTS[href.partition(':')[0]]}"


def shown_host(href: str) -> str:
    """The host of an identity as answers show it: with the port if it is not the default one."""
    scheme, _, rest = href.partition("://")
    return rest.partition("/")[0].partition("?")[0] or _HOSTS.get(scheme, "")


def host(href: str) -> str:
    """The host of an identity: the same as that of ``parse``, found faster."""
    netloc = shown_host(href)
    address, bracket, _ = netloc.partition("]")
    return address + bracket if bracket else netloc.partition(":")[0]


def origin_of(url: str) -> str:
    """``scheme://host[:port]`` of an identity."""
    slash = url.find("/", url.find("://") + 3)
    return url if slash < 0 else url[:slash]


def last_name(href: str) -> str:
    """What follows the last slash in the path of an identity, escaped: the same as in that of ``parse``, found faster."""
    return href.partition("#")[0].partition("?")[0].rpartition("/")[2]


def without_query(url: str) -> str:
    """An identity without its query, which may be a secret."""
    return url.partition("?")[0]


def unescape_unreserved(text: str) -> str:
    """Decodes percent-escapes of letters, digits and ``-._~`` (RFC 3986 §6.2.2.2): rules compare URLs in this form."""
    if "%" not in text:
        return text

    def decode(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    return _ESCAPED.sub(decode, text)


def key(href: str) -> int:
    """The 64-bit key of an identity, signed, as the store keeps it."""
    value = xxhash.xxh3_64_intdigest(href.encode("utf-8", "surrogatepass"))
    return value - (1 << 64) if value >= (1 << 63) else value


def document_id(source: str, href: str) -> str:
    """The id of a document in the index: ``SOURCE:`` and 32 hex digits of the URL's hash."""
    return f"{source}:{xxhash.xxh3_128_hexdigest(href.encode('utf-8', 'surrogatepass'))}"


def is_same_port(one: int, other: int) -> bool:
    """Whether two ports are one server's to cookies: those of http and https are."""
    return one == other or {one, other} <= _WEB_PORTS

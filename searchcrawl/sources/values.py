"""The kinds of values in searchcrawl.toml and in source files, each with its check.

A check answers with one of two errors of pydantic: ``refused`` with a message of its own, or
``not_available`` for a value that a later release brings. ``checking`` turns both into lines.
"""

from __future__ import annotations

import codecs
import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from searchcrawl import urls
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.rules.host_rules import parse_host_rule

#: What a robots token and the first word of a User-Agent are made of (RFC 9110 §5.6.2).
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MAIL: Final = re.compile(r"[^\s@<>()\[\],;:\\\"]+@[^\s@<>()\[\],;:\\\"]+\.[^\s@<>()\[\],;:\\\"]+")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
#: Headers that belong to the connection, to the conditional request or to ``contact``.
_OWN_HEADERS: Final = frozenset({
    "connection", "content-length", "host", "if-modified-since", "if-none-match", "transfer-encoding", "user-agent",
})  # fmt: skip


class Table(BaseModel):
    """A table of a TOML file: frozen, no unknown keys, no coercion (an int is fine for a float)."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)


def refused(message: str, *, key: str = "") -> PydanticCustomError:
    """The error of a value that is wrong: what is wrong with it, and for a table its key."""
    # The message is data: braces in it are no placeholders.
    return PydanticCustomError("refused", "{message}", {"message": message, "key": key})


def not_available() -> PydanticCustomError:
    """The error of a value that a later release brings."""
    return PydanticCustomError("not_available", "not available yet")


def _web_url(text: str) -> str:
    try:
        urls.resolve(text)
    except InvalidUrl:
        raise refused("not an http or https URL") from None
    return text


def _prefix_url(text: str) -> str:
    if "#" in text:
        raise refused("must have no fragment: it is no part of a URL's identity")
    return text


def _contact(text: str) -> str:
    printable = text.isascii() and text.isprintable() and not set(text) & set(" ()")
    if printable and _MAIL.fullmatch(text):
        return text
    try:
        urls.resolve(text)
    except InvalidUrl:
        printable = False
    if not printable:
        raise refused("must be an http or https URL or a mail address")
    return text


def _product(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        raise refused("must be one word of letters, digits and !#$%&'*+.^_`|~-")
    return text


def _header_text(text: str) -> str:
    if not text.isprintable() or not text.isascii():
        raise refused("must be printable ASCII")
    return text


def _file_path(text: str) -> str:
    if not text.isprintable():
        raise refused("must be printable")
    return text


def _host_rule(text: str) -> str:
    try:
        parse_host_rule(text, file="", key="")
    except ConfigurationError as error:
        raise refused(error.message.partition(" (got ")[0]) from None
    return text


def _path_prefix(text: str) -> str:
    if not text.startswith("/"):
        raise refused("must start with /")
    return text


def _network(text: str) -> str:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise refused('not a network in CIDR form, as "10.0.0.0/8"') from None
    return text


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise refused("not an IP address") from None


def _resolved_host(text: str) -> str:
    host = text.removeprefix("*.").rstrip(".").lower()
    try:
        parsed = urls.parse(f"http://{host}/")
    except InvalidUrl:
        raise refused("not a host name") from None
    # Whatever makes the text more than a host (port, path, user) shows as a difference.
    if parsed.path != "/" or parsed.query or parsed.port != 80 or set(host) & set("/:@?#*"):
        raise refused("not a host name")
    return ("*." if text.startswith("*.") else "") + parsed.host


def _header_name(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        raise refused("not a name of a header")
    if text.lower() in _OWN_HEADERS:
        raise refused("this header is set by searchcrawl")
    return text


def _charset(text: str) -> str:
    try:
        "".encode(text)
        codecs.lookup(text)
    except (LookupError, ValueError):
        raise refused("unknown charset") from None
    return text


def _language(text: str) -> str:
    if text and not _LANGUAGE.fullmatch(text):
        raise refused('not a language tag, as "en" or "pt-BR"')
    return text


def _sitemaps(value: object) -> object:
    if value in ("auto", "off"):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(url, str) for url in value):
        raise refused('must be "auto", "off" or a list of URLs')
    return tuple(_web_url(url) for url in value)


def once(values: tuple[str, ...]) -> tuple[str, ...]:
    """Refuses a list that is empty or names a value twice."""
    if not values:
        raise refused("must not be empty")
    if len(set(values)) != len(values):
        raise refused("names a value twice")
    return values


@dataclass(frozen=True)
class Check(AfterValidator):
    """The check of a value, with what it checks in words for the reference ("host rule")."""

    kind: str = ""


#: TOML has lists only; the models keep tuples. The items stay strict.
LIST: Final = Field(strict=False)

#: Larger than anything meant, and small enough for databases, clocks and timers.
_MOST: Final = 1_000_000_000_000
_MOST_TIME: Final = 100_000_000

Text = Annotated[str, Field(min_length=1)]
FilePath = Annotated[Text, Check(_file_path, "path")]
FilePaths = Annotated[tuple[FilePath, ...], LIST]
Texts = Annotated[tuple[Text, ...], LIST]
WebUrl = Annotated[str, Check(_web_url, "URL")]
PrefixUrl = Annotated[WebUrl, Check(_prefix_url, "URL")]
WebUrls = Annotated[tuple[WebUrl, ...], LIST]
Sitemaps = Annotated[str | tuple[str, ...], BeforeValidator(_sitemaps)]
Contact = Annotated[str, Check(_contact, "URL or mail address")]
Product = Annotated[str, Check(_product, "word")]
HeaderText = Annotated[Text, Check(_header_text, "text")]
HeaderName = Annotated[str, Check(_header_name, "name of a header")]
HeaderValue = Annotated[str, Check(_header_text, "text")]
HostRule = Annotated[str, Check(_host_rule, "host rule")]
HostRules = Annotated[tuple[HostRule, ...], LIST]
PathPrefixes = Annotated[tuple[Annotated[str, Check(_path_prefix, "path prefix")], ...], LIST]
Port = Annotated[int, Field(ge=1, le=65535)]
Ports = Annotated[tuple[Port, ...], LIST]
Networks = Annotated[tuple[Annotated[str, Check(_network, "network in CIDR form")], ...], LIST]
Address = Annotated[str, Check(_address, "IP address")]
ResolvedHost = Annotated[str, Check(_resolved_host, "host name")]
Charset = Annotated[str, Check(_charset, "name of a charset")]
Language = Annotated[str, Check(_language, "language tag")]
Count = Annotated[int, Field(ge=0, le=_MOST)]
PositiveCount = Annotated[int, Field(ge=1, le=_MOST)]
Amount = Annotated[float, Field(ge=0, le=_MOST_TIME, allow_inf_nan=False)]
PositiveAmount = Annotated[float, Field(gt=0, le=_MOST_TIME, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
FailureStatus = Annotated[int, Field(ge=400, le=599)]
FailureStatuses = Annotated[tuple[FailureStatus, ...], LIST]

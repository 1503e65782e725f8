"""The kinds of values in searchcrawl.toml and in source files, each with its check.

A check returns the value, or raises one of two errors of pydantic: ``refused`` with a message of its own, or
``not_available`` for a value that a later release brings. ``checking`` turns both into lines.
"""

from __future__ import annotations

import codecs
import ipaddress
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Final, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from searchcrawl import urls
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.rules.url_rules import parse_host_rule
from searchcrawl.sources.privacy import Privacy, mask, privacy_of

#: The characters of a robots token and of the first word of a User-Agent (RFC 9110 §5.6.2).
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MAIL: Final = re.compile(r"[^\s@<>()\[\],;:\\\"]+@[^\s@<>()\[\],;:\\\"]+\.[^\s@<>()\[\],;:\\\"]+")
_GROUP: Final = re.compile(r"[^\W_](?:[^\x00-\x1f\x7f]{0,98}\S)?")
_LANGUAGE: Final = re.compile(r"([A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*)?")
_UMASK: Final = re.compile(r"0?0[0-7]{2}")
#: Headers that belong to the connection, to the conditional request or to ``contact``.
_OWN_HEADERS: Final = frozenset({
    "connection", "content-length", "host", "if-modified-since", "if-none-match", "transfer-encoding", "user-agent",
})  # fmt: skip


class Table(BaseModel):
    """A table of a TOML file: frozen, no unknown keys, no coercion (an int is fine for a float).

    Each field has a ``description``, which becomes its line in the reference. One that may hold text is a secret, unless
    its type says otherwise (``Privacy``).
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)
    #: the privacy of keys of the user's choosing
    own_privacy: ClassVar[Privacy] = Privacy.PUBLIC
    #: keys that a later release brings, with all that is below them
    later: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def takes_key(cls, name: str, table: Mapping[str, Any]) -> bool:
        """Whether a key that no field has is one of the user's choosing; ``table`` is all that was written."""
        return False

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """What a text about the table shows of it, as in a traceback."""
        for name, value in super().__repr_args__():
            yield name, value if name is None else mask(value, privacy_of(type(self), name))

    def _check_keys(self) -> None:
        """Refuses keys that do not go together."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_keys()
        return self

    def list_shown(self) -> frozenset[str]:
        """Values here that are secrets by their type, and are none as they are."""
        return frozenset()


@dataclass(frozen=True)
class Check(AfterValidator):
    """The check of a value, with the name of what it checks for the reference ("host rule")."""

    kind: str = ""


def key(default: Any, description: str, *, unit: str | None = None) -> Any:
    """A key of a table, which need not be there: its value then, or the class of it, and its line in the reference."""
    shown: dict[str, Any] = {"description": description}
    if unit is not None:
        shown["json_schema_extra"] = {"unit": unit}
    return Field(default_factory=default, **shown) if isinstance(default, type) else Field(default, **shown)


def refuse(message: str, *, key: str | tuple[int | str, ...] = "") -> NoReturn:
    """Raises the error of a value that is wrong: what is wrong with it, and for a table which of its keys.

    The place of a key in a list of tables is a tuple: the number of the table and the key.
    """
    # The message is data: braces in it are not placeholders.
    raise PydanticCustomError("refused", "{message}", {"message": message, "key": key})


def refuse_until_later() -> NoReturn:
    """Raises the error of a value that a later release brings."""
    raise PydanticCustomError("not_available", "not available yet")


def require(is_right: Callable[[str], object], message: str) -> Callable[[str], str]:
    """The check that something holds for a text; ``message`` is that of the error."""

    def check(text: str) -> str:
        if not is_right(text):
            refuse(message)
        return text

    return check


def require_form(form: re.Pattern[str], message: str) -> Callable[[str], str]:
    """The check that a whole text has a form; ``message`` is that of the error."""
    return require(form.fullmatch, message)


def one_of(names: Collection[str], later: Collection[str] = ()) -> Check:
    """The check that a text is one of ``names``; ``later`` are those that a later release brings."""

    def check(text: str) -> str:
        if text in later:
            refuse_until_later()
        if text not in names:
            refuse(f"must be {_join_names(names)}")
        return text

    return Check(check, _join_names(names, quote="`"))


def _join_names(names: Iterable[str], quote: str = "") -> str:
    *most, last = (f'{quote}"{name}"{quote}' for name in names)
    return f"{', '.join(most)} or {last}" if most else last


def require_parsed(
    parse: Callable[[str], object], errors: type[Exception] | tuple[type[Exception], ...], message: str = ""
) -> Callable[[str], str]:
    """The check that a text can be parsed; ``message`` is that of the error, or else what is said is what ``parse`` raises."""

    def check(text: str) -> str:
        try:
            parse(text)
        except errors as error:
            refuse(message or str(getattr(error, "message", error)).partition(" (got ")[0])
        return text

    return check


_check_url: Final = require_parsed(urls.resolve, InvalidUrl, "not an http or https URL")
_check_host_rule: Final = require_parsed(partial(parse_host_rule, file="", key=""), ConfigurationError)
_check_network: Final = require_parsed(ipaddress.ip_network, ValueError, 'not a network in CIDR form, as "10.0.0.0/8"')


def _check_origin(text: str) -> str:
    try:
        origin = urls.parse(urls.resolve(text)).origin
    except InvalidUrl:
        refuse("not an http or https origin")
    # A path, query or user in the text shows as a difference; a host may be written in other ways.
    if set(text.partition("://")[2].removesuffix("/")) & set("/?#@"):
        refuse('must be an origin, as "https://www.example.org"')
    return origin


def _check_index_url(text: str) -> str:
    parts = urlsplit(text)
    if not parts.path.strip("/") or parts.query or parts.fragment:
        refuse("must end in the name of a core, a collection or an alias")
    return text.rstrip("/")


def _check_contact(text: str) -> str:
    printable = text.isascii() and text.isprintable() and not set(text) & set(" ()")
    if printable and _MAIL.fullmatch(text.removeprefix("mailto:")):
        return text
    try:
        urls.resolve(text)
    except InvalidUrl:
        printable = False
    if not printable:
        refuse("must be an http or https URL or a mail address")
    return text


def _check_address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        refuse("not an IP address")


def _check_host_name(text: str) -> str:
    host = text.removeprefix("*.").rstrip(".").lower()
    try:
        parsed = urls.parse(f"http://{host}/")
    except InvalidUrl:
        refuse("not a host name")
    # A port, path or user in the text shows as a difference.
    if parsed.path != "/" or parsed.query or parsed.port != 80 or set(host) & set("/:@?#*"):
        refuse("not a host name")
    return ("*." if text.startswith("*.") else "") + parsed.host


def _check_header_name(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        refuse("not a name of a header")
    if text.lower() in _OWN_HEADERS:
        refuse("this header is set by searchcrawl")
    return text


def _check_charset(text: str) -> str:
    try:
        "".encode(text)
        codecs.lookup(text)
    except (LookupError, ValueError):
        refuse("unknown charset")
    return text


def check_selector(text: str) -> str:
    """The check of a CSS selector, as pages are asked for it."""
    # Imported here: most sources have none, and every command reads this module.
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # noqa: PLC0415

    try:
        LexborHTMLParser("").css(text)
    except SelectolaxError:
        refuse("not a CSS selector")
    return text


def _check_sitemaps(value: object) -> object:
    if value in ("auto", "off"):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(url, str) for url in value):
        refuse('must be "auto", "off" or a list of URLs')
    return tuple(_check_url(url) for url in value)


def check_no_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    """Refuses a list that is empty or names a value twice."""
    if not values:
        refuse("must not be empty")
    if len(set(values)) != len(values):
        refuse("names a value twice")
    return values


T = TypeVar("T")
#: TOML has lists only; the models keep tuples. The items stay strict.
ListOf = Annotated[tuple[T, ...], Field(strict=False)]

#: Larger than any sensible value, and small enough for databases, clocks and timers.
_MOST: Final = 1_000_000_000_000
_MOST_TIME: Final = 100_000_000

Text = Annotated[str, Field(min_length=1)]
PublicText = Annotated[Text, Privacy.PUBLIC]
FilePath = Annotated[PublicText, Check(require(str.isprintable, "must be printable"), "path")]
FilePaths = ListOf[FilePath]
CssSelector = Annotated[PublicText, Check(check_selector, "CSS selector")]
Rules = ListOf[PublicText]
WebUrl = Annotated[str, Check(_check_url, "URL")]
Origins = ListOf[Annotated[str, Privacy.PUBLIC, Check(_check_origin, "origin")]]
PublicUrl = Annotated[WebUrl, Privacy.PUBLIC]
IndexUrl = Annotated[WebUrl, Privacy.SHOWN, AfterValidator(_check_index_url)]
_check_prefix_url: Final = require(
    lambda url: "#" not in url, "must have no fragment: it is no part of a URL's identity"
)
_check_any_url: Final = require_parsed(
    partial(urls.resolve, listed=True), InvalidUrl, "not an http or https URL, or a file URL"
)
PrefixUrl = Annotated[str, Check(_check_any_url, "URL"), Privacy.PUBLIC, Check(_check_prefix_url, "URL")]
WebUrls = ListOf[PublicUrl]
Sitemaps = Annotated[str | tuple[str, ...], BeforeValidator(_check_sitemaps), Privacy.PUBLIC]
Contact = Annotated[str, Privacy.PUBLIC, Check(_check_contact, "URL or mail address")]
Product = Annotated[
    str, Privacy.PUBLIC, Check(require_form(_TOKEN, "must be one word of letters, digits and !#$%&'*+.^_`|~-"), "word")
]
Umask = Annotated[
    str, Privacy.PUBLIC, Check(require_form(_UMASK, 'must be octal and leave its owner all, as "027"'), "umask")
]
_check_header_text: Final = require(lambda text: text.isprintable() and text.isascii(), "must be printable ASCII")
HeaderText = Annotated[Text, Check(_check_header_text, "text")]
HeaderName = Annotated[str, Check(_check_header_name, "name of a header")]
HeaderValue = Annotated[str, Check(_check_header_text, "text")]
HostRule = Annotated[str, Privacy.PUBLIC, Check(_check_host_rule, "host rule")]
HostRules = ListOf[HostRule]
PathPrefixes = ListOf[
    Annotated[
        str, Privacy.PUBLIC, Check(require(lambda path: path.startswith("/"), "must start with /"), "path prefix")
    ]
]
Port = Annotated[int, Field(ge=1, le=65535)]
Ports = ListOf[Port]
Networks = ListOf[Annotated[str, Privacy.PUBLIC, Check(_check_network, "network in CIDR form")]]
Address = Annotated[str, Privacy.PUBLIC, Check(_check_address, "IP address")]
ResolvedHost = Annotated[str, Privacy.PUBLIC, Check(_check_host_name, "host name")]
Charset = Annotated[str, Privacy.PUBLIC, Check(_check_charset, "name of a charset")]
Language = Annotated[
    str, Privacy.PUBLIC, Check(require_form(_LANGUAGE, 'not a language tag, as "en" or "pt-BR"'), "language tag")
]
GroupNames = Annotated[
    ListOf[
        Annotated[str, Privacy.PUBLIC, Check(require_form(_GROUP, "must be 1 to 100 printable characters"), "name")]
    ],
    AfterValidator(check_no_repeats),
]
Count = Annotated[int, Field(ge=0, le=_MOST)]
PositiveCount = Annotated[int, Field(ge=1, le=_MOST)]
Amount = Annotated[float, Field(ge=0, le=_MOST_TIME, allow_inf_nan=False)]
PositiveAmount = Annotated[float, Field(gt=0, le=_MOST_TIME, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
FailureStatus = Annotated[int, Field(ge=400, le=599)]
FailureStatuses = ListOf[FailureStatus]

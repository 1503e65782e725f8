"""The kinds of values that only ``[fetch]`` has: windows of delays, a time zone, a proxy (C2, C10)."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.sources.schedule import Window
from searchcrawl.sources.values import LIST, Amount, Text, refused

_PROXY_FORM: Final = "must be http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"


class FetchWindow(Window):
    """One of ``fetch.windows``: the delay on these days, from the one time of day to the other (C2)."""

    delay_seconds: Amount


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise refused('not a time zone of IANA, as "Europe/Berlin"') from None
    return text


def _proxy(text: str) -> str:
    """Checks the parts of a proxy's URL; no message repeats its password."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
        identity = urls.parse(f"http://{parts.netloc.rpartition('@')[2]}/")
    except (ValueError, InvalidUrl):
        raise refused(_PROXY_FORM) from None
    plain = text.isascii() and text.isprintable() and not set(text) & set(' "<>\\^`{|}')
    if not plain or parts.scheme != "http" or not host or not port or parts.path not in {"", "/"}:
        raise refused(_PROXY_FORM)
    if parts.query or parts.fragment or not identity.host or (parts.password is not None and not parts.username):
        raise refused(_PROXY_FORM)
    return text


Windows = Annotated[tuple[FetchWindow, ...], LIST]
Zone = Annotated[Text, AfterValidator(_zone)]
Proxy = Annotated[Text, AfterValidator(_proxy)]

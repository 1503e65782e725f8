"""Every place of a source file in which a secret may stand, as its model has them: a new key is among them by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from searchcrawl.sources.config import SourceFile
from searchcrawl.sources.privacy import Privacy, privacy_of

VARIABLE: Final = "CANARY_OF_A_PLACE"
REFERENCE: Final = {"env": VARIABLE}
_NUMBERS: Final = count(1)


def make_canary() -> str:
    """A secret like no other, with the looks of a token."""
    return f"c4n4ry-{next(_NUMBERS):05}-s3cr3t"


class Place(NamedTuple):
    """A key: the tables that it is in (a list of tables ends with ``[]``), how much of it may be shown, and its own public keys."""

    tables: tuple[str, ...]
    key: str
    privacy: Privacy
    is_table: bool
    is_mapping: bool
    public: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return ".".join((*self.tables, self.key))

    def holding(self, value: Any) -> dict[str, Any]:
        """The tables of a file that has ``value`` in this place alone."""
        content: Any = {self.key: value}
        for table in reversed(self.tables):
            name = table.removesuffix("[]")
            content = {name: [content] if table.endswith("[]") else content}
        return dict(content)


class Form(NamedTuple):
    """A value with a secret in it; ``is_logged``: what of it may come into a log is kept out of that."""

    value: Any
    is_logged: bool = True


def list_places(model: type[BaseModel] = SourceFile, tables: tuple[str, ...] = ()) -> Iterator[Place]:
    """All keys of a model and of the tables in it."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        candidates = (field.annotation, *get_args(field.annotation))
        below = next((each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)), None)
        is_mapping = any(get_origin(each) is Mapping for each in candidates)
        fields = {} if below is None else {inner: privacy_of(below, inner) for inner in below.model_fields}
        public = frozenset(inner for inner, privacy in fields.items() if privacy is Privacy.PUBLIC)
        yield Place(tables, key, privacy_of(model, name), below is not None, is_mapping, public)
        if below is not None:
            is_list = any(get_origin(each) is tuple for each in candidates)
            yield from list_places(below, (*tables, f"{key}[]" if is_list else key))


def list_forms(place: Place, canary: str) -> Iterator[Form]:
    """What may stand there, right or wrong; for public keys only references."""
    # In a table whose keys are anybody's choice, env is one of these.
    yield Form(REFERENCE, is_logged=not place.is_mapping)
    # Words that are tables of public keys make nothing public elsewhere.
    words = ("scope", "start", "keep", "robots", "title")
    yield from (Form({name: REFERENCE}, is_logged=name not in place.public) for name in words)
    yield from (Form(value) for value in ([REFERENCE], {"a": REFERENCE}, {"a": [REFERENCE]}))
    if place.privacy is not Privacy.PUBLIC:
        yield from _list_urls(canary)
    if place.privacy >= Privacy.SECRET:
        yield from _list_texts(canary)
    if place.privacy is Privacy.BY_NAME:
        yield from (Form({"MINE": form.value}, form.is_logged) for form in _list_urls(canary))
        yield from _list_settings(canary)


def _list_urls(canary: str) -> Iterator[Form]:
    """Secrets within a URL, which is a value, an item, the name of an entry."""
    urls = (
        f"https://me:{canary}@a.test/x",
        f"https://me:{canary}/with ?odd@signs@a.test/x",
        f"me:{canary}@a.test:3128",
        f"https://{canary}@a.test/x",
        f"https://a.test/login?next=/&token={canary}",
        f"https://a.test/login?{canary}",
        f"https://a.test/login?{canary}=1#x",
        f"https://a.test/login#{canary}",
        f"ftp://me:{canary}@a.test/%(name)s.jsonl?{canary}",
    )
    for url in urls:
        yield from (Form(url), Form([url]), Form({"a": url}))
        yield Form({url: {"format": "jsonl"}}, is_logged=False)


def _list_texts(canary: str) -> Iterator[Form]:
    """Secrets as a whole; also where another type is asked for, and in place of their name."""
    yield from (Form(canary), Form([canary]), Form({"Authorization": canary}), Form({"X-Mine": [canary]}))
    yield from (Form({"session": {"a": canary}}), Form({"Authorization": [{"token": canary}]}))
    for named in ("Authorization", ["Authorization"], {"X-Key": "x"}, 1, True):
        yield from (Form({canary: named}, is_logged=False), Form({f"Bearer {canary}": named}, is_logged=False))


def _list_settings(canary: str) -> Iterator[Form]:
    names: tuple[str, ...] = ("FTP_PASSWORD", "MAIL_PASS", "HTTPAUTH_PASS", "TELNETCONSOLE_PASSWORD", "ftp_password")
    for name in names:
        yield from (Form({name: canary}), Form({name: [canary]}), Form({name: {"a": canary}}))
        yield Form({canary: name}, is_logged=False)
    for name in ("token", "apiKey", "client_secret", "Authorization", "db-password"):
        yield from (Form({"MINE": {name: canary}}), Form({"MINE": [{"a": {name: [canary]}}]}))


def list_swapped(place: Place, canary: str) -> Iterator[Mapping[str, Any]]:
    """The tables of a file in which the name of a key and its value were swapped."""
    yield place._replace(key=canary).holding(place.key)

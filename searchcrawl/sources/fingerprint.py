"""The fingerprint of a source: a digest for each key that decides what its stored documents look like (D9).

A run compares the stored fingerprint with that of the file. The keys that differ are the reason of a forced recrawl.
Values that do not change documents, such as delays and limits on deleting, are not part of it. The place of a value
(source file, parameter set, defaults) is not part of it either. Of a secret only the reference counts: a new password
forces no recrawl, and no digest of it is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from searchcrawl.kind import KINDS
from searchcrawl.sources.config import Source, Tables
from searchcrawl.sources.effective import show_references
from searchcrawl.sources.privacy import Privacy, privacy_of
from searchcrawl.sources.source_settings import USER_COMPONENTS
from searchcrawl.sources.values import Table

#: The tables, or single keys of a table, that decide which documents there are and what they contain.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "scope": (),
    "keep": (),
    "change": (),
    "robots": ("obey", "user_agent"),
    "fetch": ("default_charset", "default_language", "headers", "headers_to"),
    # Another user may see other pages.
    "login": ("type", "url", "username"),
    # How many pages are rendered at once changes none of them.
    "render": (
        *("mode", "wait_for", "quiet_ms", "max_seconds", "block", "scroll", "allow_hosts"),
        *("max_page_mb", "post", "actions"),
    ),
    "content": (),
    "attributes": (),
    "copies": ("scope",),
}
#: Lists whose order matters, unlike that of rules.
_IN_ORDER: Final = frozenset({"render.actions"})
#: What only answers show.
_SHOWN: Final = frozenset({"attributes.values"})
#: Classes of users that see each document.
_PLUGINS: Final = ("spider", "document_service")
#: The versions of the steps that make a document of a body; a rise has the next run process every page again.
VERSIONS: Final[Mapping[str, int]] = {
    # Rises when ``html.page`` would read another page out of the same bytes.
    "html": 10,
    # Rises when ``convert`` would read another page out of the same bytes.
    "convert": 7,
    # Rises when ``documents.digests`` cannot make digests of an earlier version any more, so that it gives the
    # same page another one. A new version beside the earlier ones needs no recrawl.
    "checksum": 1,
    # Rises when ``documents.language`` would find another language in the same text.
    "language": 4,
    # Rises when other documents would be copies of each other.
    "copies": 1,
}
#: What a rise of a version is called where people read it.
_IN_WORDS: Final[Mapping[str, str]] = {
    "version.html": "how this release reads pages",
    "version.convert": "how this release reads files",
    "version.checksum": "how this release compares texts",
    "version.language": "how this release finds languages",
    "version.copies": "how this release finds copies",
}
#: Beginnings of the keys that decide which answer a request gets: after an edit of one the cache says nothing.
_OF_ANSWERS: Final = (
    *("fetch.headers", "login.", "robots.", "render.", "settings.DOWNLOADER_MIDDLEWARES"),
    *(f"{kind.name}." for kind in KINDS.values() if kind.decides),
)
#: Those of the keys that decide where a URL may lead.
_OF_LINKS: Final = ("mode", "scope.", "rewrite", "spider")
#: Those of the keys that decide which text and links a page has, and which of the links are followed.
_OF_ADMISSION: Final = (
    *_OF_LINKS,
    "keep.meta_robots",
    "fetch.default_charset",
    "settings.",
    "version.",
    "mode",
    "content.mode",
    "content.keep",
    "content.drop",
)
#: The keys that the digest of a body covers: the same digest has the same result. A filter that looks into what was read is
#: none of them.
_OF_DIGESTS: Final = frozenset({
    "keep.mime_types", "keep.exclude_mime_types", "keep.min_bytes", "keep.max_bytes", "keep.max_age_days",
    "keep.include_urls", "keep.exclude_urls", "keep.include_names", "keep.exclude_names", "copies.near",
})  # fmt: skip
#: Those of the keys that change the fields of documents, and not which documents there are.
_OF_FIELDS: Final = (
    "attributes.", "change.", "content.language", "copies.", "display", "fetch.default_language", "groups",
    "version.checksum",
    "version.copies", "version.language",
)  # fmt: skip
_DIGEST_BYTES: Final = 8
_MODE: Final = "mode"
#: The value in place of a digest.
_MIXED: Final = "mixed"


def compute_fingerprint(source: Source, *, versions: Mapping[str, int] = VERSIONS) -> str:
    """The fingerprint as JSON text: ``{key: digest}``, sorted, equal for equal meaning.

    ``versions`` are those of the stages that make documents (``html``, ``convert``, ``checksum``);
    a rise of one appears as ``version.NAME``.
    """
    values: dict[str, Any] = {f"version.{name}": version for name, version in versions.items()}
    dumped, built_in = source.model_dump(mode="json"), Tables().model_dump(mode="json")
    own = {source.kind.name: source.kind.decides} if source.kind.decides else {}
    for table, wanted in (*_KEYS.items(), *own.items()):
        for key in wanted or dumped[table]:
            if f"{table}.{key}" in _SHOWN:
                continue
            # A key at its built-in value is left out, so that a release with a new key changes nothing.
            if dumped[table][key] != built_in[table].get(key):
                value = dumped[table][key]
                model: type[Table] = type(getattr(source, table))
                if privacy_of(model, key) is not Privacy.PUBLIC:
                    value = show_references(value, f"{table}.{key}", source.references)
                values[f"{table}.{key}"] = dict(enumerate(value)) if f"{table}.{key}" in _IN_ORDER else value
    if not source.finds_urls:
        # The links of pages that it reads are not stored.
        values[_MODE] = source.mode
    if source.user_converters:
        values["converters"] = dict(source.user_converters)
    if source.copies.near == "remove":
        # The other values matter to searches alone.
        values["copies.near"] = source.copies.near
    values |= {name: plugin for name in _PLUGINS if (plugin := getattr(source, name)) is not None}
    if source.groups:
        values["groups"] = sorted(source.groups)
    if source.display:
        values["display"] = dumped["display"]
    if source.rewrite:
        # The order of this list matters, unlike that of all others.
        values["rewrite"] = dict(enumerate(dumped["rewrite"]))
    values |= {f"settings.{name}": source.settings[name] for name in USER_COMPONENTS if name in source.settings}
    digests = {key: _digest(value) for key, value in values.items()}
    return json.dumps(digests, sort_keys=True, separators=(",", ":"))


def find_changed_keys(stored: str, current: str) -> list[str]:
    """The keys in which two fingerprints differ, sorted; also those that only one of them has."""
    old, new = json.loads(stored), json.loads(current)
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


class Effect(NamedTuple):
    """What an edit of keys changes besides the documents of pages whose answers are stored.

    ``answers``: what the servers would answer. ``links``: where redirects may lead. ``refusals``: which pages are not to
    be indexed. ``admission``: which links are followed. ``reading``: what is made of the same bytes, beyond what their
    digest says.
    """

    answers: bool
    links: bool
    refusals: bool
    admission: bool
    reading: bool


def find_effect(changed: Sequence[str]) -> Effect:
    """What an edit of these keys changes."""
    return Effect(
        answers=any(key.startswith(_OF_ANSWERS) for key in changed),
        links=any(key.startswith(_OF_LINKS) for key in changed),
        refusals=not all(key.startswith(_OF_FIELDS) for key in changed),
        admission=any(key.startswith(_OF_ADMISSION) for key in changed),
        reading=not all(key in _OF_DIGESTS for key in changed),
    )


def find_forcing_keys(stored: str, current: str) -> list[str]:
    """The changed keys because of which a run visits everything without validators.

    Without links less of a page is read than before, so that what is stored need not be read again.
    """
    without_links = _MODE in json.loads(current)
    return [key for key in find_changed_keys(stored, current) if not (without_links and key == _MODE)]


def mix_fingerprints(stored: str, tried: str) -> str:
    """The fingerprint of documents some of which were made with ``stored``, others with ``tried``.

    The keys in which the two differ get a value that no other fingerprint has.
    """
    values = json.loads(stored) | dict.fromkeys(find_changed_keys(stored, tried), _MIXED)
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def _digest(value: Any) -> str:
    text = json.dumps(_unordered(value), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _unordered(value: Any) -> Any:
    """Sorts the lists in ``value``, because the order of rules never matters."""
    if isinstance(value, dict):
        return {key: _unordered(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_unordered(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def describe_keys(keys: Iterable[str]) -> str:
    """Keys of fingerprints that differ, for people."""
    return ", ".join(_IN_WORDS.get(key, key) for key in keys)

"""Every field of an indexed document, declared once.

From this table come: the schema of the embedded index, what the schema of Solr must have (a test compares
``solr/configset/schema.xml``), the fields that a query, a filter, an order and a facet may name, the names
that no attribute of a source may have, and the reference in the docs.

A new field needs an entry here, its value in ``delivery/documents.py`` and its line in ``schema.xml``.
An embedded index that was made without the field can no longer be opened: its sources are sent again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final


class FieldKind(StrEnum):
    """What the values of a field are."""

    #: one untokenised term, compared as a whole
    NAME = "name"
    #: split into words
    TEXT = "text"
    #: a whole or other number
    NUMBER = "number"
    #: a moment in UTC
    DATE = "date"


@dataclass(frozen=True, slots=True)
class IndexField:
    """A field; in a name the ``*`` stands for any name of an attribute, or for the code of a language.

    ``weight`` is how much a hit counts for words without a field; None where such words are not looked for.
    ``is_prefix``: it may stand before a colon in a query, as in ``title:word``. ``has_words``: a name that is
    split into words besides. ``has_whole_values``: filters, facets and orders may name it. ``is_unique``:
    nearly every document has another value. ``is_fixed``: one of the eight attributes that every document has;
    ``other_spellings`` are what else a source may call it. ``is_returned``: part of the answer to a query.
    ``is_asked_for``: queries and filters may be about it; another one is only kept. ``has_length``: a hit counts for less in
    a value with more words.
    """

    name: str
    kind: FieldKind
    meaning: str
    _: KW_ONLY
    is_multi_valued: bool = False
    weight: float | None = None
    is_prefix: bool = False
    has_words: bool = False
    has_whole_values: bool = True
    is_unique: bool = False
    is_fixed: bool = False
    is_returned: bool = True
    is_asked_for: bool = True
    has_length: bool = True
    other_spellings: tuple[str, ...] = ()


# The embedded index keeps its fields in this order: another one is another schema.
FIELDS: Final = (
    IndexField(
        "id",
        FieldKind.NAME,
        "the name of the source, a colon, and 32 hexadecimal digits of the hash of the access URL",
        is_unique=True,
    ),
    IndexField("source", FieldKind.NAME, "the source that the document comes from", is_prefix=True),
    IndexField("groups", FieldKind.NAME, "the groups of sources that its source belongs to", is_multi_valued=True),
    IndexField("host", FieldKind.NAME, "the host of the URL shown", is_prefix=True, has_words=True, is_fixed=True),
    IndexField("url", FieldKind.NAME, "the URL that is shown", is_prefix=True, has_words=True, is_unique=True),
    IndexField("access_url", FieldKind.NAME, "the URL that was fetched", is_unique=True),
    IndexField(
        "duplicates", FieldKind.NAME, "other URLs with the same content, as they are shown", is_multi_valued=True
    ),
    IndexField("depth", FieldKind.NUMBER, "how many links lead to the document from a start URL"),
    IndexField("title", FieldKind.TEXT, "the title", weight=3.0, is_prefix=True, is_fixed=True),
    IndexField(
        "content",
        FieldKind.TEXT,
        "the text; answers show a passage of it",
        weight=1.0,
        is_prefix=True,
        has_whole_values=False,
        is_returned=False,
    ),
    IndexField("description", FieldKind.TEXT, "a summary by the author", weight=1.5, is_prefix=True, is_fixed=True),
    IndexField("author", FieldKind.TEXT, "who wrote the document", weight=1.0, is_prefix=True, is_fixed=True),
    IndexField("subject", FieldKind.TEXT, "keywords by the author", weight=1.5, is_prefix=True, is_fixed=True),
    IndexField(
        "mimetype", FieldKind.NAME, "the media type, such as text/html", is_prefix=True, has_words=True, is_fixed=True
    ),
    IndexField(
        "language",
        FieldKind.NAME,
        "the language tag in lower case, such as de or pt-br; of several languages that of the main one",
        is_prefix=True,
        has_words=True,
        is_fixed=True,
    ),
    IndexField(
        "languages",
        FieldKind.NAME,
        "the tags of all languages that the text has, the main one first",
        is_multi_valued=True,
        is_prefix=True,
        has_words=True,
    ),
    IndexField(
        "checksum",
        FieldKind.NAME,
        "the SHA-256 of all fields and the whole text of its page, in hexadecimal digits",
        is_unique=True,
    ),
    IndexField(
        "text_signature",
        FieldKind.NAME,
        "what tells whether its text differs from that of another document in a few words; none for a short text",
        has_whole_values=False,
        is_asked_for=False,
    ),
    IndexField(
        "content_length", FieldKind.NUMBER, "the size of the fetched body in bytes, when the document was sent last"
    ),
    IndexField(
        "crawl_version",
        FieldKind.NUMBER,
        "rises with each delivery of the document; an index ignores what is older than what it has",
    ),
    IndexField(
        "last_modified",
        FieldKind.DATE,
        "when the document was changed, by its header, else by its file, or by an attribute of the source",
        is_fixed=True,
        other_spellings=("lastmodifieddate", "lastmodified"),
    ),
    IndexField("first_seen", FieldKind.DATE, "when the URL was found first"),
    IndexField("crawled_at", FieldKind.DATE, "when the document was fetched before it was sent last"),
    IndexField(
        "anchor",
        FieldKind.TEXT,
        "the texts of links to the document from the main text of other pages, at most 20",
        is_multi_valued=True,
        weight=2.0,
        is_prefix=True,
        has_whole_values=False,
    ),
    IndexField(
        "headings",
        FieldKind.TEXT,
        "the headings of the text and the terms that it defines, at most 200",
        is_multi_valued=True,
        weight=1.5,
        is_prefix=True,
        has_whole_values=False,
        is_returned=False,
        has_length=False,
    ),
    IndexField(
        "acl_allow",
        FieldKind.NAME,
        "the principals that may see the document, as `everyone`, `user:anna` or `group:staff`",
        is_multi_valued=True,
        is_returned=False,
    ),
    IndexField(
        "acl_deny",
        FieldKind.NAME,
        "the principals that may not see it, though others of a user's may",
        is_multi_valued=True,
        is_returned=False,
    ),
    IndexField(
        "acl_path",
        FieldKind.NAME,
        "the number of levels above it that restrict who may see it, as `=1`, and each principal that passes one, as `1:group:staff`",
        is_multi_valued=True,
        is_returned=False,
    ),
)

#: The fields of a source's attributes, by the type of the attribute.
ATTRIBUTE_FIELDS: Final[Mapping[str, IndexField]] = {
    "string": IndexField("*_s", FieldKind.NAME, "an attribute of type string", is_multi_valued=True),
    "text": IndexField("*_t", FieldKind.TEXT, "an attribute of type text", is_multi_valued=True),
    "number": IndexField("*_l", FieldKind.NUMBER, "an attribute of type number", is_multi_valued=True),
    "date": IndexField("*_dt", FieldKind.DATE, "an attribute of type date", is_multi_valued=True),
}

#: The languages whose words are found by their stems, with the names that the stemmers have.
STEMMED: Final[Mapping[str, str]] = {
    "da": "danish", "de": "german", "en": "english", "es": "spanish", "fi": "finnish", "fr": "french",
    "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sv": "swedish",
}  # fmt: skip
#: The languages whose words are found by pairs of characters, or by a dictionary of the index.
PAIRED: Final = ("ja", "ko", "zh")
#: All languages whose words are found in other forms than the typed one.
LANGUAGES: Final = (*STEMMED, *PAIRED)

#: Tags of languages whose words have the stems of another one.
_WRITTEN_ALIKE: Final[Mapping[str, str]] = {"nb": "no", "nn": "no"}

#: The fields for these languages; the ``*`` is the code of the language.
LANGUAGE_FIELDS: Final = tuple(
    IndexField(
        f"{name}_txt_*",
        FieldKind.TEXT,
        f"the {name}, analysed by its language",
        weight=weight,
        has_whole_values=False,
        is_returned=False,
    )
    for name, weight in (("title", 2.0), ("content", 0.4))
)

NAMES: Final = tuple(field.name for field in FIELDS if field.kind is FieldKind.NAME and field.is_asked_for)
NUMBERS: Final = tuple(field.name for field in FIELDS if field.kind is FieldKind.NUMBER)
DATES: Final = tuple(field.name for field in FIELDS if field.kind is FieldKind.DATE)
#: Moments are between these: the embedded index keeps nanoseconds since 1970 in 64 bits.
FIRST_MOMENT: Final = datetime(1678, 1, 1, tzinfo=UTC)
LAST_MOMENT: Final = datetime(2262, 1, 1, tzinfo=UTC)
#: Each text field, and how much a hit there counts.
TEXTS: Final = {field.name: field.weight or 1.0 for field in FIELDS if field.kind is FieldKind.TEXT}
#: Those of them in which the number of words says nothing.
WITHOUT_LENGTH: Final = frozenset(field.name for field in FIELDS if not field.has_length)
#: Field → the field with its whole values, for filters, facets and orders.
WHOLE_VALUES: Final = {
    field.name: f"{field.name}_exact" if field.kind is FieldKind.TEXT else field.name
    for field in FIELDS
    if field.has_whole_values
}
#: Name → the field with its words.
WORDS: Final = {field.name: f"{field.name}_words" for field in FIELDS if field.has_words}

#: How the field of an attribute ends, by the type of the attribute.
SUFFIXES: Final = {kind: field.name.removeprefix("*") for kind, field in ATTRIBUTE_FIELDS.items()}
#: How the fields for the analysis by language begin.
LANGUAGE_PREFIXES: Final = tuple(field.name.removesuffix("*") for field in LANGUAGE_FIELDS)

#: Field → how much a hit in another form counts there, by the beginning of the name for each language.
FORMS: Final = {field.name.removesuffix("_txt_*"): field.weight or 0.0 for field in LANGUAGE_FIELDS}

#: Field → how much it counts there that the words of a query follow each other as they were typed.
SEQUENCES: Final[Mapping[str, float]] = {"title": 2.0, "content": 2.0}

_TYPES: Final = {suffix: kind for kind, suffix in SUFFIXES.items()}
_ATTRIBUTE_FIELD: Final = re.compile(f"([A-Za-z][A-Za-z0-9_.-]*)({'|'.join(_TYPES)})", re.ASCII)


def split_attribute_field(field: str) -> tuple[str, str] | None:
    """Name and type of the attribute whose field this is; None where it is none of an attribute."""
    match = _ATTRIBUTE_FIELD.fullmatch(field)
    return None if match is None else (match[1], _TYPES[match[2]])


def attribute_type(field: str) -> str | None:
    """``string``, ``text``, ``number`` or ``date`` for the field of an attribute, None for another field."""
    parts = split_attribute_field(field)
    return None if parts is None else parts[1]


def find_analysed(tags: Iterable[str]) -> list[str]:
    """Those of LANGUAGES that tags of languages are of, each once."""
    codes = (tag.partition("-")[0] for tag in tags)
    return [code for code in dict.fromkeys(_WRITTEN_ALIKE.get(code, code) for code in codes) if code in LANGUAGES]


def match_tags(languages: Iterable[str]) -> str:
    """The regular expression of the tags of languages of LANGUAGES, for both indexes."""
    alike = [(other, code) for code, other in _WRITTEN_ALIKE.items()]
    several = [code for each in languages for code in (each, *(code for other, code in alike if other == each))]
    return f"({'|'.join(several)})(-.*)?"


def find_language_field(name: str, language: str) -> str:
    """The field with the words of ``title`` or ``content`` in a language of LANGUAGES."""
    return f"{name}_txt_{language}"


def is_text_field(name: str) -> bool:
    """Whether an index splits the values of the field into words."""
    return name in TEXTS or name.endswith(SUFFIXES["text"]) or name.startswith(LANGUAGE_PREFIXES)

"""The fields of the embedded index, and how a document becomes one of them.

A document's fields are kept whole, as JSON, in ``stored``; everything else is there to be searched:

- texts (``title``, ``content`` …) split into words;
- the same values whole (``title_exact`` …) and names (``source``, ``mimetype`` …), for exact filters,
  facets and sorting;
- some names once more split into words (``url_words`` …), for ``url:docs`` or ``host:example.com``;
- ``attribute_words``, a JSON object of the texts among the attributes, split into words;
- ``attributes``, a JSON object of those of the source (``NAME_s``, ``NAME_l`` …). Texts in it begin
  with a mark, so that none is taken for a date; numbers are texts too, that sort as they do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson
import tantivy

from searchcrawl.index.attribute_fields import name_and_suffix, sortable
from searchcrawl.index.sanitising import clean_fields

#: Split into words; the number is the weight of a hit there.
TEXTS: Final = {"title": 3.0, "content": 1.0, "description": 1.5, "author": 1.0, "subject": 1.5, "anchor": 2.0}
#: Kept whole under NAME_exact besides.
EXACT: Final = {name: f"{name}_exact" for name in ("title", "description", "author", "subject")}
NAMES: Final = ("source", "groups", "host", "url", "access_url", "duplicates", "mimetype", "language", "checksum")
#: Split into words besides, under NAME_words.
WORDS: Final = {name: f"{name}_words" for name in ("url", "host", "mimetype", "language")}
NUMBERS: Final = ("depth", "content_length", "crawl_version")
DATES: Final = ("last_modified", "first_seen", "crawled_at")
#: Before each text among the attributes.
TEXT_MARK: Final = "="

_BY_LANGUAGE: Final = ("content_txt_", "title_txt_")
_ANALYZER: Final = "words"
_MAX_WORD_BYTES: Final = 255
#: As much as Solr's copyField takes.
_MAX_EXACT_CHARS: Final = 8000
# Moments are kept as nanoseconds since 1970 in 64 bits.
_FIRST_MOMENT: Final = datetime(1678, 1, 1, tzinfo=UTC)
_LAST_MOMENT: Final = datetime(2262, 1, 1, tzinfo=UTC)
# Scripts that are written without blanks, and Hangul, whose words carry endings: Hangul Jamo, CJK
# radicals, kana, Bopomofo, ideographs with their extensions, Hangul syllables, half-width kana.
_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_CJK_CHARACTER = re.compile(f"([{_CJK}])")
# Which characters a text has is told by the leading bytes of its UTF-8, at a tenth of the cost of a pattern:
# combining accents, Jamo, full-width and other compatibility forms are to be normalised …
_UNCOMMON_LEADS = frozenset({0xCC, 0xCD, 0xE1, 0xEF})
# … and these begin CJK characters, as does 0xF0 where it is no emoji.
_CJK_LEADS = frozenset({0xE1, *range(0xE3, 0xF0)})
_RARE_IDEOGRAPH = re.compile(rb"\xf0[\xa0-\xbf]")
_OTHER_BYTES = bytes(set(range(256)) - _UNCOMMON_LEADS - _CJK_LEADS)
CJK_RUN: Final = re.compile(f"([{_CJK}]+)")


def analyzer() -> tantivy.TextAnalyzer:
    """Words in lower case without accents; English stop words go, their places stay (G2)."""
    filters = (
        tantivy.Filter.remove_long(_MAX_WORD_BYTES),
        tantivy.Filter.lowercase(),
        tantivy.Filter.stopword("english"),
        tantivy.Filter.ascii_fold(),
    )
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for each in filters:
        builder = builder.filter(each)
    return builder.build()


def schema() -> tantivy.Schema:
    """The schema; an index made with another one cannot be opened."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("stored", stored=True)
    builder.add_boolean_field("tombstone", indexed=True)
    for name in (*TEXTS, *WORDS.values()):
        builder.add_text_field(name, tokenizer_name=_ANALYZER, index_option="position")
    for name in (*NAMES, *EXACT.values()):
        builder.add_text_field(name, fast=True, tokenizer_name="raw", index_option="basic")
    for name in NUMBERS:
        builder.add_integer_field(name, indexed=True, fast=True)
    for name in DATES:
        builder.add_date_field(name, indexed=True, fast=True)
    builder.add_json_field("attribute_words", tokenizer_name=_ANALYZER, index_option="position")
    builder.add_json_field("attributes", fast=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def open_index(path: Path) -> tantivy.Index:
    """Opens the index of a folder or creates it there; ValueError where it has another schema."""
    index = tantivy.Index(schema(), path=str(path))
    index.register_tokenizer(_ANALYZER, analyzer())
    # Readers look for commits when they are asked something, not from a thread twice a second.
    index.config_reader("manual")
    return index


def spaced(text: str) -> str:
    """The text as it is analysed: each CJK character a word of its own, full-width letters as plain ones."""
    if text.isascii():
        return text
    encoded = text.encode("utf-8", "replace")
    leads = frozenset(encoded.translate(None, _OTHER_BYTES))
    if leads & _UNCOMMON_LEADS:
        text = unicodedata.normalize("NFKC", text)
    if leads & _CJK_LEADS or _RARE_IDEOGRAPH.search(encoded):
        text = _CJK_CHARACTER.sub(r" \1 ", text)
    return text


def document(document_id: str, fields: Mapping[str, Any], *, source: str, crawl_version: int) -> tantivy.Document:
    """A document to be added; ValueError, TypeError or OverflowError with the reason where a field cannot be taken."""
    # Words are not analysed by language here.
    stored = clean_fields({name: value for name, value in fields.items() if not name.startswith(_BY_LANGUAGE)})
    stored |= {"source": source, "crawl_version": crawl_version}
    made = tantivy.Document()
    made.add_text("id", document_id)
    made.add_bytes("stored", orjson.dumps(stored))
    for name, value in stored.items():
        _add(made, name, value if isinstance(value, list) else [value])
    attributes = dict(_attributes(stored))
    if attributes:
        made.add_json("attributes", attributes)
        made.add_json("attribute_words", dict(_attribute_words(stored)))
    return made


def tombstone(document_id: str, *, source: str, crawl_version: int) -> tantivy.Document:
    """What stays of a removed document: it remembers the version, so that nothing older comes back."""
    made = tantivy.Document()
    made.add_text("id", document_id)
    made.add_text("source", source)
    made.add_integer("crawl_version", crawl_version)
    made.add_boolean("tombstone", True)
    made.add_bytes("stored", orjson.dumps({"source": source, "crawl_version": crawl_version}))
    return made


def attribute_path(field: str, *, words: bool = False) -> str:
    """Where the whole values of an attribute's field are, or their words, as the library names it."""
    escaped = field.replace("\\", "\\\\").replace(".", "\\.")
    return f"{'attribute_words' if words else 'attributes'}.{escaped}"


def marked(text: str) -> str:
    """A text among the attributes as it is indexed: as much of it as Solr's copyField takes."""
    return TEXT_MARK + text[:_MAX_EXACT_CHARS]


def moment(text: str) -> datetime | None:
    """The moment of an ISO 8601 text, UTC where it names no zone; None where it is none that can be indexed."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return found if _FIRST_MOMENT < found < _LAST_MOMENT else None


def _attributes(stored: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """The fields of attributes, with values as they are indexed."""
    for name, value in stored.items():
        known = name_and_suffix(name)
        if known is None:
            continue
        values = value if isinstance(value, list) else [value]
        if known[1] == "_l":
            yield name, [sortable(float(each)) for each in values]
        elif known[1] == "_dt":
            # The library knows moments by their form.
            yield name, [each for each in values if moment(str(each)) is not None]
        else:
            yield name, [marked(str(each)) for each in values]


def _attribute_words(stored: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The fields of texts among the attributes, as they are analysed."""
    for name, value in stored.items():
        known = name_and_suffix(name)
        if known is not None and known[1] in {"_s", "_t"}:
            values = value if isinstance(value, list) else [value]
            # With a blank before it no text is taken for a date.
            yield name, [f" {spaced(str(each)[:_MAX_EXACT_CHARS])}" for each in values]


def _add(made: tantivy.Document, name: str, values: Iterable[Any]) -> None:
    if name in DATES:
        for value in values:
            if (found := moment(str(value))) is not None:
                made.add_date(name, found)
    elif name in NUMBERS:
        for value in values:
            made.add_integer(name, int(value))
    else:
        for value in values:
            for field, text in _texts(name, str(value)):
                made.add_text(field, text)


def _texts(name: str, text: str) -> Iterator[tuple[str, str]]:
    """The text fields that a value goes into."""
    if name in TEXTS:
        yield name, spaced(text)
    if name in EXACT:
        yield EXACT[name], text[:_MAX_EXACT_CHARS]
    if name in NAMES:
        yield name, text
    if name in WORDS:
        yield WORDS[name], spaced(text)

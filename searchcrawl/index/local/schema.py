"""The schema of the embedded index, and how a delivered document becomes one of the library's.

A document's fields are kept whole, as JSON, in ``stored``. All other fields are there to be searched:

- texts (``title``, ``content`` …) split into words;
- the same values whole (``title_exact`` …) and names (``source``, ``mimetype`` …), for exact filters,
  facets and sorting;
- title and content once more in the fields of the document's languages: stems, or pairs of characters (``index.forms``);
- some names once more split into words (``url_words`` …), for ``url:docs`` or ``host:example.com``;
- ``attribute_words``, a JSON object of the texts among the attributes, split into words, and of other texts whose length
  does not count: the library keeps none for JSON objects;
- ``attributes``, a JSON object of the attributes of the source (``NAME_s``, ``NAME_l`` …). A text in it
  begins with a mark, so that the library takes none for a date; numbers are texts that sort as they do;
- ``ranges``, the same numbers and dates as integers that sort as they do: the library has no ranges of its own in objects
  such as those of attributes, but its query language has them for integers.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson
import tantivy

from searchcrawl.index.characters import CJK, simplify
from searchcrawl.index.forms import build_stemmer, read_pairs
from searchcrawl.index.sanitising import clean_fields
from searchcrawl.index_fields import (
    DATES,
    FIRST_MOMENT,
    FORMS,
    LANGUAGE_PREFIXES,
    LANGUAGES,
    LAST_MOMENT,
    NAMES,
    NUMBERS,
    PAIRED,
    STEMMED,
    TEXTS,
    WHOLE_VALUES,
    WITHOUT_LENGTH,
    WORDS,
    attribute_type,
    find_analysed,
    find_language_field,
)

#: The mark before each text among the attributes.
TEXT_MARK: Final = "="
#: The field with the integers, by ``find_key``.
RANGES: Final = "ranges"

_NAMES: Final = tuple(name for name in NAMES if name != "id")
_PLAIN_TEXTS: Final = tuple(name for name in TEXTS if name not in WITHOUT_LENGTH)
_EXACT: Final = {name: WHOLE_VALUES[name] for name in TEXTS if name in WHOLE_VALUES}
_ANALYZER: Final = "words"
_PAIRS: Final = "pairs"
_WORDS_OF_TEXTS: Final = "attribute_words"
#: As much as Solr's copyField takes.
_MAX_EXACT_CHARS: Final = 8000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SIGN: Final = 1 << 63
_CJK_CHARACTER = re.compile(f"([{CJK}])")
#: Marks of Thai that the library takes for blanks: they are written as letters for tones, of which no language here has any.
_TONE_MARK: Final = re.compile("[\u0e47-\u0e4e]")
_TO_TONE_LETTER: Final = 0xA717 - 0x0E47


def build_schema() -> tantivy.Schema:
    """The schema; an index that was made with another one, or with its fields in another order, cannot be opened."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("stored", stored=True)
    builder.add_boolean_field("tombstone", indexed=True)
    # The shortest come first: in this order the words of names were declared in existing indexes.
    for name in (*_PLAIN_TEXTS, *sorted(WORDS.values(), key=len)):
        builder.add_text_field(name, tokenizer_name=_ANALYZER, index_option="position")
    for language in LANGUAGES:
        tokenizer = _PAIRS if language in PAIRED else f"{_ANALYZER}_{language}"
        for name in FORMS:
            # Without positions, which would double its size: phrases are looked for in the fields above.
            field = find_language_field(name, language)
            builder.add_text_field(field, tokenizer_name=tokenizer, index_option="freq")
    for name in (*_NAMES, *_EXACT.values()):
        builder.add_text_field(name, fast=True, tokenizer_name="raw", index_option="basic")
    for name in NUMBERS:
        builder.add_integer_field(name, indexed=True, fast=True)
    for name in DATES:
        builder.add_date_field(name, indexed=True, fast=True)
    builder.add_json_field(_WORDS_OF_TEXTS, tokenizer_name=_ANALYZER, index_option="position")
    builder.add_json_field("attributes", fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_json_field(RANGES, fast=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def open_index(path: Path) -> tantivy.Index:
    """Opens the index of a folder or creates it there; ValueError where it has another schema."""
    index = tantivy.Index(build_schema(), path=str(path))
    index.register_tokenizer(_ANALYZER, build_stemmer(""))
    for language in STEMMED:
        index.register_tokenizer(f"{_ANALYZER}_{language}", build_stemmer(language))
    index.register_tokenizer(_PAIRS, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    # Readers look for commits when they get a query, instead of twice a second in a thread.
    index.config_reader("manual")
    return index


def prepare_text(text: str) -> str:
    """The text as it is analysed: each CJK character a word of its own, full-width letters as plain ones."""
    text, has_cjk = simplify(text)
    if not has_cjk:
        return text
    apart = _CJK_CHARACTER.sub(r" \1 ", text)
    return _TONE_MARK.sub(lambda match: chr(ord(match[0]) + _TO_TONE_LETTER), apart)


def prepare_forms(text: str, language: str) -> str:
    """The text as it is analysed for a language of LANGUAGES."""
    text, has_cjk = simplify(text)
    if language in STEMMED:
        return text
    return " ".join(pair for pairs in read_pairs(text, language) for pair in pairs) if has_cjk else ""


def normalise(text: str) -> str:
    """The text with plain letters for full-width ones."""
    return simplify(text)[0]


def build_document(document_id: str, fields: Mapping[str, Any], *, source: str, crawl_version: int) -> tantivy.Document:
    """A document to be added; ValueError, TypeError or OverflowError with the reason where a field cannot be taken."""
    # What is analysed by language is the same text again: it is taken from the text itself.
    stored = clean_fields({name: value for name, value in fields.items() if not name.startswith(LANGUAGE_PREFIXES)})
    stored |= {"source": source, "crawl_version": crawl_version}
    made = tantivy.Document()
    made.add_text("id", document_id)
    made.add_bytes("stored", orjson.dumps(stored))
    attributes: dict[str, list[Any]] = {}
    words: dict[str, list[str]] = {}
    ranges: dict[str, list[int]] = {}
    for name, value in stored.items():
        values = value if isinstance(value, list) else [value]
        kind = attribute_type(name)
        if name in WITHOUT_LENGTH:
            words[name] = _prepare_words(values)
            continue
        if kind is None:
            _add(made, name, values)
            continue
        attributes[name] = list(_attribute_values(kind, values))
        if kind in {"string", "text"}:
            words[name] = _prepare_words(values)
        else:
            found = (float(each) if kind == "number" else parse_moment(str(each)) for each in values)
            if integers := [to_integer(each) for each in found if each is not None]:
                ranges[find_key(name)] = integers
    if ranges:
        made.add_json(RANGES, ranges)
    if attributes:
        made.add_json("attributes", attributes)
    if words:
        made.add_json(_WORDS_OF_TEXTS, words)
    for language in find_analysed(map(str, fields.get("languages", ()))):
        for name in FORMS:
            if name in stored:
                made.add_text(find_language_field(name, language), prepare_forms(str(stored[name]), language))
    return made


def build_tombstone(document_id: str, *, source: str, crawl_version: int) -> tantivy.Document:
    """What stays of a removed document: its version, so that no older document comes back."""
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
    return f"{_WORDS_OF_TEXTS if words else 'attributes'}.{escaped}"


def find_text_path(name: str) -> str:
    """Where the words of a text field are, as the library names it."""
    return f"{_WORDS_OF_TEXTS}.{name}" if name in WITHOUT_LENGTH else name


def mark_text(text: str) -> str:
    """A text among the attributes as it is indexed; it is cut where Solr's copyField cuts."""
    return TEXT_MARK + text[:_MAX_EXACT_CHARS]


def find_key(field: str) -> str:
    """The key of an attribute's field in ``ranges``, of letters and digits: all that the query language takes as it is."""
    return f"x{field.encode().hex()}"


def to_integer(value: float | datetime) -> int:
    """An integer of 64 bits that sorts as the number (by the bits of IEEE 754) or the moment does."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    (bits,) = struct.unpack(">q", struct.pack(">d", value + 0.0))
    return int(bits) if bits >= 0 else int(bits) ^ (_SIGN - 1)


def encode_number(number: float) -> str:
    """A number among the attributes, as 16 hexadecimal digits that sort as numbers do.

    The library keeps integers and other numbers of a JSON object apart, and does not sort them together.
    """
    return f"{to_integer(number) + _SIGN:016x}"


def decode_number(digits: str) -> float:
    """The number that ``encode_number`` made these digits of."""
    bits = int(digits, 16) - _SIGN
    (number,) = struct.unpack(">d", struct.pack(">q", bits if bits >= 0 else bits ^ (_SIGN - 1)))
    return float(number)


def parse_moment(text: str) -> datetime | None:
    """The moment of an ISO 8601 text, in UTC if it names no zone; None if it cannot be indexed."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return found if FIRST_MOMENT < found < LAST_MOMENT else None


def _prepare_words(values: Iterable[Any]) -> list[str]:
    # With a blank before it the library takes no text for a date.
    return [f" {prepare_text(str(each)[:_MAX_EXACT_CHARS])}" for each in values]


def _attribute_values(kind: str, values: Iterable[Any]) -> Iterator[Any]:
    """The values of an attribute as they are indexed."""
    for value in values:
        if kind == "number":
            yield encode_number(float(value))
        elif kind == "date":
            # The library knows moments by their form.
            if parse_moment(str(value)) is not None:
                yield value
        else:
            yield mark_text(str(value))


def _add(made: tantivy.Document, name: str, values: Iterable[Any]) -> None:
    """Adds the values of a field that every document may have."""
    for value in values:
        if name in DATES:
            if (moment := parse_moment(str(value))) is not None:
                made.add_date(name, moment)
        elif name in NUMBERS:
            made.add_integer(name, int(value))
        else:
            for field, text in _texts(name, str(value)):
                made.add_text(field, text)


def _texts(name: str, text: str) -> Iterator[tuple[str, str]]:
    """The fields into which a text goes, each with its value."""
    if name in TEXTS:
        yield name, prepare_text(text)
    if name in _EXACT:
        yield _EXACT[name], text[:_MAX_EXACT_CHARS]
    if name in _NAMES:
        yield name, text
    if name in WORDS:
        yield WORDS[name], prepare_text(text)

"""Readers of texts that were taken from bodies: words, values, fields of documents, what a terminal shows."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from searchcrawl.delivery.anchors import LinkCounts
from searchcrawl.documents.language import judge_languages, weigh_usual
from searchcrawl.html.page_text import BLOCK_MARK, collapse, collapse_lines, collapse_segments
from searchcrawl.index.local.schema import build_document, prepare_text
from searchcrawl.index.local.search import cut_snippet
from searchcrawl.index.query import find_other_prefixes, parse
from searchcrawl.index.sanitising import clean_fields, cut_bytes, find_id_fault, parse_number
from searchcrawl.index.snippets import shorten
from searchcrawl.items import Page
from searchcrawl.rules.attribute_values import AttributeMap, Mapped
from searchcrawl.rules.host_texts import (
    MOST_TEXTS,
    WordCounts,
    cut_blocks,
    list_blocks,
    pack_keys,
    select_blocks,
    select_texts,
    unpack_keys,
)
from searchcrawl.rules.near_copies import PLACES, NearGroups, count_equal_places, sign
from searchcrawl.rules.traps import KnownText
from searchcrawl.rules.turned_pages import PageWords, Sketch, split_words, words_of
from searchcrawl.soft404.signature import Sample, Signature
from searchcrawl.store.urls.link_table import LinkTexts, decode_texts, encode_texts
from searchcrawl.terminal import escape_json, to_lines, to_one_line, wrap_line
from tests.readers.declaring import BODY, URL, declare
from tests.readers.headers import DATES

_WORDS: Final = (
    *(
        "a",
        "a{n}",
        "\u0301\u0323",
        " ",
        "\n",
        "_",
        "-",
        "'",
        "’",
        "1",
        "1.",
        "1,",
        "é",
        "あ",
        "가",
        "漢",
        "𠀀",
        "ﬁ",
        "\u0301",
        "\0",
        "\x1b[",
    ),
    *(
        "\x9b",
        "\u202e",
        "\x02",
        "\ufffe",
        "\ue000",
        "🇩🇪",
        "🏴\U000e0067",
        "\u200d",
        "ẞ",
        "İ",
        "\x85",
        "\x01",
        "„",
        "{n} ",
    ),
)
_ATTRIBUTES: Final = AttributeMap(
    [Mapped("meta:n", "n", "number"), Mapped("meta:d", "d", "date"), Mapped("meta:s", "s", "string")]
)


@declare(
    *_WORDS,
    most=BODY,
    grown=[lambda n: "a" * n, lambda n: "a_" * n, lambda n: "\u3042" * n, lambda n: "die \u0434\u0430\n" * n],
)
def words(given: bytes) -> None:
    text = given.decode("utf-8", "replace")
    split_words(text)
    words_of(text)
    weigh_usual(text, judge_languages(text, ("en",)), "de")
    weigh_usual(text, judge_languages(text), "de")


@declare(*_WORDS, most=BODY)
def page_text(given: bytes) -> None:
    text = given.decode("utf-8", "replace")
    collapse_segments(text.split(BLOCK_MARK))
    for clean in (collapse, collapse_lines):
        assert clean(clean(text)) == clean(text)


@declare(*_WORDS, most=BODY)
def compared(given: bytes) -> None:
    text = given.decode("utf-8", "replace")
    assert 0 <= KnownText().measure(URL, text[:200], text) <= 1
    sketch = Sketch.of(PageWords.of(URL, text, text))
    assert Sketch.unpack(sketch.pack()) == sketch
    page = Page(title=text[:200], text=text)
    sample = Sample.of(page, asked=URL)
    signature = Signature.between(sample, sample)
    if signature is not None:
        signature.matches(page, asked=URL)


@declare(*_WORDS, "r", most=BODY)
def near_copies(given: bytes) -> None:
    text = given.decode("utf-8", "surrogateescape")
    signature = sign(text)
    assert count_equal_places(signature, signature) == (PLACES if signature else 0)
    count_equal_places(text, signature)
    NearGroups().add(1, signature)


@declare(*DATES, "1e", "1e999", "0x1", "inf", "nan", "²", "٣", "{n}", "2024/01/01", "2024", "2024-01")
def values(given: bytes) -> None:
    text = given.decode("utf-8", "replace")
    read = _ATTRIBUTES.read({"meta:n": [text], "meta:d": [text], "meta:s": [text]})
    build_document("source:1", dict(read.values.items()), source="source", crawl_version=1)
    parse_number(text)


@declare(*_WORDS, "\ue000", "\ue001", most=BODY, grown=[lambda n: "\ue000a\ue001 " * n])
def fields(given: bytes) -> None:
    text = given.decode("utf-8", "replace")
    cleaned = clean_fields({"title": text, "content": text, "attr_s": [text]})
    for language in ("de", "ja", "ko"):
        build_document("source:1", {**cleaned, "language": language}, source="source", crawl_version=1)
    prepare_text(text)
    cut_bytes(text, 100)
    find_id_fault(text)
    cut_snippet(text, re.compile("a"))
    shorten(text)


@declare(*_WORDS, '"', "title:", "n:", "(", "*", "OR", "-", ":", "[1 TO 2]")
def query(given: bytes) -> None:
    text = given.decode("utf-8", "replace")
    parse(text, {"n": "attr_n_s"})
    find_other_prefixes(text)


@declare(*_WORDS, " ", most=BODY)
def terminal(given: bytes) -> None:
    text = given.decode("utf-8", "replace")
    wrap_line(to_one_line(text), 80)
    to_lines(text)
    escape_json(text)


@declare("Kettle {n}\n", "the {n}\n", "\n", "K", "é", "あ", "\t", "\r", "_", most=BODY)
def texts_of_links(given: bytes) -> None:
    texts = [line for each in given.decode("utf-8", "replace").split("\n") if (line := " ".join(each.split()))]
    said = LinkTexts("The title", {3: texts, 5: ["text"]})
    assert decode_texts(encode_texts(said)) == said
    with LinkCounts(in_memory=1_000) as counted:
        counted.add_document(3, "The title")
        for text in texts:
            counted.add_link(3, text, 1)
        (linked,) = [document.links for document in counted.by_document()] or [[]]
    counts = WordCounts()
    counts.add(link.folded for link in linked)
    found = select_texts(linked, title="The title", counts=counts, pages_of_host={1: 5})
    assert len(found) <= MOST_TEXTS
    assert set(found) <= set(texts)


@declare("Home\n", "A line that is long enough to go\n", "line {n}\n", "\n", "é", "あ", "x" * 1_001, most=BODY)
def blocks_of_site(given: bytes) -> None:
    text = given.decode("utf-8", "replace")
    counts = Counter(dict.fromkeys(list_blocks(text), 12))
    blocks = select_blocks(counts, 12, before=frozenset(counts))
    assert unpack_keys(pack_keys(blocks)) == blocks
    assert unpack_keys(pack_keys(blocks)) == blocks
    half = frozenset(sorted(blocks)[::2])
    assert len(cut_blocks(f"kept\n{text}", half)) <= len(text) + 5

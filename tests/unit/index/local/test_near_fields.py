"""What tells whether a hit is a near copy is read without the rest of it, and is what the whole says."""

from __future__ import annotations

import orjson
import pytest

from searchcrawl.index.local.search import NearFields

FIELDS = {
    "content": 'A text with "source":"evil", \\"text_signature\\":\\"0\\" and \\',
    "title": '"source":"title"',
    "url": 'http://a.test/"x"',
    "duplicates": ["http://a.test/1", "http://a.test/2"],
    "text_signature": "1" + "0f" * 64,
    "source": "demo",
}


def test_fields_when_a_text_looks_like_them_then_they_are_read_as_they_were_stored() -> None:
    fields = NearFields(orjson.dumps(FIELDS))

    assert {name: fields[name] for name in FIELDS} == FIELDS
    assert dict(fields) == FIELDS
    assert len(fields) == len(FIELDS)


def test_fields_when_a_document_has_no_signature_then_there_is_none() -> None:
    fields = NearFields(orjson.dumps({"content": '"text_signature":"1"', "source": "demo"}))

    assert fields.get("text_signature", "") == ""
    with pytest.raises(KeyError):
        fields["text_signature"]

"""What pages and their headers say of themselves: refresh, encoding, type, name of the file."""

from __future__ import annotations

import base64
from typing import Any, Final

from searchcrawl.html.content_type import parse_content_type
from searchcrawl.html.encoding import decode, find_encoding
from searchcrawl.html.file_name import parse_disposition
from searchcrawl.html.metas import parse_refresh
from tests.conformance.corpus import Divergence, cases, tally

#: By file and number.
ENCODINGS: Final = {
    ("encoding/scripted/tests1.dat", 0): Divergence("not applicable", "decided by a script, which nobody runs here"),
    ("encoding/test-yahoo-jp.dat", 0): Divergence("policy", "a page that is in UTF-8 is read so, whatever it declares"),
}
_OTHERS: Final = {
    "multipart": Divergence("not applicable", "form-data of browsers, where names are escaped in another way"),
    "extended": Divergence("not applicable", "a parser told not to decode filename*"),
}


def test_meta_refresh_cases_when_read_then_all_agree() -> None:
    verdicts = []
    for case in cases("meta_refresh_wpt.json"):
        refresh = parse_refresh(case["content"])
        # URL parsing drops these characters; the cases give its result.
        read = refresh and (refresh.seconds, refresh.url.translate({9: None, 10: None, 13: None}))
        expected = (case["expected_seconds"], case["expected_url"] or "") if case["refreshes"] else None
        verdicts.append((case["content"], read == expected))

    assert tally("meta refresh, WPT", verdicts, {}) == (73, 73)


def test_encodings_of_html5lib_when_decoded_then_only_listed_ones_differ() -> None:
    verdicts = []
    for case in cases("html_encoding_html5lib.json"):
        _, charset = decode(base64.b64decode(case["body_b64"]), content_type="", default_charset="windows-1252")
        verdicts.append(((case["file"], case["index"]), charset == find_encoding(case["expected_encoding"])))

    assert tally("encodings, html5lib", verdicts, ENCODINGS) == (81, 82)


def test_content_types_when_read_then_all_agree() -> None:
    verdicts = []
    for number, case in enumerate(cases("content_type_wpt.json")):
        values = case.get("content_type_header_values")
        essence, label = parse_content_type(", ".join(values) if values else case["input"])
        charset = case["expected_encoding"] if values else case.get("encoding")
        output = (case["expected_mime_type"] if values else case["output"]) or ""
        expected = (output.partition(";")[0], charset and charset.lower())
        verdicts.append((number, (essence, find_encoding(label or "")) == expected))

    assert tally("Content-Type, WPT", verdicts, {}) == (975, 975)


def test_content_dispositions_when_read_then_only_those_of_others_differ() -> None:
    found = cases("content_disposition.json")
    verdicts = []
    for number, case in enumerate(found):
        disposition = parse_disposition(case["header"])
        verdicts.append((number, (disposition.type, disposition.parameters) == (case["type"], case["parameters"])))
    listed = {number: _reason(found[number]) for number, agrees in verdicts if not agrees}

    assert tally("Content-Disposition, jshttp", verdicts, listed) == (130, 130)


def _reason(case: dict[str, Any]) -> Divergence:
    """Fails for a case without an option that is none of ours."""
    (option,) = _OTHERS.keys() & case.get("options", {}).keys()
    return _OTHERS[option]

"""The name that a server gives a file (RFC 6266, RFC 8187)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchcrawl.html.content_disposition import parse_disposition

CASES = Path(__file__).resolve().parents[4] / "shared" / "conformance" / "content_disposition.json"
#: Cases of another header's syntax, or of an option that is no behaviour of ours: not applicable.
NOT_OURS = {
    "multipart": "form-data of browsers, where names are escaped in another way",
    "extended": "a parser told not to decode filename*",
}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("attachment; filename=plans.pdf", "plans.pdf"),
        ('inline; FILENAME = "the \\"plans\\".pdf" ; x=y', 'the "plans".pdf'),
        ("attachment; filename=old.pdf; filename*=UTF-8''%E2%82%AC%20rates.pdf", "€ rates.pdf"),
        ("attachment; filename*=UTF-8''%E2%82%AC.pdf; filename=old.pdf", "€.pdf"),
        ("attachment; filename=good.pdf; filename*=UTF-8''%E4.pdf", "good.pdf"),
        ("attachment; filename=good.pdf; filename*=koi8-r''%C1.pdf", "good.pdf"),
        ('attachment; filename*1="html"; filename*0="foo."; filename*3="not"', "foo.html"),
        ("attachment; filename*0*=UTF-8''foo-%c3%a4; filename*1=.html", "foo-ä.html"),
        ('attachment; filename="unterminated', None),
        ('attachment; filename=""', None),
        ("attachment", None),
        ("", None),
        ("; ;=; filename", None),
        ('attachment; x="a;filename=no"; filename=yes', "yes"),
    ],
)
def test_name_when_sent_in_any_way_then_is_read(value: str, name: str | None) -> None:
    assert parse_disposition(value).file_name == name


def test_disposition_when_endless_then_is_read_as_far_as_anybody_means_it() -> None:
    long = "attachment; " + "filename*=UTF-8''" + "%41" * 1_000_000

    assert parse_disposition(long).type == "attachment"


def test_disposition_when_the_public_cases_run_then_only_those_of_others_differ() -> None:
    if not CASES.exists():
        pytest.skip(f"the public conformance cases are not here ({CASES.name})")
    cases = json.loads(CASES.read_text("utf-8"))["cases"]
    ours = [case for case in cases if not NOT_OURS.keys() & case.get("options", {}).keys()]

    differing = []
    for case in ours:
        disposition = parse_disposition(case["header"])
        if (disposition.type, disposition.parameters) != (case["type"], case["parameters"]):
            differing.append(case)

    assert differing == []
    assert (len(ours), len(cases)) == (127, 135)

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scrapy.statscollectors import StatsCollector
from scrapy.utils.test import get_crawler

from searchcrawl.codes import Code
from searchcrawl.convert.convert_pipeline import ConvertPipeline
from searchcrawl.convert.registry import Registry
from searchcrawl.convert.user_converter import find_converter_errors, list_user_converters
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.html.context import ConversionContext
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys
from searchcrawl.sources.loading import load_project, load_source
from searchcrawl.testing import Converted, converted
from tests import factories

MODULE = """
import os, time
from searchcrawl.plugins import Converted

class Notes:
    def __init__(self):
        self.made = os.getpid()

    def convert(self, body, *, url, mimetype):
        match body:
            case b"hang": time.sleep(60)
            case b"swell": return Converted(text="x" * (1 << 30))
            case b"die": os._exit(3)
            case b"raise": raise LookupError("no such word")
            case b"wrong": return "text"
            case b"leave": raise SystemExit("no licence")
            case b"values": return Converted(text="t", values=5)
            case b"value": return Converted(text="t", values={"text": b"x"})
            case b"name": return Converted(text="t", values={5: "x"})
            case b"keys": return Converted(text="t", values=Unlisted(a="b"))
            case b"steer": raise LookupError("a\\x1b]0;b")
        return Converted(text=f"{body.decode()} {self.made != os.getppid()}", title=url, values={"created": mimetype})

class Unlisted(dict):
    def __iter__(self):
        raise LookupError("no names")

    keys = __iter__

class Nothing: ...

class Choosy(Notes):
    def __init__(self, language): ...

class Late(Notes):
    async def convert(self, body, *, url, mimetype): ...

class Many(Notes):
    def convert(self, body, *, url, mimetype):
        yield body

class Unable(Notes):
    def __init__(self):
        raise LookupError("no model")
"""

WRONG = {
    "wrong": "TypeError: must return a Converted (got str)",
    "values": "TypeError: values must be a mapping (got int)",
    "value": "TypeError: values['text'] must be a string (got bytes)",
    "name": "TypeError: a name in values must be a string (got 5)",
    "keys": "LookupError: no names",
}


def project(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "notes_of_test.py").write_text(MODULE, "utf-8")
    (folder / "sources").mkdir(exist_ok=True)
    (folder / "sources" / "a.toml").write_text(
        '[start]\nurls = ["http://a.test/"]\n[scope]\nallow_all = true\n', "utf-8"
    )
    (folder / "searchcrawl.toml").write_text(f'contact = "a@b.test"\n{text}', "utf-8")
    return folder


def test_own_converter_when_files_fail_it_in_any_way_then_each_costs_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_project(project(tmp_path, '[converters]\n"text/x-note" = "notes_of_test:Notes"\n'))
    monkeypatch.setattr("searchcrawl.convert.conversion_pool.TIMEOUT_SECONDS", 3.0)
    pipeline = ConvertPipeline(
        StatsCollector(get_crawler()),
        ConversionContext(default_charset="utf-8", attribute_origins=frozenset({"meta:created"})),
        registry=Registry(list_user_converters(loaded)),
    )
    pipeline._pool._timeout_seconds = 3.0

    async def process() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for body in ("one", "raise", "hang", "die", "swell", "leave", "steer", *WRONG, "two"):
            document = replace(factories.document(body), page=None, mimetype="text/x-note")
            result = pipeline.process_document(document)
            found[body] = await result if isinstance(result, Awaitable) else result
        await pipeline.close_spider()
        return found

    ends = asyncio.run(process())

    assert [ends[body].page.text for body in ("one", "two")] == ["one True", "two True"]
    assert ends["one"].page.found == (("meta:created", ("text/x-note",)),)
    assert ends["one"].converter == "notes_of_test:Notes"
    codes = {body: end.code for body, end in ends.items() if body not in {"one", "two"}}
    failed, limited = ("raise", "leave", "steer", *WRONG), ("hang", "die", "swell")
    assert codes == dict.fromkeys(failed, Code.CONVERSION_FAILED) | dict.fromkeys(limited, Code.CONVERSION_LIMIT)
    assert ends["raise"].error.startswith("notes_of_test:Notes: LookupError: no such word")
    for body, message in WRONG.items():
        assert ends[body].error.startswith(f"notes_of_test:Notes: {message}")
    assert ends["leave"].error.startswith("notes_of_test:Notes: SystemExit: no licence")
    assert ends["steer"].error.startswith("notes_of_test:Notes: LookupError: a ]0;b")
    assert ends["hang"].error.startswith("notes_of_test:Notes: took longer than 3 s")


def test_own_converter_when_named_then_it_can_be_sent_to_a_process(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path, '[converters]\n"text/x-note" = "notes_of_test:Notes"\n'))

    (converter,) = list_user_converters(loaded)

    assert pickle.loads(pickle.dumps(converter.convert)) == converter.convert


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"text/x-note" = "notes_of_test:Nothing"', 'has no method convert (got "notes_of_test:Nothing")'),
        (
            '"text/x-note" = "notes_of_test:Choosy"',
            "must be made without arguments: missing a required argument: 'language' (got \"notes_of_test:Choosy\")",
        ),
        ('"text/x-note" = "notes_of_test:Late"', "convert must be an ordinary method"),
        ('"text/x-note" = "notes_of_test:Many"', "convert must be an ordinary method"),
        ('"text/x-note" = "notes_of_test:Notes.convert"', 'is no class (got "notes_of_test:Notes.convert")'),
        ('"text/x-note" = "not_there:Notes"', "cannot be imported: ModuleNotFoundError: No module named 'not_there'"),
        ('"text/x-note" = "notes"', 'must be "module:Class" (got "notes")'),
        ('"note" = "notes_of_test:Notes"', "must be a MIME type"),
        ('"text/x-note" = 3', "must be a string (got 3)"),
    ],
)
def test_project_when_a_converter_is_wrong_then_file_key_and_value_are_named(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_project(project(tmp_path, f"[converters]\n{text}\n"))

    assert str(caught.value).startswith("searchcrawl.toml: converters")
    assert message in str(caught.value)


def test_converters_when_they_cannot_be_made_then_each_is_named(tmp_path: Path) -> None:
    named = '[converters]\n"text/x-note" = "notes_of_test:Notes"\n"text/x-other" = "notes_of_test:Unable"\n'

    errors = find_converter_errors(load_project(project(tmp_path, named)))

    assert list(map(str, errors)) == [
        'searchcrawl.toml: converters."text/x-other": cannot be made: LookupError: no model (got "notes_of_test:Unable")'
    ]


def test_fingerprint_when_converters_are_edited_then_it_differs(tmp_path: Path) -> None:
    prints = []
    for text in ("", '[converters]\n"text/x-note" = "notes_of_test:Notes"\n'):
        source = load_source(load_project(project(tmp_path, text)), "a")
        prints.append(compute_fingerprint(source, versions={}))

    assert find_changed_keys(*prints) == ["converters"]


def test_converted_when_an_author_tests_a_class_then_as_in_a_run() -> None:
    class Mine:
        def convert(self, body: bytes, *, url: str, mimetype: str) -> Converted:
            return Converted(text=body.decode(), author=mimetype)

    page = converted(Mine, b"a  b\n\nc", mimetype="text/x-note", url="http://a.test/x%20y.note")

    assert (page.title, page.text, page.author) == ("x y.note", "a b\nc", "text/x-note")


def test_converted_when_a_class_answers_anything_else_then_it_is_told() -> None:
    class Wrong:
        def convert(self, body: bytes, *, url: str, mimetype: str) -> Converted:
            return Converted(text=body)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="text must be a string"):
        converted(Wrong, b"x", mimetype="text/x-note")

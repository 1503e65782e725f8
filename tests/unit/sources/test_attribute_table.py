"""The [attributes] of source files: what is understood, refused, and compared between sources (A5, A6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.rules.attribute_values import Mapped
from searchcrawl.sources.attribute_table import Registered, choose_shown_names, map_index_fields
from searchcrawl.sources.effective import dump_registered, load_registered
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys
from searchcrawl.sources.loading import build_attribute_map, load_project, load_sources
from tests.source_files import find_error, loaded, write_source

SOURCE = '[start]\nurls = ["http://a.test/"]\n[scope]\nallow_all = true\n'


def write(root: Path, table: str, name: str = "demo") -> None:
    write_source(root, f"{SOURCE}[attributes]\n{table}\n", name)


def refusal(root: Path, name: str = "demo") -> str:
    return "\n".join(map(str, find_error(root, name).errors))


def test_attributes_when_mapped_then_origins_are_in_lower_case_and_types_are_known(root: Path) -> None:
    write(root, '"Meta:DC.Creator" = "Author"\n"header:X-Version" = "version"\n"jsonld:datePublished" = "issued"\n'
                '"meta:revised" = "LastModifiedDate"\n[attributes.types]\nissued = "date"')  # fmt: skip

    attributes = build_attribute_map(loaded(root))

    assert attributes is not None
    assert attributes.mapped == (
        Mapped("meta:dc.creator", "author", "string"),
        Mapped("header:x-version", "version", "string"),
        Mapped("jsonld:datepublished", "issued", "date"),
        Mapped("meta:revised", "last_modified", "date"),
    )
    assert attributes.attribute_origins == {"meta:dc.creator", "jsonld:datepublished", "meta:revised"}


def test_attributes_when_nothing_is_said_then_there_are_none_and_the_fingerprint_is_as_it_was(root: Path) -> None:
    write_source(root, SOURCE)
    plain = loaded(root)
    write(root, "drop = []")
    empty = loaded(root)

    assert build_attribute_map(plain) is build_attribute_map(empty) is None
    assert compute_fingerprint(plain, versions={}) == compute_fingerprint(empty, versions={})


def test_attributes_when_the_table_is_edited_then_each_key_that_differs_is_named(root: Path) -> None:
    write(root, '"meta:a" = "one"\n"meta:b" = "two"')
    before = compute_fingerprint(loaded(root), versions={})
    write(root, '"meta:a" = "three"\ndrop = []\nuse_desc_fallback = true\n[attributes.types]\nthree = "number"')
    after = compute_fingerprint(loaded(root), versions={})

    assert find_changed_keys(before, after) == [
        "attributes.meta:a",
        "attributes.meta:b",
        "attributes.types",
        "attributes.use_desc_fallback",
    ]


@pytest.mark.parametrize("name", ["Title", "author", "Description", "SUBJECT", "mimetype", "Language", "host",
                                  "LastModifiedDate", "last_modified"])  # fmt: skip
def test_attributes_when_one_of_the_fixed_eight_is_dropped_then_refused(root: Path, name: str) -> None:
    write(root, f'drop = ["{name}"]')

    assert "sources/demo.toml: attributes.drop: " in refusal(root)
    assert "cannot be removed" in refusal(root)


def test_attributes_when_a_shared_one_is_dropped_then_this_source_has_it_no_more(root: Path) -> None:
    (root / "searchcrawl.toml").write_text(
        'contact = "a@b.example"\n[defaults.attributes]\n"meta:a" = "one"\n"meta:b" = "two"\n', "utf-8"
    )
    write(root, 'drop = ["one"]')

    attributes = build_attribute_map(loaded(root))

    assert attributes is not None
    assert [each.attribute for each in attributes.mapped] == ["two"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('"meta:a" = "two words"', 'attributes."meta:a": must be at most 64 letters, digits and _.-'),
        ('"meta:a" = "1st"', "a letter first"),
        ('"meta:a" = "größe"', "(ASCII)"),
        ('"meta:a" = ["b"]', 'attributes."meta:a": must be a string'),
        ('"meta:a" = "content"', "is a field of every document"),
        ('"meta:a" = "title_txt_en"', "is a field of every document"),
        ('"meta:a" = "host"', "the host is that of the URL"),
        ('"metas:a" = "b"', 'must be "meta:NAME", "header:NAME", "jsonld:NAME", "file:NAME" or "column:NAME"'),
        ('"meta:" = "b"', 'must be "meta:NAME"'),
        ('"header:X Version" = "b"', 'attributes."header:X Version": is no name of a header'),
        ('"header:X-Version:" = "b"', 'attributes."header:X-Version:": is no name of a header'),
        ('"jsonld:author..name" = "b"', 'attributes."jsonld:author..name": a name is missing beside a dot'),
        ('"jsonld:author." = "b"', "a name is missing beside a dot"),
        ('"meta:a b" = "c"\n"meta:A  b" = "d"', "the same name twice"),
        ('"meta:a" = "b"\n"META:A" = "c"', 'attributes."META:A": the same name twice'),
        ('"meta:a" = "b"\n"meta:c" = "B"', "differ only in case"),
        ('author = "x"', "attributes.author: unknown key"),
        ("dropp = []", "attributes.dropp: unknown key (did you mean drop?)"),
        ('drop = ["b"]', "attributes.drop: nothing is mapped to b"),
        ('"meta:a" = "version"\n[attributes.types]\nvresion = "number"',
         "attributes.types.vresion: nothing is mapped to vresion (did you mean version?)"),
        ('"meta:a" = "b"\n[attributes.types]\nb = "float"', 'attributes.types.b: must be "string", "text", "number"'),
        ('[attributes.types]\nauthor = "number"', "the type of author is fixed"),
    ],
)  # fmt: skip
def test_attributes_when_a_table_is_wrong_then_its_file_and_key_are_named(root: Path, table: str, message: str) -> None:
    write(root, table)

    assert refusal(root).startswith("sources/demo.toml: attributes")
    assert message in refusal(root)


def test_a7_values_when_they_have_display_names_then_that_of_the_language_is_chosen(root: Path) -> None:
    write(
        root,
        """"meta:c" = "Color"
[attributes.values.Color]
red = "Red!"
"#00f" = {name = "Blue", de = "Blau", "PT-br" = "Azul"}
green = {fr = "Vert"}
[attributes.values.Language]
de = "German"
""",
    )
    tables = [loaded(root).attributes]

    shown = {language: choose_shown_names(tables, language) for language in ("", "de-at", "pt-br", "pt", "fr")}

    language = {"language": {"de": "German"}}
    assert shown == {
        "": {"color": {"red": "Red!", "#00f": "Blue"}, **language},
        "de-at": {"color": {"red": "Red!", "#00f": "Blau"}, **language},
        "pt-br": {"color": {"red": "Red!", "#00f": "Azul"}, **language},
        "pt": {"color": {"red": "Red!", "#00f": "Blue"}, **language},
        "fr": {"color": {"red": "Red!", "#00f": "Blue", "green": "Vert"}, **language},
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("x = 1", "attributes.values.x: must be a table (got 1)"),
        ("x.a = 1", "attributes.values.x.a"),
        ("x.a.german = 'A'", "attributes.values.x.a"),
        ('"a b".a = "A"', "must be at most 64 letters, digits"),
    ],
)
def test_a7_values_when_they_are_no_display_names_then_refused(root: Path, values: str, expected: str) -> None:
    write(root, f'"meta:a" = "b"\n[attributes.values]\n{values}')

    assert expected in refusal(root)


def test_types_when_two_sources_differ_then_both_are_refused_and_each_names_the_other(root: Path) -> None:
    write(root, '"meta:a" = "version"')
    write(root, '"header:b" = "version"\n[attributes.types]\nversion = "number"', "other")
    write(root, '"meta:a" = "revision"', "c")

    sources, errors = load_sources(load_project(root))

    assert list(sources) == ["c"]
    assert [str(error) for error in errors] == [
        "sources/demo.toml: attributes.types.version: is string here and number in sources/other.toml",
        "sources/other.toml: attributes.types.version: is number here and string in sources/demo.toml",
    ]
    assert refusal(root) == str(errors[0])
    assert refusal(root, "other") == str(errors[1])
    assert loaded(root, "c").name == "c"


def test_fields_when_sources_share_an_attribute_then_it_is_one_of_one_type(root: Path) -> None:
    write(root, '"meta:a" = "version"\n"meta:d" = "Issued"\n[attributes.types]\nIssued = "date"')
    write(root, '"header:revision" = "version"', "b")

    sources, errors = load_sources(load_project(root))
    fields = map_index_fields(source.attributes for source in sources.values())

    assert errors == []
    assert (fields["version"], fields["issued"]) == ("version_s", "Issued_dt")
    assert (fields["lastmodifieddate"], fields["author"], fields["depth"]) == ("last_modified", "author", "depth")


FILE = """
groups = ["press", "all"]
[start]
urls = ["http://a.test/"]
[scope]
allow_all = true
[attributes]
"meta:color" = "color"
"meta:size" = "size"
"meta:lang" = "language"
[attributes.types]
size = "number"
[attributes.values.color]
red = {name = "Red", DE = "Rot", fr = {env = "HIDDEN_NAME"}}
blue = "Blue"
green = {env = "HIDDEN_NAME"}
"""


def test_source_when_registered_then_comes_back_and_no_value_of_the_environment_is_in_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIDDEN_NAME", "hidden-text")
    write_source(root, FILE)

    text = dump_registered(loaded(root))

    assert load_registered(text) == Registered(
        types={"color": "string", "size": "number"},
        values={"color": {"red": {"name": "Red", "de": "Rot"}, "blue": "Blue"}},
        groups=["all", "press"],
    )
    assert "hidden-text" not in text

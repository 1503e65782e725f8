"""The one table of the index's fields: what is derived from it, and what Solr's schema says of the same fields."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from searchcrawl.index_fields import (
    ATTRIBUTE_FIELDS,
    FIELDS,
    LANGUAGE_FIELDS,
    TEXTS,
    WHOLE_VALUES,
    WORDS,
    FieldKind,
    IndexField,
    split_attribute_field,
)

SCHEMA = Path(__file__).resolve().parents[2] / "solr/configset/schema.xml"
#: The types of Solr that a kind may have, the usual one first.
TYPES = {
    FieldKind.NAME: ("string",),
    FieldKind.TEXT: ("text_general",),
    FieldKind.NUMBER: ("plong", "pint", "pdouble"),
    FieldKind.DATE: ("pdate",),
}
#: What Solr needs for itself, and fields with other analyses of the same values.
SOLR_ONLY = {"_version_", "tombstone_b", "*_general", "*_exact", "*_words"}


@pytest.fixture(scope="module")
def schema() -> ET.Element:
    return ET.parse(SCHEMA).getroot()


def build_line(field: IndexField) -> str:
    """The line that declares a field in the schema of Solr."""
    several = ' multiValued="true"' if field.is_multi_valued else ""
    return f'<field name="{field.name}" type="{TYPES[field.kind][0]}"{several}/>'


def test_solr_schema_when_read_then_has_the_fields_of_the_table_and_their_types(schema: ET.Element) -> None:
    elements = [*schema.iter("field"), *schema.iter("dynamicField")]
    languages = tuple(field.name.removesuffix("*") for field in LANGUAGE_FIELDS)
    declared = {
        element.attrib["name"]: (element.attrib["type"], element.get("multiValued") == "true")
        for element in elements
        if element.attrib["name"] not in SOLR_ONLY
        and not (element.tag == "field" and element.attrib["name"].startswith(languages))
    }
    table = {field.name: field for field in (*FIELDS, *ATTRIBUTE_FIELDS.values(), *LANGUAGE_FIELDS)}

    assert [build_line(field) for name, field in table.items() if name not in declared] == [], "add to schema.xml"
    assert declared.keys() == table.keys()
    for name, (kind, is_multi_valued) in declared.items():
        assert kind in TYPES[table[name].kind], name
        assert is_multi_valued == table[name].is_multi_valued, name
    assert [element.attrib["name"] for element in elements if element.get("required")] == ["id"]


def test_solr_schema_when_read_then_copies_whole_values_and_words_as_the_table_says(schema: ET.Element) -> None:
    copies = {element.attrib["source"]: element.attrib["dest"] for element in schema.iter("copyField")}

    whole = {name: WHOLE_VALUES[name] for name in TEXTS if name in WHOLE_VALUES}
    assert copies == {**whole, **WORDS, "*_s": "*_general", "*_t": "*_exact"}


def test_fields_when_fixed_then_they_are_the_eight_that_every_document_has() -> None:
    assert {field.name for field in FIELDS if field.is_fixed} == {
        "title", "author", "description", "subject", "mimetype", "language", "host", "last_modified",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("version_s", ("version", "string")),
        ("a_s_t", ("a_s", "text")),
        ("dc.x-y_dt", ("dc.x-y", "date")),
        ("n_l", ("n", "number")),
        ("last_modified", None),
        ("title", None),
        ("_s", None),
        ("1_s", None),
        ("a b_s", None),
        ("größe_s", None),
    ],
)
def test_field_when_it_is_that_of_an_attribute_then_name_and_type(field: str, expected: tuple[str, str] | None) -> None:
    assert split_attribute_field(field) == expected

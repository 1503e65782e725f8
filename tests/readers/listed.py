"""Readers of what folders, servers and databases say of what is listed: names, identities, values of rows."""

from __future__ import annotations

from searchcrawl.exceptions import InvalidUrl
from searchcrawl.kinds.file.names import (
    can_be_name,
    escape,
    is_remote,
    show,
    split,
    split_remote,
    to_identity,
    to_path,
)
from searchcrawl.kinds.file.remote.smb_structures import decode_name, read_server_ms
from searchcrawl.kinds.file.roots import Root, find_root
from searchcrawl.kinds.table.config import Template
from searchcrawl.kinds.table.identity import parse_row
from searchcrawl.kinds.table.values import clean, list_principals, list_texts, read_moment, to_text
from tests.readers.declaring import BODY, ODD_BYTES, declare

#: A longer identity cannot be kept.
_IDENTITY = 32_768
_TEMPLATE = Template((("a ", "value"), (" b", None)))


@declare(
    *(
        "file://",
        "file://localhost/",
        "smb://host/share/",
        "s3://bucket/",
        "/",
        "//",
        ".",
        "..",
        "%2e",
        "%00",
        "%2F",
        "%",
    ),
    *("?", "#", "\\", ":", "a", "{n}", *ODD_BYTES),
    most=_IDENTITY,
    raises=(InvalidUrl,),
    grown=[
        lambda n: "file:///" + "%2e/" * n,
        lambda n: "smb://host/" + "a/" * n,
        lambda n: "s3://bucket/" + "%2F" * n,
        lambda n: "file:///" + "/" * n,
    ],
)
def identity_of_file(given: bytes) -> None:
    text = given.decode("latin-1")
    escape(given)
    to_identity(given, is_folder=True)
    split(b"/srv/" + given, b"/srv")
    show(given)
    decode_name(given)
    read_server_ms(given)
    find_root([Root("/srv", "file:///srv/")], text)
    if is_remote(text):
        scheme, _, names = split_remote(text)
        for name in names:
            can_be_name(name, scheme)
    to_path(text)


@declare(
    *(
        "row://source/table/",
        "/",
        "~t:",
        "~n:",
        "~b:",
        "~u:",
        "~s:",
        "~d:",
        "~h:",
        "~o:",
        "~x:",
        "00",
        "9",
        "1e9",
        "-",
        "NaN",
    ),
    *(
        "2026-05-04",
        "T11:00:00",
        "+01:00",
        "12345678-1234-5678-1234-567812345678",
        "true",
        "%ff",
        "%2F",
        ".",
        "a",
        "{n}",
    ),
    most=_IDENTITY,
    raises=(InvalidUrl,),
    grown=[
        lambda n: "row://source/table/" + "9" * n,
        lambda n: "row://source/table/~n:" + "9" * n,
        lambda n: "row://source/table/~n:1e" + "9" * n,
        lambda n: "row://source/table/~b:" + "00" * n,
        lambda n: "row://source/table/" + "a/" * n,
        lambda n: "row://source/table/" + "%ff" * n,
    ],
)
def identity_of_row(given: bytes) -> None:
    parse_row(given.decode("latin-1"))


@declare(
    *(
        "2026-05-04",
        "T11:00:00",
        ".5",
        "+01:00",
        "Z",
        "infinity",
        "0000-00-00",
        ",",
        "\n",
        "user:a{n}",
        " ",
        "\0",
        *ODD_BYTES,
    ),
    most=BODY,
    grown=[
        lambda n: "words " * n,
        lambda n: "user:a," * n,
        lambda n: "\0" * n,
        lambda n: "2026-05-04" * n,
        lambda n: "\n" * n,
    ],
)
def values_of_row(given: bytes) -> None:
    text = given.decode("utf-8", "surrogateescape")
    _TEMPLATE.fill({"value": clean(text)}, escape=str.upper)
    read_moment(text)
    to_text(given)
    list_texts([text, given])
    list_principals([text, text.split(",")])

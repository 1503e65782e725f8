"""Answers to PROPFIND, whole, cut, and as strange as servers send them."""

from __future__ import annotations

import pytest

from searchcrawl.kinds.file.remote.multistatus import BrokenMultistatus, MultistatusReader, Resource

BEGIN = '<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus xmlns:D="DAV:" xmlns:x="urn:x">'
END = "</D:multistatus>"


def respond(href: str, *properties: str, status: str = "HTTP/1.1 200 OK") -> str:
    prop = "".join(properties)
    return (
        f"<D:response><D:href>{href}</D:href><D:propstat><D:prop>{prop}</D:prop>"
        f"<D:status>{status}</D:status></D:propstat></D:response>"
    )


def read(text: str | bytes, *, piece: int = 1_000_000) -> list[Resource]:
    body = text if isinstance(text, bytes) else text.encode()
    reader, found = MultistatusReader(), list[Resource]()
    for place in range(0, len(body), piece):
        found += reader.feed(body[place : place + piece])
    reader.end()
    return found


def test_answer_when_read_then_each_resource_has_what_is_said_of_it() -> None:
    folder = respond("/dav/", "<D:resourcetype><D:collection/></D:resourcetype>")
    file = respond(
        "/dav/a%20b.txt",
        "<D:resourcetype/><D:getcontentlength> 12 </D:getcontentlength><D:getetag>&quot;x&#233;&quot;</D:getetag>",
        "<D:displayname>another</D:displayname><x:getetag>no</x:getetag>",
    )
    found = read(BEGIN + "<!-- all -->" + folder + file + END)

    assert [each.href for each in found] == ["/dav/", "/dav/a%20b.txt"]
    assert [each.is_collection for each in found] == [True, False]
    assert found[1].properties == {"resourcetype": "", "getcontentlength": "12", "getetag": '"xé"'}
    assert found[1].status is None


@pytest.mark.parametrize("piece", [1, 7, 100])
def test_answer_when_it_comes_in_pieces_then_is_read_as_one(piece: int) -> None:
    text = BEGIN + "".join(respond(f"/ü/{number}", f"<D:getetag>é{number}</D:getetag>") for number in range(9)) + END

    assert read(text, piece=piece) == read(text)
    assert len(read(text)) == 9


def test_answer_when_its_first_line_names_an_encoding_then_is_read_in_it() -> None:
    text = '<?xml version="1.0" encoding="windows-1252"?><multistatus xmlns="DAV:">{}</multistatus>'.replace(
        "{}", "<response><href>/€</href></response>"
    )

    assert read(text.encode("cp1252"))[0].href == "/€"
    assert read(text.replace("windows-1252", "utf-16").encode("utf-16"))[0].href == "/€"


def test_answer_when_a_resource_has_a_status_then_each_of_its_hrefs_has_it() -> None:
    body = "<D:response><D:href>/a</D:href><D:href>/b</D:href><D:status>HTTP/1.1 403 Forbidden</D:status></D:response>"

    assert [(each.href, each.status) for each in read(BEGIN + body + END)] == [("/a", 403), ("/b", 403)]


def test_answer_when_properties_are_missing_or_withheld_then_only_these_are_told_apart() -> None:
    body = (
        "<D:response><D:href>/a</D:href>"
        "<D:propstat><D:prop><D:getcontentlength>3</D:getcontentlength></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>"
        "<D:propstat><D:prop><D:getetag/></D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>"
        "<D:propstat><D:prop><D:resourcetype/></D:prop><D:status>HTTP/1.1 403 Forbidden</D:status></D:propstat>"
        "</D:response>"
    )
    (found,) = read(BEGIN + body + END)

    assert found.properties == {"getcontentlength": "3"}
    assert found.withheld == {"resourcetype": 403}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html><head><title>Log in</title></head><body><form></form></body></html>",
        "<!doctype html><p>Log in",
        "{}",
        f'<!DOCTYPE D:multistatus [<!ENTITY a "aaaa">]>{BEGIN.partition("?>")[2]}{respond("&a;")}{END}',
        '<!DOCTYPE m SYSTEM "file:///etc/passwd"><m/>',
        f"{BEGIN}{respond('&a;')}{END}",
        "<multistatus><response><href>/a</href></response></multistatus>",
        '<?xml version="1.0" encoding="utf-7"?><a/>',
        '<?xml version="1.0" encoding="none"?><a/>',
        f"{BEGIN}{respond('/a')}{END}{BEGIN}{END}",
        BEGIN + "<D:response>" + "<D:a>" * 200,
        BEGIN + f'<D:response xmlns:y="{"y" * 2000}">',
        BEGIN + "<D:response><D:href>" + "a" * 70_000 + "</D:href></D:response>" + END,
        BEGIN + "<!--" + "a" * 3_000_000,
        BEGIN + f'<D:response a="{"a" * 3_000_000}"/>' + END,
        BEGIN + "".join(f"<D:a{number}/>" for number in range(200_000)) + END,
        BEGIN + "".join(f"<D:a a{number}=''/>" for number in range(200_000)) + END,
        BEGIN + "".join(f"<a{number}:a xmlns:a{number}='b'/>" for number in range(200_000)) + END,
        BEGIN + "<D:response>" + "<D:href>/a</D:href>" * 200_000 + "</D:response>" + END,
    ],
)  # fmt: skip
def test_answer_when_it_is_none_or_has_no_measure_then_is_refused(text: str) -> None:
    with pytest.raises(BrokenMultistatus):
        read(text, piece=65_536)


def test_answer_when_it_is_cut_anywhere_then_is_refused() -> None:
    text = (BEGIN + respond("/a", "<D:getetag>&amp;</D:getetag>") + respond("/b") + END).encode()
    for place in range(len(text)):
        with pytest.raises(BrokenMultistatus):
            read(text[:place])


def test_answer_when_bytes_are_no_text_then_is_refused() -> None:
    with pytest.raises(BrokenMultistatus):
        read((BEGIN + respond("/a") + END).encode().replace(b"/a", b"/\xe9"))

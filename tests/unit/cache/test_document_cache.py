from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from searchcrawl.bodies import LargeBody, put_down
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.cache.segment import StoredPage
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.items import Place


def page(number: int) -> StoredPage:
    return StoredPage(
        url=f"http://a.example/{number}",
        status=200,
        headers=((b"Content-Type", b"text/html"),),
        body=b"<p>hello %d</p>" % number,
        fetched_at=datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
        fields={"title": f"Page {number}", "content": "hello " * 20},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "demo"


@pytest.fixture
def cache(folder: Path) -> Iterator[DocumentCache]:
    made = DocumentCache(SegmentFolder(folder), folder)
    yield made
    made.close()


def stored(cache: DocumentCache, segment: int, *numbers: int) -> list[Place]:
    writer = cache.open_writer(segment, 0)
    places = [writer.append(page(number)) for number in numbers]
    writer.sync()
    writer.close()
    return places


def test_read_when_a_page_is_in_the_cache_then_it_comes_back(cache: DocumentCache) -> None:
    first, second = stored(cache, 1, 1, 2)

    assert cache.read_page(second, url="http://a.example/2") == page(2)
    assert cache.read_fields(first, url="http://a.example/1") == page(1).fields


def test_read_when_another_page_is_at_the_place_then_it_is_damaged(cache: DocumentCache) -> None:
    (place,) = stored(cache, 1, 1)

    for read in (cache.read_page, cache.read_fields):
        with pytest.raises(DamagedRecord, match=r"00000001\.warc\.gz at byte 0: holds http://a\.example/1 instead of"):
            read(place, url="http://a.example/2")


@pytest.mark.parametrize(
    "content", [b"word " * 1_800_000, os.urandom(9_000_000)], ids=["a small record", "a large record"]
)
def test_read_when_the_body_is_large_then_comes_back_as_a_file_and_damage_is_seen(
    folder: Path, cache: DocumentCache, content: bytes
) -> None:
    large = replace(page(1), body=put_down(content, folder))
    writer = cache.open_writer(1, 0)
    place, after = writer.append(large), writer.append(page(2))
    copied = writer.copy(cache.read_pieces(1, place.offset, place.response_bytes + place.fields_bytes))
    writer.sync()
    writer.close()

    found = cache.read_page(place, url="http://a.example/1")
    assert isinstance(found.body, LargeBody)
    assert (found.body[:], found.headers, found.fields) == (content, large.headers, large.fields)
    assert cache.read_page(after) == page(2)
    assert cache.read_page(place._replace(offset=copied)).body[-9:] == content[-9:]
    file = folder / "00000001.warc.gz"
    data = bytearray(file.read_bytes())
    data[place.offset + place.response_bytes // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedRecord):
        cache.read_page(place)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
def test_read_when_a_byte_of_a_page_is_flipped_then_only_that_page_is_damaged(
    folder: Path, cache: DocumentCache, share: float
) -> None:
    before, place, after = stored(cache, 1, 1, 2, 3)
    file = folder / "00000001.warc.gz"
    data = bytearray(file.read_bytes())
    # Ten bytes of gzip header carry no data.
    data[place.offset + 10 + int(share * (place.response_bytes + place.fields_bytes - 10))] ^= 1
    file.write_bytes(data)

    with pytest.raises(DamagedRecord):
        cache.read_page(place)

    assert (cache.read_page(before), cache.read_page(after)) == (page(1), page(3))


def test_read_when_the_tail_is_cut_then_the_last_page_is_damaged(folder: Path, cache: DocumentCache) -> None:
    kept, cut = stored(cache, 1, 1, 2)
    file = folder / "00000001.warc.gz"
    file.write_bytes(file.read_bytes()[:-3])

    with pytest.raises(DamagedRecord, match="ends before byte"):
        cache.read_fields(cut)

    assert cache.read_page(kept) == page(1)


def test_read_when_the_segment_is_missing_then_the_page_is_damaged(cache: DocumentCache) -> None:
    place = Place(segment=9, offset=0, response_bytes=10, fields_bytes=10)

    with pytest.raises(DamagedRecord, match=r"00000009\.warc\.gz: the segment is missing"):
        cache.read_page(place)


@pytest.mark.parametrize("shift", [-1, 1])
def test_read_when_the_place_is_wrong_then_it_is_damaged(cache: DocumentCache, shift: int) -> None:
    _, place = stored(cache, 1, 1, 2)
    wrong = Place(
        segment=1,
        offset=place.offset + shift,
        response_bytes=place.response_bytes,
        fields_bytes=place.fields_bytes - max(shift, 0),
    )

    for read in (cache.read_page, cache.read_fields):
        with pytest.raises(DamagedRecord):
            read(wrong)


def test_delete_when_a_segment_was_read_then_its_file_goes_and_the_others_stay(cache: DocumentCache) -> None:
    (place,) = stored(cache, 1, 1)
    (other,) = stored(cache, 2, 2)
    cache.read_page(place)

    cache.delete(1)
    cache.delete(1)

    with pytest.raises(DamagedRecord, match="missing"):
        cache.read_page(place)
    assert cache.read_page(other) == page(2)


def test_segments_when_there_are_some_then_numbers_and_sizes_are_told(folder: Path, cache: DocumentCache) -> None:
    assert list(cache.list_segments()) == []

    for number in (10, 2, 123_456_789):
        stored(cache, number, number)
    (folder / "notes.txt").write_text("not ours", encoding="utf-8")

    assert list(cache.list_segments()) == [
        (number, (folder / f"{number:08d}.warc.gz").stat().st_size) for number in (2, 10, 123_456_789)
    ]


def test_read_when_more_segments_are_read_than_files_kept_open_then_all_come_back(cache: DocumentCache) -> None:
    places = [stored(cache, number, number)[0] for number in range(30)]

    for _ in range(2):
        assert [cache.read_fields(place)["title"] for place in places] == [f"Page {number}" for number in range(30)]


def test_read_when_threads_read_while_the_writer_appends_then_each_gets_its_page(cache: DocumentCache) -> None:
    done = [stored(cache, number, number)[0] for number in range(12)]
    writer = cache.open_writer(99, 0)
    wrong: list[str] = []

    def reader() -> None:
        for turn in range(400):
            place = done[(turn * 7) % len(done)]
            found = cache.read_page(place)
            number = found.url.rpartition("/")[2]
            if found != page(int(number)) or (place.segment != 99 and place.segment != int(number)):
                wrong.append(found.url)

    threads = [threading.Thread(target=reader) for _ in range(4)]
    for thread in threads:
        thread.start()
    # One by one, so that the readers see each as soon as it is written.
    done.extend(writer.append(page(number)) for number in range(200))
    for thread in threads:
        thread.join()
    writer.close()

    assert wrong == []

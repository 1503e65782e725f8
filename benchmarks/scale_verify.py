"""``verify`` and its repair over an index of many documents; called by benchmarks/scale.py and by a test of the soak.

python -m benchmarks.scale_verify fill|spoil STORE_URL SIZE FOLDER: a store, an index and a cache that agree, and what is
changed behind the crawler's back. FOLDER/index.json says what searchcrawl.toml says of the index.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import bindparam, insert, select, update

from benchmarks.measured import PYTHON, Cost, run_measured
from benchmarks.scale_table import SOURCE, SOURCE_ID, fill, host_count, url_of
from searchcrawl import clock, urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.cache.segment import StoredPage
from searchcrawl.comparison.differences import in_groups
from searchcrawl.sources.loading import load_project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.run_schema import batches
from searchcrawl.store.schema import documents
from searchcrawl.store.states import BatchState
from tests.site.toml_text import to_toml
from tests.tampering import tamper

#: Documents that are removed, altered (half of them in their version, half in their checksum), and added.
SPOILT: Final = 1000
_PART: Final = 20_000
_SEGMENT: Final = 1_000_000
_SOURCE: Final = (
    'type = "web"\n\n[start]\nurls = ["http://www0.site.example/"]\n\n[scope]\ninclude_hosts = ["site.example"]\n'
)
INDEX_FILE: Final = "index.json"
EXPECTED_FILE: Final = "expected.json"
_PRIMES: Final = (7, 11, 101, 1009, 5003, 10_007, 50_021, 100_003)
_COLUMNS: Final = (documents.c.url_id, documents.c.indexed_version, documents.c.fields_digest)


@dataclass(frozen=True, slots=True)
class Material:
    """A project in ``folder``, all of whose rows are documents in its index."""

    folder: Path
    database_url: str
    size: int

    def fill(self) -> None:
        """Makes store and index, which agree, and a cache with the records of what will be spoilt."""
        self._write_project()
        with closing(Database(self.database_url, self.folder)) as database:
            fill(database, self.size, documents_alone=True)
            with database.write_once() as transaction:
                version = transaction.execute(select(documents.c.indexed_version).limit(1)).scalar_one()
                sent = {"source_id": SOURCE_ID, "run_id": 1, "created_ms": 0, "state": int(BatchState.COMMITTED)}
                transaction.execute(insert(batches).values(crawl_version=version, **sent))
            project = load_project(self.folder)
            for rows in in_groups(self._read_documents(database), _PART):
                tamper(project, put=dict(rows), is_new=True)
            self._write_records(database)

    def spoil(self) -> dict[str, list[str]]:
        """Removes, alters and adds documents behind the crawler's back; the ids that ``verify`` has to name, by list."""
        removed, older, changed = self._choose()
        with closing(Database(self.database_url, self.folder)) as database, database.read_once() as transaction:
            rows = [
                row
                for part in in_groups([*older, *changed], 500)
                for row in transaction.execute(select(*_COLUMNS).where(documents.c.url_id.in_(part)))
            ]
        aside, version = {*older}, rows[0].indexed_version
        stale = dict(
            self._describe(row.url_id, version - 1, row.fields_digest.hex())
            if row.url_id in aside
            else self._describe(row.url_id, version, "00")
            for row in rows
        )
        extra = dict(self._describe(number, version, "00", added="?added") for number in range(SPOILT))
        missing = [urls.document_id(SOURCE, self._url_of(number)) for number in removed]
        tamper(load_project(self.folder), removed=missing, put={**stale, **extra})
        return {"missing": sorted(missing), "extra": sorted(extra), "stale": sorted(stale), "foreign": []}

    def _write_project(self) -> None:
        index = json.loads((self.folder / INDEX_FILE).read_text("utf-8"))
        project = {"contact": "bench@example.org", "store": {"url": self.database_url}, "index": index}
        (self.folder / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n", "utf-8")
        (self.folder / "sources").mkdir()
        (self.folder / "searchcrawl.toml").write_text(to_toml(project), "utf-8")
        (self.folder / "sources" / f"{SOURCE}.toml").write_text(_SOURCE, "utf-8")

    def _read_documents(self, database: Database) -> Iterator[tuple[str, dict[str, Any]]]:
        after = 0
        while True:
            with database.read_once() as transaction:
                query = select(*_COLUMNS).where(documents.c.url_id > after).order_by(documents.c.url_id).limit(_PART)
                rows = transaction.execute(query).all()
            if not rows:
                return
            after = rows[-1].url_id
            for row in rows:
                yield self._describe(row.url_id, row.indexed_version, row.fields_digest.hex())

    def _describe(self, number: int, version: int, checksum: str, *, added: str = "") -> tuple[str, dict[str, Any]]:
        """Id and fields of a document."""
        url = self._url_of(number) + added
        text = f"The text of page {number}: " + " ".join(f"word{number % prime}" for prime in _PRIMES)
        fields = {"url": url, "access_url": url, "title": f"Page {number}", "content": text, "checksum": checksum}
        return urls.document_id(SOURCE, url), {**fields, "source": SOURCE, "crawl_version": version}

    def _url_of(self, number: int) -> str:
        return url_of(number, host_count(self.size))

    def _choose(self) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """Rows whose documents are removed, those that get another version, and those that get another checksum."""
        chosen = random.Random(self.size).sample(range(1, self.size + 1), 2 * SPOILT)
        return chosen[:SPOILT], chosen[SPOILT : SPOILT * 3 // 2], chosen[SPOILT * 3 // 2 :]

    def _write_records(self, database: Database) -> None:
        """Writes real records of what will have to be sent again."""
        places = []
        with closing(DocumentCache(SegmentFolder(load_project(self.folder).cache_dir / SOURCE), self.folder)) as cache:
            writer = cache.open_writer(_SEGMENT, 0)
            for number in (number for part in self._choose() for number in part):
                fields = {"title": f"Page {number}", "content": f"The text of page {number}"}
                url = self._url_of(number)
                place = writer.append(
                    StoredPage(url=url, status=200, headers=(), body=b"x", fetched_at=clock.now(), fields=fields)
                )
                record = {"record_offset": place.offset, "response_bytes": place.response_bytes}
                places.append(
                    {"row_id": number, "segment": place.segment, "fields_bytes": place.fields_bytes, **record}
                )
            writer.sync()
            writer.close()
        with database.write_once() as transaction:
            transaction.execute(update(documents).where(documents.c.url_id == bindparam("row_id")), places)


def command(folder: Path, *words: str) -> tuple[Cost, dict[str, Any]]:
    """Runs ``verify``; what it cost, and its answer."""
    output = folder / "answer.json"
    cost = run_measured([PYTHON, "-m", "searchcrawl", "verify", SOURCE, "--json", *words], cwd=folder, output=output)
    if cost.exit_code not in {0, 1}:
        raise SystemExit(output.with_suffix(".err").read_text("utf-8")[-3000:])
    return cost, json.loads(output.read_text("utf-8"))


def measure(folder: Path, expected: dict[str, list[str]]) -> dict[str, Any]:
    """Compares, mends and compares once more; raises SystemExit where not exactly ``expected`` is named and mended."""
    figures: dict[str, Any] = {}
    for name, words, repaired, ok in (
        ("verify", (), 0, False),
        ("repair", ("--repair",), 3 * SPOILT, True),
        ("again", (), 0, True),
    ):
        cost, found = command(folder, *words)
        named = {kind: sorted(each["id"] for each in found[kind]) for kind in expected}
        wanted = {kind: [] for kind in expected} if name == "again" else expected
        if (named, found["repaired"], found["ok"]) != (wanted, repaired, ok):
            raise SystemExit(
                f"verify: {name}: {[(kind, len(ids)) for kind, ids in named.items()]}, {found['repaired']}"
            )
        figures |= {f"{name}_seconds": cost.wall_seconds, f"{name}_cpu_seconds": cost.cpu_seconds}
        figures |= {f"{name}_peak_rss_bytes": cost.peak_rss_bytes, f"{name}_peak_own_bytes": cost.peak_own_bytes}
    return figures


def main(what: str, database_url: str, size: str, folder: str) -> None:
    """Fills or spoils; prints an empty object."""
    material = Material(Path(folder), database_url, int(size))
    if what == "fill":
        material.fill()
    else:
        (material.folder / EXPECTED_FILE).write_text(json.dumps(material.spoil()), "utf-8")
    print("{}")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What repeats on most pages of a host, frozen at the end of each completed run; documents go out without it (C8).

So what of a page is indexed never depends on the order of the visits. Change detection knows nothing of it: records and
digests have the page as it is, and a document gets its text without these blocks when it is sent. Those that went out with
other blocks are sent again, once, with the last batch of the run.

Each step may be the last one of a process. Until all documents that differ are to be sent again, the row of a host has the
blocks before as well, and the next completed run begins with them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from searchcrawl import urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import Place
from searchcrawl.commit.near_copies import forget_signatures
from searchcrawl.duplicates.resolution import rank
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.failpoints import reach
from searchcrawl.rules.site_blocks import (
    FEWEST_PAGES,
    count_blocks,
    cut_blocks,
    pack_blocks,
    select_blocks,
    unpack_blocks,
)
from searchcrawl.run import Run
from searchcrawl.store.batches import batch_table
from searchcrawl.store.documents import block_table, document_table
from searchcrawl.store.documents.block_table import HostBlocks, SampledDocument
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import url_table

logger = logging.getLogger(__name__)

#: So many pages of a host tell what is on most of them.
_PAGES_OF_HOST: Final = 200

#: The blocks of each host that are no content.
SiteBlocks = Mapping[str, frozenset[int]]


def load_blocks(run: Run) -> SiteBlocks:
    """What is left out of the documents of a source; nothing where it wants all text, or says itself what the content is."""
    if not _applies(run):
        return {}
    frozen = run.read(partial(block_table.load, source_id=run.source_id))
    return {host: unpack_blocks(row.blocks) for host, row in frozen.items() if row.blocks}


def cut_content(content: object, url: str, mimetype: str, blocks: SiteBlocks) -> object:
    """The text of a document without what is on most pages of its host."""
    if not blocks or not isinstance(content, str) or mimetype not in block_table.HTML:
        return content
    return cut_blocks(content, blocks.get(urls.host_and_port(url), frozenset()))


def freeze_blocks(run: Run, cache: DocumentCache) -> None:
    """Looks at the pages of each host anew, and has the documents sent again that differ; raises StoreError, CacheError."""
    _send_differing(run, cache)
    frozen = run.read(partial(block_table.load, source_id=run.source_id))
    sampled = _sample(run) if _applies(run) else {}
    for host, pages in sampled.items():
        digest = _digest(pages)
        if host in frozen and frozen[host].sample == digest:
            continue
        _freeze_host(run, cache, host, pages, digest, frozen.get(host))
    for host in frozen.keys() - sampled.keys():
        if frozen[host].blocks:
            _write(run, HostBlocks(host, frozen[host].version + 1, b"", b"", frozen[host].blocks))
        else:
            run.write(partial(block_table.forget, source_id=run.source_id, host=host))
    _send_differing(run, cache)


def _applies(run: Run) -> bool:
    content = run.source.content
    return content.mode == "main" and not content.keep


def _sample(run: Run) -> dict[str, list[SampledDocument]]:
    """The documents that are looked at, by host; of a host with few pages nothing can be said."""
    found: dict[str, list[SampledDocument]] = {}
    for document in _leave_copies_out(run.read(partial(block_table.find_sample, source_id=run.source_id))):
        found.setdefault(urls.host_and_port(document.url), []).append(document)
    return {host: pages[:_PAGES_OF_HOST] for host, pages in found.items() if len(pages) >= FEWEST_PAGES}


def _leave_copies_out(sampled: Sequence[SampledDocument]) -> list[SampledDocument]:
    """One document of each content, in the order in which they came: near copies may be exact copies of each other, too."""
    best: dict[bytes, SampledDocument] = {}
    for document in sampled:
        if document.copy_digest is not None:
            known = best.get(document.copy_digest)
            if known is None or rank(document.url) < rank(known.url):
                best[document.copy_digest] = document
    return [one for one in sampled if one.copy_digest is None or best[one.copy_digest] is one]


def _digest(pages: Sequence[SampledDocument]) -> bytes:
    digest = hashlib.sha256()
    for page in pages:
        digest.update(page.url.encode() + b"\n" + page.fields_digest)
    return digest.digest()


def _freeze_host(
    run: Run,
    cache: DocumentCache,
    host: str,
    pages: Sequence[SampledDocument],
    digest: bytes,
    frozen: HostBlocks | None,
) -> None:
    before = b"" if frozen is None else frozen.blocks
    counts, number = count_blocks(_read_texts(cache, pages))
    blocks = before
    # Where the cache gave most of its records up, what is known stays.
    if number * 2 >= len(pages):
        blocks = pack_blocks(select_blocks(counts, number, before=unpack_blocks(before)))
    version = 0 if frozen is None else frozen.version
    if blocks == before:
        _write(run, HostBlocks(host, version, digest, blocks, None))
    else:
        logger.info("%s: %d blocks stand on most of its pages, and are not indexed", host, len(unpack_blocks(blocks)))
        _write(run, HostBlocks(host, version + 1, digest, blocks, before))


def _write(run: Run, frozen: HostBlocks) -> None:
    run.write(partial(block_table.freeze, source_id=run.source_id, frozen=frozen))
    reach("blocks.frozen")


def _read_texts(cache: DocumentCache, pages: Sequence[SampledDocument]) -> Iterator[str]:
    for page in pages:
        text = _read_text(cache, page)
        if text is not None:
            yield text


def _read_text(cache: DocumentCache, page: SampledDocument) -> str | None:
    """The text in the record of a page; None where it cannot be read: what sends the document says so."""
    if page.segment is None or page.record_offset is None or page.response_bytes is None or page.fields_bytes is None:
        return None
    place = Place(
        segment=page.segment,
        offset=page.record_offset,
        response_bytes=page.response_bytes,
        fields_bytes=page.fields_bytes,
    )
    try:
        text = cache.read_fields(place, url=page.url).get("content")
    except DamagedRecord:
        return None
    return text if isinstance(text, str) else None


def _send_differing(run: Run, cache: DocumentCache) -> None:
    """Has the documents sent again that were, or may have been, sent with other blocks than are frozen."""
    frozen = run.read(partial(block_table.load, source_id=run.source_id))
    changed = {
        host: (unpack_blocks(row.previous), unpack_blocks(row.blocks))
        for host, row in frozen.items()
        if row.previous is not None
    }
    if not changed:
        return
    after = 0
    while rows := run.read(partial(block_table.find_sent, source_id=run.source_id, after=after)):
        after = rows[-1].url_id
        differing = [row.url_id for row in rows if _differs(cache, row, changed)]
        if differing:
            run.write(partial(_send_again, url_ids=differing))
            reach("blocks.marked")
    # What tells near copies is made of the text that is indexed.
    forget_signatures(run, lambda url: urls.host_and_port(url) in changed)
    run.write(partial(block_table.settle, source_id=run.source_id))


def _differs(
    cache: DocumentCache, row: SampledDocument, changed: Mapping[str, tuple[frozenset[int], frozenset[int]]]
) -> bool:
    versions = changed.get(urls.host_and_port(row.url))
    text = None if versions is None else _read_text(cache, row)
    return versions is not None and text is not None and cut_blocks(text, versions[0]) != cut_blocks(text, versions[1])


def _send_again(transaction: Transaction, url_ids: Sequence[int]) -> None:
    lost = document_table.send_again(transaction, url_ids)
    if lost:
        batch_table.mark_records_lost(transaction, lost)
        url_table.reopen(transaction, lost)

"""What repeats on most pages of a host, frozen at the end of each completed run; documents go out without it (C8)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from searchcrawl import urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.commit.near_copies import forget_signatures
from searchcrawl.delivery.freezing import Common, Record, freeze, load
from searchcrawl.rules.host_texts import count_blocks, cut_blocks, pack_keys, select_blocks, unpack_keys
from searchcrawl.run import Run
from searchcrawl.store.documents.frozen_table import BLOCKS
from searchcrawl.store.documents.sample_table import HTML

logger = logging.getLogger(__name__)

#: The blocks of each host that are no content.
SiteBlocks = Mapping[str, frozenset[int]]


def load_blocks(run: Run) -> SiteBlocks:
    """What is left out of the documents of a source; nothing where it wants all text, or says itself what the content is."""
    return {host: unpack_keys(packed) for host, packed in load(run, _COMMON).items()} if _applies(run) else {}


def cut_content(content: object, url: str, mimetype: str, blocks: SiteBlocks) -> object:
    """The text of a document without what is on most pages of its host."""
    if not blocks or not isinstance(content, str) or mimetype not in HTML:
        return content
    return cut_blocks(content, blocks.get(urls.host_and_port(url), frozenset()))


def freeze_blocks(run: Run, cache: DocumentCache) -> None:
    """Looks at the pages of each host anew, and has the documents sent again that differ; raises StoreError, CacheError."""
    freeze(run, cache, _COMMON, wanted=_applies(run))


def _applies(run: Run) -> bool:
    content = run.source.content
    return content.mode == "main" and not content.keep


def _find(records: Iterator[Record], before: bytes) -> bytes:
    counts, number = count_blocks(map(_read_text, records))
    return pack_keys(select_blocks(counts, number, before=unpack_keys(before)))


def _read_text(record: Record) -> str:
    text = record.get("content")
    return text if isinstance(text, str) else ""


def _cut(record: Record, packed: bytes) -> str:
    return cut_blocks(_read_text(record), unpack_keys(packed))


def _report(host: str, packed: bytes) -> None:
    logger.info("%s: blocks on most of its pages that are not indexed: %d", host, len(unpack_keys(packed)))


def _forget_signatures(run: Run, hosts: Collection[str]) -> None:
    # What tells near copies is made of the text that is indexed.
    forget_signatures(run, lambda url: urls.host_and_port(url) in hosts)


_COMMON: Final[Common[bytes]] = Common(
    name="blocks",
    table=BLOCKS,
    types=HTML,
    nothing=b"",
    find=_find,
    apply=_cut,
    report=_report,
    on_marked=_forget_signatures,
)

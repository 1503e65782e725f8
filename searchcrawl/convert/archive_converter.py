"""Archives: each file in one is a document of its own, to which the archive links (C8)."""

from __future__ import annotations

from typing import Final

from searchcrawl.codes import Code
from searchcrawl.convert.archive_reader import list_members
from searchcrawl.convert.build_page import build_page
from searchcrawl.convert.converter import MAX_FILE_MEMORY_BYTES, ConversionContext, Converter, run_in_process
from searchcrawl.exceptions import ConversionFailed, InvalidUrl
from searchcrawl.html.file_name import find_file_name
from searchcrawl.html.links import MAX_MALFORMED, MAX_SHOWN
from searchcrawl.items import Link, Page
from searchcrawl.rules.archives import MARK, MAX_DEPTH
from searchcrawl.urls import resolve


def convert_archive(body: bytes, context: ConversionContext) -> Page:
    """A page without text, whose links are the files in the archive; what leads out of it counts as malformed.

    Raises ConversionFailed: 903 for a broken archive, 904 beyond a limit.
    """
    # Redirects may lead elsewhere, to a host that no rule includes, and to another one the next time.
    own_url = context.row_url or context.url
    if own_url.count(MARK) >= MAX_DEPTH:
        raise ConversionFailed(f"more than {MAX_DEPTH} archives in each other", code=Code.CONVERSION_LIMIT)
    found: dict[str, None] = {}
    malformed = []
    for member in list_members(body, find_file_name(context.headers, own_url)):
        try:
            if member.leads_out:
                raise InvalidUrl(member.path)
            found[resolve(f"{own_url}{MARK}{member.path}")] = None
        except InvalidUrl:
            malformed.append(f"{MARK}{member.path}"[:MAX_SHOWN])
    return build_page(context, text="", links=[Link(url) for url in found], malformed=malformed[:MAX_MALFORMED])


ARCHIVE: Final = Converter(
    name="archive",
    mime_types=(
        *("application/zip", "application/x-zip-compressed", "application/x-zip", "application/x-tar"),
        *("application/gzip", "application/x-gzip", "application/x-gtar", "application/x-compressed-tar"),
        *("application/x-bzip2", "application/x-xz", "application/x-tgz", "application/x-gtar-compressed"),
        *("application/x-compressed", "application/x-gzip-compressed", "application/x-bzip"),
    ),
    convert=convert_archive,
    choose_place=run_in_process,
    has_links=True,
    max_memory_bytes=MAX_FILE_MEMORY_BYTES,
)

"""What a converter is: a function that makes a page of a body, with its types and the place where it runs (A5, C8).

``build_page`` makes the page of a file: what all formats but HTML have in common.

A new format is a module with a ``Converter`` (``pdf_converter.py`` is an example) and its entry in ``registry.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from searchcrawl import clock
from searchcrawl.bodies import Body, LargeBody
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.file_name import build_title
from searchcrawl.html.metas import read_robots_directives
from searchcrawl.html.page_text import MAX_CHARACTERS, collapse_lines, collapse_value
from searchcrawl.items import Link, Page
from searchcrawl.rules.attribute_values import convert_value
from searchcrawl.worker_pool import MAX_MEMORY_BYTES

#: The memory of a worker process that reads files other than HTML; with the code of its libraries it is under 512 MB.
MAX_FILE_MEMORY_BYTES: Final = 416 << 20
#: Text that takes seconds to split and join would also stop the reactor from a thread, because only one thread runs at
#: a time.
MAX_THREAD_BYTES: Final = 1_000_000
_MAX_REACTOR_BYTES: Final = 16_384


class RunsIn(Enum):
    """Where a body is converted."""

    #: in the reactor, at once: for what takes a few milliseconds
    REACTOR = "reactor"
    #: in a thread: for what takes longer, and always comes to an end
    THREAD = "thread"
    #: in a worker process, with a limit of time and of memory: for native libraries, and for what can take seconds
    PROCESS = "process"


@dataclass(frozen=True, slots=True, kw_only=True)
class Converter:
    """How one format is read.

    ``convert`` is a function of a module: it may run in a worker process, so it is pickled by its name. It raises
    ConversionFailed with 903 for a broken body, and 904 if a limit is exceeded. It imports a native library itself.
    ``recognise`` tells by the bytes whether a body without a type in its header has this format; its type is then the
    first of the ``mime_types``. ``is_text``: a body that is binary data is refused (1009). ``has_links``: the links of
    the page are followed; without links a document that the index filter refuses is not converted. ``convert_again``
    makes the page, without its links, of a body of which the text is known; None where it has to be converted.
    ``is_kept``: all that its pages have, but for links, is in their records (``documents.known_texts``).
    ``convert_large`` reads a body that is a file, in less memory than it has bytes; without it such a body is read whole.
    ``max_memory_bytes`` is what its worker process may take.
    """

    name: str
    mime_types: tuple[str, ...]
    convert: Callable[[bytes, ConversionContext], Page]
    choose_place: Callable[[Body], RunsIn]
    recognise: Callable[[Body], bool] | None = None
    is_text: bool = False
    has_links: bool = False
    convert_again: Callable[[bytes, ConversionContext, str], Page | None] | None = None
    is_kept: bool = False
    convert_large: Callable[[LargeBody, ConversionContext], Page] | None = None
    max_memory_bytes: int = MAX_MEMORY_BYTES


def run_in_process(body: Body) -> RunsIn:
    """The place for what a library reads that is not to be trusted with the memory of the crawl."""
    return RunsIn.PROCESS


def run_in_thread(body: Body) -> RunsIn:
    """The place for what is read in linear time: a thread, and a worker process for a large body.

    A thread takes longer to be told of a small one than that takes to be read.
    """
    if len(body) <= _MAX_REACTOR_BYTES:
        return RunsIn.REACTOR
    return RunsIn.THREAD if len(body) <= MAX_THREAD_BYTES else RunsIn.PROCESS


_LANGUAGE_TAG: Final = re.compile(r"[a-z]{2,3}(?:-[a-z0-9]{2,8}){0,3}")


def build_page(
    context: ConversionContext,
    *,
    text: str,
    title: str = "",
    author: str = "",
    subject: str = "",
    description: str = "",
    language: str = "",
    charset: str = "",
    links: Sequence[Link] = (),
    malformed: Sequence[str] = (),
    values: Mapping[str, str] | None = None,
) -> Page:
    """The page of a file with this text, and the values that it has of itself.

    Without a title, the name of the file is the title; an empty file has none. ``values`` are further ones by name,
    which a source may map to attributes as those of meta elements (``meta:created``); ``modified`` is the last change
    where the server names none. Raises ConversionFailed (904) beyond MAX_CHARACTERS.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConversionFailed(f"a text of over {MAX_CHARACTERS} characters", code=Code.CONVERSION_LIMIT)
    text, tag = collapse_lines(text), language.replace("_", "-").lower()
    title, author, subject = collapse_value(title), collapse_value(author), collapse_value(subject)
    named = {**(values or {}), "title": title, "author": author, "subject": subject}
    name_title = build_title(context.headers, context.url) if text and not title else ""
    robots = read_robots_directives(
        metas=(), headers=context.robots_tags, user_agent=context.user_agent, now=clock.now()
    )
    return Page(
        title=title or name_title,
        name_title=name_title,
        text=text,
        author=author,
        subject=subject,
        description=collapse_value(description),
        language=tag if _LANGUAGE_TAG.fullmatch(tag) else "",
        charset=charset,
        modified=str(convert_value(collapse_value(named.get("modified", "")), "date") or ""),
        links=tuple(links),
        malformed=tuple(malformed),
        found=tuple(
            (origin, (value,))
            for name, written in named.items()
            if (origin := f"meta:{name}") in context.attribute_origins and (value := collapse_value(written))
        ),
        **robots._asdict(),
    )

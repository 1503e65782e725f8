"""What is known of a body besides its bytes, and what of its text is indexed, as its source says."""

from __future__ import annotations

from dataclasses import dataclass
from io import TextIOWrapper
from typing import Final, NamedTuple

from searchcrawl.bodies import LargeBody
from searchcrawl.html.content_type import join_content_type
from searchcrawl.html.encoding import decode, open_text
from searchcrawl.html.metas import list_robots_tags
from searchcrawl.items import Headers


class TextRules(NamedTuple):
    """What of a page's text is indexed: ``main`` its main content alone.

    ``keep`` and ``drop`` are CSS selectors: where ``keep`` finds something, that is the content; what ``drop`` finds is none.
    """

    main: bool = False
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


ALL_TEXT: Final = TextRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionContext:
    """What a converter knows of a body besides its bytes; it is pickled for a worker process.

    ``url`` is the identity that gave the body, ``row_url`` that of the row (empty: the same one), ``headers`` are those of the answer, ``mimetype`` is the type that was
    found. ``default_charset`` is for texts
    that do not name theirs, ``user_agent`` is the name that robots directives may address. ``attribute_origins`` are
    the places in the page whose values become attributes (``html.fields``). ``text_rules`` say what of its text is indexed.
    With ``routes`` links keep a fragment that is a route.
    """

    url: str = ""
    row_url: str = ""
    headers: Headers = ()
    mimetype: str = ""
    default_charset: str = "windows-1252"
    user_agent: str = ""
    attribute_origins: frozenset[str] = frozenset()
    text_rules: TextRules = ALL_TEXT
    routes: bool = False

    @property
    def content_type(self) -> str:
        """The value of the Content-Type header."""
        return join_content_type(self.headers)

    def decode(self, body: bytes, *, markup: bool = True) -> tuple[str, str]:
        """The text of a body and the name of its encoding, as ``encoding.decode`` finds them."""
        return decode(body, content_type=self.content_type, default_charset=self.default_charset, markup=markup)

    def open_text(self, body: LargeBody, *, markup: bool = True) -> tuple[TextIOWrapper, str] | None:
        """The same of a large body, its text as a file; None where all of it has to be seen (``encoding.open_text``)."""
        return open_text(body, content_type=self.content_type, default_charset=self.default_charset, markup=markup)

    @property
    def robots_tags(self) -> list[str]:
        """The values of all X-Robots-Tag headers."""
        return list_robots_tags(self.headers)

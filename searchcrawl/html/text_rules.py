"""What of a page's text is indexed, as its source says."""

from __future__ import annotations

from typing import Final, NamedTuple


class TextRules(NamedTuple):
    """What of a page's text is indexed: ``main`` its main content alone.

    ``keep`` and ``drop`` are CSS selectors: where ``keep`` finds something, that is the content; what ``drop`` finds is none.
    """

    main: bool = False
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


ALL_TEXT: Final = TextRules()

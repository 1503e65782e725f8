"""What of a page's text is that of links: how much of it, and what is no text (C8).

Links have marks around them (``regions``): those to other pages, and those to a place of the page itself.
"""

from __future__ import annotations

import re
from typing import Final

from searchcrawl.html.regions import LINK_BEGIN, LINK_END, LOCAL, MARK

_LINK: Final = re.compile(f"{LINK_BEGIN}[^{LINK_END}]*")
#: A link to the heading that it stands in has no more characters, and no letter, or one of these texts.
_LONGEST_SIGN: Final = 8
_SIGNS: Final = frozenset({"[link]", "link"})


def count_linked(segment: str) -> int:
    """How many characters of a segment are in links; with one for each, for what separates it from the next one."""
    return len(" ".join("".join(_LINK.findall(segment)).split())) if LINK_BEGIN in segment else 0


def unite_links(marked: str) -> tuple[str, str]:
    """The text of a page with the same marks around all links, and with those around links to other pages alone.

    Both are without the text of links such as "¶", which lead to the heading in which they stand.
    """
    parts = marked.split(LOCAL)
    for number in range(1, len(parts) - 1, 2):
        text = parts[number]
        if len(text) <= _LONGEST_SIGN and MARK not in text and _is_sign(text):
            parts[number] = ""
    ends = [LINK_BEGIN, LINK_END] * (len(parts) // 2)
    united = "".join([piece for pair in zip(parts, [*ends, ""], strict=False) for piece in pair])
    return united, "".join(parts)


def _is_sign(text: str) -> bool:
    return text in _SIGNS or not any(map(str.isalnum, text))

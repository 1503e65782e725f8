"""What of a page's text is that of links: how much of it, and what is no text (C8).

Links have marks around them (``regions``): those to other pages, and those to a place of the page itself.
"""

from __future__ import annotations

import re
from typing import Final

from searchcrawl.html.regions import LINK_BEGIN, LINK_END, LOCAL

_LINK: Final = re.compile(f"{LINK_BEGIN}[^{LINK_END}]*")
#: What a link to the heading in which it stands consists of; other signs may be what a page is about, such as operators.
_SIGNS: Final = frozenset({"", *"¶§#◆∞⚓☍🔗", "🔗\ufe0e", "🔗\ufe0f", "[link]", "[#]"})
_LONGEST_SIGN: Final = 8


def count_linked(segment: str) -> int:
    """How many characters of a segment are in links; with one for each, for what separates it from the next one."""
    return len(" ".join("".join(_LINK.findall(segment)).split())) if LINK_BEGIN in segment else 0


def unite_links(marked: str) -> tuple[str, str]:
    """The text of a page with the same marks around all links, and with those around links to other pages alone.

    Both are without the text of links such as "¶", which lead to the heading in which they stand.
    """
    parts = marked.split(LOCAL)
    most = _LONGEST_SIGN + len(LINK_BEGIN + LINK_END)
    links = ["" if len(link) <= most and link[1:-1].strip() in _SIGNS else link for link in parts[1::2]]
    parts[1::2] = links
    united = "".join(parts)
    parts[1::2] = [link[1:-1] for link in links]
    return united, "".join(parts)

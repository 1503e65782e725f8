"""The regions of a page by its elements, roles and names: what is certainly, or probably, no content, and what is.

A region gets marks around it while the tree is walked; they come out in the text, in document order, so that what is in
which region is decided over the text, once (``main_text``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from selectolax.lexbor import LexborCSSSelector, LexborHTMLParser, LexborNode

from searchcrawl.html.context import TextRules
from searchcrawl.html.page_text import BLOCK_MARK


class Marks(NamedTuple):
    """What stands before and after a region in the text."""

    before: str
    after: str


def _marks(kinds: str) -> Marks:
    return Marks(MARK + kinds[0], MARK + kinds[1])


#: Begins each mark. XML does not allow it, so it cannot be part of the text.
MARK: Final = "\x02"
#: Before and after each link (``link_texts``); no mark has one behind its beginning.
LINK_BEGIN: Final = "\x03"
LINK_END: Final = "\x04"
#: What those around a link to a place of the page itself have besides.
LOCAL: Final = "\x1f"
LOCAL_BEGIN: Final = LOCAL + LINK_BEGIN
LOCAL_END: Final = LINK_END + LOCAL
#: Before the main headings of a page, and before those below them.
HEADING: Final = MARK + "\r"
SUBHEADING: Final = MARK + "!"
#: Navigation, by element or role.
CUT: Final = _marks("\x1d\x1e")
#: The same, by the names that its author gave it.
NAMED_CUT: Final = _marks("\x05\x06")
#: What its names call navigation, and nothing else.
NAMED_NAV: Final = _marks("$%")
#: What its names call a menu: navigation, or what a chapter has.
MENU: Final = _marks('"#')
#: What ``main`` and its role say.
MAIN: Final = _marks("\x07\x08")
#: What the names say.
NAMED_MAIN: Final = _marks("\x0e\x0f")
#: Not to be indexed, as the page itself or the source file says.
DROPPED: Final = _marks("\x10\x11")
#: The content, as the source file says.
KEPT: Final = _marks("\x12\x13")
#: An article, whose own header and footer are content.
ARTICLE: Final = _marks("\x14\x15")
#: A header or an aside: no content, unless it is in an article.
ASIDE: Final = _marks("\x16\x17")
#: A footer, which is the same, but may have paragraphs at the end of a page.
FOOTER: Final = _marks("\x0b\x0c")
#: What its names call a footer, in an article, too.
NAMED_FOOTER: Final = _marks("\t\n")
#: Not shown, as the page itself says; a script may show it later.
HIDDEN: Final = _marks("\x1b\x1c")
#: Where a page switches its indexing off and on, across its elements.
OFF, ON = _marks("\x18\x19")

#: Before the kind of a heading, in the line of its text (``headings``). It is plain ASCII, because other texts take longer to
#: encode, and one that no page writes.
HEADING_SIGN: Final = "\x7f"
#: Of one with a name, behind the kind: the number of the name.
NAME_END: Final = ";"
HEADING_MARK: Final = re.compile(f"{HEADING_SIGN}(?:[123]|[456][0-9]{{1,9}}{NAME_END})")
KIND_OF_HEADING: Final[Mapping[str, str]] = {"h1": "1", "h2": "1", "h3": "2", "h4": "2", "dt": "3"}
KIND_OF_NAMED: Final[Mapping[str, str]] = {"1": "4", "2": "5", "3": "6"}
#: Where a piece of a page begins or ends (``pieces``): what is around it is marked in the next piece once more.
SEAM: Final = MARK + "\x1a"
#: What tells marks apart that is a character of texts, too.
PRINTABLE_KINDS: Final = frozenset((SUBHEADING[1], *"".join((*NAMED_NAV, *MENU)).replace(MARK, "")))
#: All that marks may be.
ANY: Final = re.compile(f"{MARK}[\x05-\x1e!-%]|{HEADING_MARK.pattern}|{BLOCK_MARK}")

#: What some generators write in the place of a heading (Doxygen): ``<div class="title">``.
TITLED: Final = Marks(HEADING_SIGN, "")

ALL: Final = (
    CUT,
    NAMED_CUT,
    NAMED_NAV,
    MENU,
    MAIN,
    NAMED_MAIN,
    DROPPED,
    KEPT,
    ARTICLE,
    ASIDE,
    FOOTER,
    NAMED_FOOTER,
    HIDDEN,
)
_RAW: Final = {marks: (marks.before.encode(), marks.after.encode()) for marks in ALL}
#: The elements whose attributes are looked at.
ELEMENTS: Final = "article aside button div dl footer form header main nav ol section select table td ul"

OF_ELEMENT: Final[Mapping[str, Marks]] = {
    **dict.fromkeys(("button", "nav", "select"), CUT),
    **dict.fromkeys(("aside", "header"), ASIDE),
    "footer": FOOTER,
    "main": MAIN,
    "article": ARTICLE,
}
_OF_ROLE: Final[Mapping[str, Marks]] = {
    "main": MAIN,
    "article": ARTICLE,
    "contentinfo": NAMED_FOOTER,
    **dict.fromkeys(("banner", "complementary", "menu", "menubar", "navigation", "search", "toolbar"), CUT),
}
_WORDS_OF_NAV: Final = (
    r"[a-z]*nav|nav(?:igation|bar|header|links|menu|path|panel|row)[a-z]*|[a-z]*breadcrumbs?|crumbs?|pag(?:er|ination)|"
    r"skip(?:-?(?:link|nav|to))?[a-z]*|(?:top|bottom)-?nav"
)
_WORDS_OF_CUT: Final = (
    rf"{_WORDS_OF_NAV}|navfooter[a-z]*|menu[a-z]*|[a-z]*side-?bar[a-z]*|footer[a-z]*|masthead|"
    r"top-?(?:bar|lang|links)|bottom-?lang|language-?(?:switch|bar|select)[a-z]*|share|sharing|social|"
    r"cookie[a-z]*|consent|advert[a-z]*|ads?|sponsor[a-z]*|promo|newsletter|popup|modal|tool-?bar"
)
#: In an article these may be words for its own parts.
_WORDS_OF_ASIDE: Final = "header|banner|related|search[a-z]*|copyright"
_WORDS_OF_MAIN: Final = (
    r"main(?:-?(?:content|body|text|column|page))?|content-?(?:main|body|text|area)?|contents|(?:page|body|article|doc|document|"
    r"post|entry)-?(?:content|body|text)|article|entry|post|mw-content-text"
)
_CUT: Final = re.compile(rf"(?:^|[\s_-])(?:{_WORDS_OF_CUT})(?=$|[\s_-])")
_FOOTER: Final = re.compile(r"(?:^|[\s_-])(?:nav)?footer[a-z]*(?=$|[\s_-])|(?:^|\s)copyright(?=$|[\s_-])")
_KINDS_OF_CUT: Final = (
    (NAMED_FOOTER, _FOOTER),
    (NAMED_NAV, re.compile(rf"(?:^|[\s_-])(?:{_WORDS_OF_NAV})(?=$|[\s_-])")),
    (MENU, re.compile(r"^\s*menu\s*$")),
)
#: What a post is about, or what is beside it, is no name of its own.
_WORDS_OF_OTHERS: Final = "(?:category|tag|product[_-](?:cat|tag)|no|has|with|without)"
_OF_OTHERS: Final = re.compile(rf"(?:^|(?<=\s)){_WORDS_OF_OTHERS}[_-]\S*")
_ASIDE: Final = re.compile(rf"(?:^|\s)(?:{_WORDS_OF_ASIDE})(?=$|[\s_-])")
_MAIN: Final = re.compile(rf"(?:^|[\s_])(?:{_WORDS_OF_MAIN})(?=$|[\s_])")
#: What any of them finds, this finds: most names are the ids of headings, and say nothing.
_SPEAKING: Final = re.compile(rf"(?:^|[\s_-])(?:{_WORDS_OF_CUT}|{_WORDS_OF_ASIDE}|{_WORDS_OF_MAIN})(?=$|[\s_-])")
#: The same as whole names: these are not cut for what other names say of their layout.
_WHOLLY_MAIN: Final = re.compile(rf"(?:^|\s)(?:{_WORDS_OF_MAIN})(?=$|\s)")
_NAMED: Final = frozenset({NAMED_CUT, NAMED_FOOTER, NAMED_NAV, MENU})
#: What names do not change.
_SURE: Final = frozenset({CUT, MAIN, ARTICLE, NAMED_FOOTER})
#: The ids of sections are often made from their headings.
_OF_SECTION: Final = re.compile(r"(?:^|\s)(?:section|(?:sect|level)\d)(?=$|\s)")
_SECTIONS: Final = frozenset({"section", "div"})
#: An attribute of sections that are opened again without their headings (``pieces``): these have the word for which they would be cut.
HEADED: Final = "data-searchcrawl-headed"
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_HEADINGS_OF_BUTTONS: Final = _HEADINGS | {"summary"}
#: So far a heading is looked for: over the elements around a button, and over the nodes in a section or a heading.
_MOST_AROUND: Final = 3
_MOST_INSIDE: Final = 12
_LOOKED_AT: Final = "[hidden], [style], [data-nosnippet], [lang]"
_HIDING: Final = re.compile(r"(?<![\w-])(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
#: No author writes longer names; what comes after them is not looked at.
MOST_OF_NAME: Final = 300
_SWITCH: Final = re.compile(r"\s*googleo(?:ff|n)\s*:\s*(?:all|index|snippet)\s*", re.IGNORECASE)

#: One for all pages: to make one takes as long as to use it. Only one thread runs in it at a time.
_SELECTOR: Final = LexborCSSSelector()  # type: ignore[no-untyped-call]
# The methods for bytes alone: choosing the method by the type of the argument takes as long as the work itself.
_insert_before: Final = LexborNode.insert_before[bytes]  # type: ignore[index]
_insert_after: Final = LexborNode.insert_after[bytes]  # type: ignore[index]


def find_region(element: str, node: LexborNode) -> Marks | None:
    """The marks of an element that is a region."""
    if element == "button" and _is_in_heading(node):
        return None
    attributes = node.attributes
    if not attributes:
        return OF_ELEMENT.get(element)
    get = attributes.get
    role, classes, name = get("role"), get("class"), get("id")
    # What is kept for the next pages is never long.
    if classes:
        classes = classes[:MOST_OF_NAME]
    if name:
        name = name[:MOST_OF_NAME]
    if role:
        role = role[:MOST_OF_NAME]
    found = _decide(element, role, classes, name)
    if found in _NAMED and name and (element == "section" or (classes and _OF_SECTION.search(classes))):
        without = _decide(element, role, classes, None)
        if without not in _NAMED and (HEADED in attributes or _is_of_heading(node, name)):
            return without
    return found


def is_headed(node: LexborNode) -> bool:
    """Whether an element is a section that has a name of navigation from its heading, which says what it is about."""
    element, attributes = node.tag or "", node.attributes
    if element not in _SECTIONS or not attributes.get("id"):
        return False
    return HEADED in attributes or (
        find_region(element, node) not in _NAMED
        and _decide(element, *[(attributes.get(name) or "")[:MOST_OF_NAME] for name in ("role", "class", "id")])
        in _NAMED
    )


# The pages of a site have the same names again and again.
@lru_cache(maxsize=4096)
def _decide(element: str, role: str | None, classes: str | None, name: str | None) -> Marks | None:
    found = _OF_ROLE.get(role.strip().lower()) if role else None
    if found is None:
        found = OF_ELEMENT.get(element)
    if found in _SURE:
        return found
    # In lower case, because patterns that ignore case take three times as long.
    names = f"{classes or ''} {name or ''}"[:MOST_OF_NAME].lower()
    if _SPEAKING.search(names) is None:
        return TITLED if found is None and element == "div" and classes and "title" in classes.split() else found
    if found is None and _WHOLLY_MAIN.search(names):
        return NAMED_MAIN
    own = _OF_OTHERS.sub("", names)
    if _CUT.search(own):
        return next((marks for marks, words in _KINDS_OF_CUT if words.search(own)), NAMED_CUT)
    if found is None:
        return (
            FOOTER
            if _FOOTER.search(own)
            else ASIDE
            if _ASIDE.search(names)
            else NAMED_MAIN
            if _MAIN.search(names)
            else None
        )
    return found


def _is_in_heading(node: LexborNode) -> bool:
    """Whether an element is, or is in, the text of a heading, as the buttons are that open the text below it."""
    return any(parent.tag in _HEADINGS_OF_BUTTONS for parent in islice(list_around(node), _MOST_AROUND))


def list_around(node: LexborNode) -> Iterator[LexborNode]:
    """The elements around a node, the nearest first."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _is_of_heading(node: LexborNode, name: str) -> bool:
    """Whether the heading of a section has the word for which its id would be cut."""
    found = _CUT.search(name.lower())
    inside = islice(node.traverse(), _MOST_INSIDE)
    heading = next((element for element in inside if element.tag in _HEADINGS), None)
    if found is None or heading is None:
        return False
    nodes = islice(heading.traverse(include_text=True), _MOST_INSIDE)
    text = " ".join([(part.text_content or "")[:MOST_OF_NAME] for part in nodes if part.is_text_node])
    return _leave_letters(found[0]) in _leave_letters(text)


def _leave_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def has_switches(text: str) -> bool:
    """Whether a page may switch its indexing off and on, for ``mark_chosen``."""
    return "googleoff" in text


class Chosen(NamedTuple):
    """Elements of a tree with the marks around them, and those that declare a language (``languages``)."""

    marked: list[tuple[list[LexborNode], Marks]]
    spoken: list[LexborNode]


def find_chosen(parser: LexborHTMLParser, rules: TextRules) -> Chosen:
    """What is not to be indexed, or is the content, whatever ``rules.main`` says, for ``mark_chosen``.

    To be called before anything is added to the tree, which would have to be looked at, too.
    """
    root = parser.root
    if root is None:
        return Chosen([], [])
    chosen: list[tuple[list[LexborNode], Marks]] = []
    if rules.drop:
        chosen.append((_SELECTOR.find(", ".join(rules.drop), root), DROPPED))
    if rules.keep:
        chosen.append((_SELECTOR.find(", ".join(rules.keep), root), KEPT))
    found = [(node, node.attributes) for node in _SELECTOR.find(_LOOKED_AT, root)]
    if found:
        chosen.append(([node for node, attributes in found if "data-nosnippet" in attributes], DROPPED))
        chosen.append(([node for node, attributes in found if _is_hidden(attributes)], HIDDEN))
    return Chosen(chosen, [node for node, attributes in found if "lang" in attributes])


def drops_any(chosen: Chosen) -> bool:
    """Whether any element is not to be indexed, as the page itself or the source file says."""
    return any(nodes for nodes, marks in chosen.marked if marks is DROPPED)


def mark_chosen(parser: LexborHTMLParser, chosen: Chosen, *, with_switches: bool) -> None:
    """Puts marks around what was chosen, and where the page switches its indexing off and on."""
    for nodes, marks in chosen.marked:
        # An element that several selectors find comes several times.
        for node in {node.mem_id: node for node in nodes if node.tag not in {"html", "body", "head"}}.values():
            surround(node, marks)
    if with_switches and parser.root is not None:
        _mark_switches(parser.root)


def surround(node: LexborNode, marks: Marks) -> None:
    """Puts the marks of a region around an element."""
    before, after = _RAW[marks]
    _insert_before(node, before)
    _insert_after(node, after)


def _is_hidden(attributes: Mapping[str, str | None]) -> bool:
    """Whether an element is not shown, and is not found by the search of a browser either."""
    if "hidden" in attributes and (attributes["hidden"] or "").strip().lower() != "until-found":
        return True
    style = attributes.get("style")
    return style is not None and _HIDING.search(style[:MOST_OF_NAME]) is not None


def _mark_switches(root: LexborNode) -> None:
    for node in [node for node in root.traverse(include_text=True) if node.is_comment_node]:
        content = node.comment_content or ""
        if _SWITCH.fullmatch(content):
            _insert_before(node, (OFF if "off" in content.lower() else ON).encode())

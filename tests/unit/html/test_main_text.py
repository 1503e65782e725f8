"""The main content of a page, and what a page or a source file leaves out of it (C8)."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any, Final

import pytest
from selectolax.lexbor import LexborHTMLParser

from searchcrawl.documents.digests import compute_fields_digest
from searchcrawl.html import regions
from searchcrawl.html.context import ConversionContext, TextRules
from searchcrawl.html.page import parse_page
from searchcrawl.html.regions import find_region
from searchcrawl.items import Fallback, FallbackReason, Page

MAIN: Final = TextRules(main=True)
STORY: Final = "The boiler in the cellar burns wood, and has to be cleaned twice a year by somebody with long arms."


OTHER: Final = "The stove in the kitchen is fed with coal, and nobody has ever seen it without a kettle on top of it."
LINKS: Final = "<a href=a>Boilers</a> <a href=b>Stoves</a> " * 150
BESIDE: Final = f"<p>{OTHER}<p>{OTHER}"


def page_of(body: str, rules: TextRules = MAIN, **arguments: Any) -> Page:
    return parse_page(
        f"<!doctype html><title>t</title><body>{body}",
        ConversionContext(url="http://example.com/a", user_agent="searchcrawl", text_rules=rules, **arguments),
    )


@pytest.mark.parametrize(
    "around",
    [
        "<nav>Home About</nav>",
        "<header><h1>Our site</h1></header>",
        "<footer>Imprint</footer>",
        "<aside>Latest news</aside>",
        "<div role=navigation>Home</div>",
        "<div role='Banner '>Home</div>",
        "<ul class='main-menu'><li>Home</ul>",
        "<div id=breadcrumbs>Home › Heating</div>",
        "<div class='l-col SideBar'>Home</div>",
        "<table class=navfooter><tr><td>Prev<td>Next</table>",
        "<div class=cookie-banner>We use cookies</div>",
        "<select><option>Choose</select><button>Send</button>",
        "<nav><div class=content>Home<nav>About</nav></div></nav>",
    ],
)
def test_c8_main_when_navigation_is_around_then_is_cut_before_and_after(around: str) -> None:
    page = page_of(f"{around}<div><h2>Boiler</h2><p>{STORY}</div>{around}")

    assert page.text == f"Boiler\n{STORY}"
    assert len(page.whole) > len(page.text)
    assert page.all_text == page.whole


@pytest.mark.parametrize(
    "content",
    [
        "<main>{}</main>",
        "<div role=main>{}</div>",
        "<div id=content>{}</div>",
        "<div class='post-body x'>{}</div>",
        "<div class=content><main>{}</main><p>Rate this page</p></div>",
        "<main><div class=page-has-sidebar>{}</div></main>",
    ],
)
def test_c8_main_when_the_content_is_named_then_nothing_else_is_in_it(content: str) -> None:
    page = page_of(f"<div>Call us</div>{content.format(f'<p>{STORY}</p>')}<div>All rights reserved</div>")

    assert page.text == STORY


@pytest.mark.parametrize(
    "content",
    [
        "<main><div class=header><h1>{}</h1></div><p>More of it.</main>",
        "<article><header><h1>{}</h1></header><p>More of it.<footer>By Ann</footer></article>",
        "<div class=has-sidebar-nav><nav>Home</nav><p>{}</div>",
        "<body class=no-nav><p>{}",
        "<div class=header><div class=menu>Home</div><div class=line><p>{}",
        "<article class='post hentry category-social-media'><p>{}</article>" + BESIDE,
        "<article class='tag-cookies sidebar'><p>{}</article>" + BESIDE,
        "<div class='line product_cat-newsletter no-sidebar'><p>{}</div>" + BESIDE,
        "<div class='content sidebar-right'><p>{}</div>" + BESIDE,
        "<div class=sidebar><p>{}</div><nav>"
        + "<a href=a>Boilers</a> " * 40
        + "</nav><p>By the engineers of the house, on a Monday",
    ],
)
def test_c8_main_when_parts_of_an_article_have_such_names_then_they_stay(content: str) -> None:
    assert STORY in page_of(f"<nav>Home</nav>{content.format(STORY)}").text


@pytest.mark.parametrize(
    "body",
    [
        "<nav><a href=a>Boilers</a><a href=b>Stoves</a></nav>",
        "<main></main><div>Boilers</div>",
        "<main>Loading</main><div class=wrap>" + STORY * 9 + "</div>",
        "<div class=menu>" + STORY * 3 + "</div><p>x",
        "<h1>All that we have written of heating</h1><p>Of 1 May 2026, and earlier<nav>" + LINKS + "</nav>",
        "<main><h1>All that we have written of heating</h1>Of 1 May 2026<nav>" + LINKS + f"</nav></main>{BESIDE}",
        "<main>The list below is made when the page is loaded.</main><div>" + f"<p>{STORY} {OTHER}" * 20 + "</div>",
        "<ul><li><a href=a>Boilers</a><li><a href=b>Stoves</a></ul>",
    ],
)
def test_c8_main_when_too_little_would_be_left_then_less_is_cut(body: str) -> None:
    text = page_of(body).text

    assert "Boilers" in text or STORY in text


@pytest.mark.parametrize("around", ["{}", "<main>{}</main>", "<div role=main>{}</div>"])
@pytest.mark.parametrize(
    "section",
    [
        "<section id=navbar><h2>Navbar</h2>{}</section>",
        "<section id=modal-verbs class=level2><h2>Modal <b>verbs</b></h2>{}</section>",
        "<section id=advertising-revenue><span id=x></span><h3>Where <i>advertising</i> pays</h3>{}</section>",
        "<div class=section id=side-bar><h2>The sidebar¶</h2>{}</div>",
        "<div id=cookies class='section level2'><h2>Cookies</h2>{}</div>",
        "<div class=sect1 id=share><div class=titlepage><div><h2>How to share</h2></div></div>{}</div>",
    ],
)
def test_c8_main_when_a_section_is_called_as_its_heading_then_it_stays(around: str, section: str) -> None:
    text = page_of(around.format(f"<p>{OTHER}</p>{section.format(f'<p>{STORY}</p>')}<p>{OTHER}</p>")).text

    assert STORY in text
    assert text.count("\n") == 3


@pytest.mark.parametrize(
    "section",
    [
        "<section id=sidebar><h2>Latest news</h2>{}</section>",
        "<section id=sidebar>{}</section>",
        "<section class=sidebar id=menu><h2>Menu</h2>{}</section>",
        "<div id=menu><h2>Menu</h2>{}</div>",
    ],
)
def test_c8_main_when_a_section_has_another_heading_then_its_name_counts(section: str) -> None:
    assert page_of(f"<p>{OTHER}{section.format('<p>One')}<p>{OTHER}").text == f"{OTHER}\n{OTHER}"


@pytest.mark.parametrize(
    "part",
    [
        "<div class=sidebar><h3>A note</h3><p>{}</div>",
        "<section id=sidebar><h2>Latest news</h2><p>{}</section>",
        "<div class=header><h2>What burns</h2><p>{}</div>",
        "<div class=promo><p>{} <a href=x>More</a></div>",
        "<div class=footer><p>{}</div>",
        "<aside><p>{}</aside>",
        "<nav><p>{}<p>{}<p>{}<p>{}<p>{}</nav>",
        "<p hidden>{}",
    ],
)
def test_c8_main_when_a_region_has_words_of_its_own_then_its_name_does_not_count(part: str) -> None:
    words = f"{STORY} Nobody else knows."
    text = page_of(f"<p>{OTHER}{part.replace('{}', words)}<p>{OTHER}<p>{OTHER}").text

    assert words in text
    assert text.startswith(OTHER)
    assert text.endswith(OTHER)


@pytest.mark.parametrize(
    "around",
    [
        f"<div class=contents>{LINKS}</div>",
        f"<ul class=docnav><li>The handbook of stoves{LINKS}</ul>",
        f"<div id=sidebar><h3>Pages</h3>{LINKS}</div>",
        "<div id=toc class=sidebar>" + "<li><a href='#x'>A part of this page</a>" * 9 + "</div>",
    ],
)
def test_c8_main_when_a_region_has_links_alone_then_it_is_no_content_however_large(around: str) -> None:
    page = page_of(f"<div id=main><h1>Boiler</h1><p>{STORY}</div>{around}")

    assert page.text == f"Boiler\n{STORY}"


@pytest.mark.parametrize("element", ["<main>{}</main>", "<div class=content>{}</div>"])
def test_c8_main_when_what_is_called_the_content_has_few_of_the_words_then_the_others_stay(element: str) -> None:
    teaser = f"<p>{STORY}<p>{STORY}<p>{STORY}"
    page = page_of(f"<nav>Home</nav>{element.format(teaser)}<div class=text>{f'<p>{OTHER}' * 12}</div>")

    assert page.text.split("\n") == [STORY] * 3 + [OTHER] * 12


@pytest.mark.parametrize("element", ["<main>{}</main>", "<div class=content>{}</div>"])
def test_c8_main_when_much_text_stands_beside_what_is_called_the_content_then_stays(element: str) -> None:
    content, comments = f"<p>{STORY} " * 9, f"{OTHER} " * 5
    page = page_of(
        f"<p>Call us{element.format(content)}<div class=comments>{comments}</div><footer>{comments}</footer>"
    )

    assert page.text.split("\n") == [STORY] * 9 + [comments.strip()]


def test_c8_main_when_a_header_in_the_content_has_its_heading_then_it_is_the_contents_own() -> None:
    header = "<header><h3>Class</h3><h1>Kiln</h1></header>"
    page = page_of(f"<header><a href=/>Our site</a></header><section class=content>{header}<p>{STORY}</p></section>")

    assert page.text == f"Class\nKiln\n{STORY}"


def test_c8_main_when_a_header_is_not_closed_and_a_footer_has_most_words_then_the_content_stays() -> None:
    page = page_of(
        "<div class=header><div class=main><div class=navigationbar><li>Stoves<li><a href=x>All stoves</a></div></div>"
        "<div class=content><div class=mainContent><h1>Kettle members</h1><p>All members of it are listed here.</div></div></div>"
        f"<div class=footer><p>{STORY}<p>{OTHER}<p>{STORY}</div>"
    )

    assert page.text == "Kettle members\nAll members of it are listed here."


@pytest.mark.parametrize("main", ["<main>{}</main>", "<div id=main>{}</div>"])
def test_c8_main_when_a_menu_stands_below_the_heading_then_it_is_that_of_the_chapter(main: str) -> None:
    menu = "<table class=menu><tr><td><a href={0}>The {0} part</a></table>"
    content = f"{menu.format('other')}<h2>Boilers</h2><p>{STORY}{menu.format('inner')}<p>{OTHER}"
    page = page_of(main.format(content))

    assert page.text == f"Boilers\n{STORY}\nThe inner part\n{OTHER}"


@pytest.mark.parametrize(
    ("before", "stays"),
    [
        (
            "<table><tr><td>[Overview][<a href=a>Types</a>][<a href=b>Index</a>]<td>Of unit x (<a href=..>#rtl</a>)</table>",
            False,
        ),
        ("<p>Published in May", True),
        (f"<p>{STORY} {OTHER} <a href=x>More</a>", True),
    ],
)
def test_c8_main_when_a_row_with_links_stands_before_the_heading_then_it_is_none_of_the_content(
    before: str, stays: bool
) -> None:
    page = page_of(f"{before}<h1>Boiler</h1><p>{STORY}")

    assert (page.text != f"Boiler\n{STORY}") == stays


BAR: Final = (
    "<div>[Top of Book] [<a href=a>Contents</a>] [<a href=b>Previous Chapter</a>] [<a href=c>Next Chapter</a>]</div>"
)
ROW: Final = f"<div>See <a href=a>Boilers</a>, and <a href=b>stoves</a>. {OTHER}</div>"


@pytest.mark.parametrize(
    ("first", "last", "stays"),
    [
        (f"{BAR}<p>Letter", f"<p>Imprint{BAR}", False),
        (f"<div><p>{BAR}", BAR, False),
        (f"<article>{BAR[5:-6]}</article>", BAR, False),
        (f"<h4>Burning wood</h4>{BAR}", f"{BAR}<p>Of May", False),
        (BAR, "", True),
        ("", BAR, True),
        (BAR, BAR.replace("Next", "Last"), True),
        (ROW, ROW, True),
        ("<p>Words of wisdom", "<p>Words of wisdom", True),
        ("<p><a href=a>Contents</a>", "<p><a href=a>Contents</a>", True),
    ],
)
@pytest.mark.parametrize("content", [f"<p>{STORY}", f"<h2>Boiler</h2><p>{STORY}", f"<p>{STORY}" * 40])
def test_c8_main_when_a_row_of_links_stands_at_both_ends_then_it_is_none_of_the_content(
    first: str, last: str, stays: bool, content: str
) -> None:
    page = page_of(f"{first}{content}{last}")

    assert STORY in page.text
    assert page.whole.count("\n") - page.text.count("\n") == 2 or stays
    assert stays == (not page.whole)
    assert ("Top of Book" in page.all_text) == (BAR in first + last)


def test_c8_main_when_a_page_has_nothing_but_rows_of_links_then_they_stay() -> None:
    page = page_of(f"{BAR}<p>Of May{BAR}")

    assert page.text.count("Previous Chapter") == 2
    assert page.whole == ""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"<nav>Home</nav><main><h1>Boiler</h1><p>{STORY}</main>", None),
        (f"<p>{STORY}", None),
        ("", None),
        ("<nav></nav>", None),
        (f"<nav>{LINKS}</nav><main>{STORY}</main>", None),
        (f"<nav>{LINKS}</nav><p>x", Fallback(FallbackReason.UNCUT, 1, 2250)),
        (f"<main>Loading</main><div class=wrap>{STORY * 9}</div>", Fallback(FallbackReason.MAIN, 7, 898)),
        (f"<main></main><nav>Home</nav><p>{STORY}", Fallback(FallbackReason.MAIN, 0, 99)),
    ],
)
def test_c8_main_when_too_little_would_be_left_then_says_how_little(body: str, expected: Fallback | None) -> None:
    assert page_of(body).fallback == expected
    assert page_of(body, TextRules()).fallback is None


def test_c8_text_when_a_page_has_many_variants_of_which_a_script_shows_one_then_all_stay() -> None:
    variants = "".join(f"<span hidden>In the kitchen of kind {number} </span>" for number in range(9))

    assert "of kind 7" in page_of(f"<p>{STORY}<p>{OTHER}<p>Look for it: {variants}").text


@pytest.mark.parametrize("main", [True, False])
@pytest.mark.parametrize("sign", ["¶", "§", " # ", "[link]", "🔗", "<svg></svg>"])
def test_c8_text_when_a_heading_has_a_link_to_itself_then_that_is_no_text(main: bool, sign: str) -> None:
    body = f"<h2 id=a>Boiler<a class=x href='#a'>{sign}</a></h2><p>{STORY}<a href='#b'>[1]</a>"

    assert page_of(body, TextRules(main=main)).text == f"Boiler\n{STORY}[1]"


def test_c8_text_when_a_link_to_the_page_has_a_sign_of_which_it_tells_then_it_stays() -> None:
    assert page_of(
        f"<p>{STORY}<p>See <a href='#plus'>+</a>, <a href='#le'>&lt;=</a> and this <a href='#x'>link</a>"
    ).text == (f"{STORY}\nSee +, <= and this link")


@pytest.mark.parametrize("section", ["<section id=cookies>", "<div id=cookies class='section level2'>"])
def test_c8_main_when_a_section_is_longer_than_a_piece_then_is_judged_with_its_heading_in_each(section: str) -> None:
    rows = "<p><a href=x>A row of it</a>" * 2_500
    inner = f"{section}<h2>Cookies</h2>{rows}</{section[1:].split(maxsplit=1)[0]}>"
    page = page_of(f"<div class=sidebar>{inner}<p>Home</div><p>{STORY}<p>{OTHER}")

    assert page.text == f"{STORY}\n{OTHER}"


@pytest.mark.parametrize("name", ["sidebar {}", "{} no-sidebar menu"])
def test_c8_main_when_a_region_with_long_names_is_longer_than_a_piece_then_they_count_in_each(name: str) -> None:
    names = name.format("x" * 200 if name.startswith("{") else "x" * 400)
    rows = "<p><a href=x>A row of it</a>" * 2_500
    page = page_of(f"<p>{STORY}<div class='{names}'>{rows}</div><p>{OTHER}")

    assert page.text == f"{STORY}\n{OTHER}"


def test_c8_main_when_a_heading_is_a_button_then_it_stays_and_other_buttons_do_not() -> None:
    page = page_of(
        f"<h3><button class=nav-link>What burns?</button></h3><p>{STORY}<details><summary><span><button>Since when?"
        f"</button></span></summary>{STORY}</details><button>Send</button><div><p><button>Close</button></div>"
    )

    assert page.text == f"What burns?\n{STORY}\nSince when?\n{STORY}"


def test_c8_main_when_little_stands_in_main_beside_much_navigation_then_is_all() -> None:
    page = page_of(f"<nav>{LINKS}</nav><main>{STORY}</main>")

    assert page.text == STORY


def test_c8_names_when_they_are_very_long_then_pages_leave_nothing_behind() -> None:
    regions._decide.cache_clear()
    tracemalloc.start()
    try:
        for number in range(20):
            name = f"{number} {'x' * 100_000}"
            page_of(f"<div class='c{name}' id='i{name}' role='r{name}'>{STORY}</div>")
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_c8_main_when_a_page_has_too_many_tags_for_a_tree_then_elements_are_cut_all_the_same() -> None:
    lines = "<p>A line of a long page</p>" * 4_000
    page = page_of(f"<nav>Home</nav><header>Our site</header><main>{lines}</main><footer>Imprint</footer>")

    assert set(page.text.split("\n")) == {"A line of a long page"}
    assert page.whole.startswith("Home\nOur site\nA line")


@pytest.mark.parametrize(
    ("depth", "left"), [(1, {"A line of a long page"}), (150, {"A line of a long page", "B", "C", "H"})]
)
def test_c8_main_when_a_long_page_is_nested_too_deep_then_names_do_not_count(depth: int, left: set[str]) -> None:
    around = "<nav>A</nav><div class=menu>B</div><div role=search>C</div><p hidden>H</p><!--googleoff: all-->D<!--googleon: all-->"
    page = page_of("<div>" * depth + around + "<p>A line of a long page</p>" * 4_500)

    assert set(page.text.split("\n")) == left


@pytest.mark.parametrize("main", [True, False])
def test_c8_text_when_something_is_not_shown_then_is_left_out(main: bool) -> None:
    hidden = (
        "<div hidden>H1</div><p style='color: red; Display : none !important'>H2</p><span style=visibility:hidden>H3</span>"
        "<template>H4</template><script>H5</script><style>H6</style><p data-nosnippet>H7</p>"
    )
    page = page_of(f"{hidden}<p hidden-by=x style='display:block'>{STORY}{hidden}", TextRules(main=main))

    assert page.text == STORY
    assert "H7" in page.whole


@pytest.mark.parametrize("main", [True, False])
@pytest.mark.parametrize(
    "element",
    ["<div style='backface-visibility:hidden'>{}", "<div style='x-display:none'>{}", "<div hidden=Until-Found>{}"],
)
def test_c8_text_when_something_is_shown_or_can_be_found_then_stays(main: bool, element: str) -> None:
    page = page_of(f"<p>{OTHER}</p>{element.format(STORY)}</div>", TextRules(main=main))

    assert page.text == f"{OTHER}\n{STORY}"


@pytest.mark.parametrize("main", [True, False])
@pytest.mark.parametrize("beside", ["", "<div data-nosnippet>Loading</div>", "<p>Loading</p>"])
def test_c8_text_when_all_of_a_page_is_hidden_until_a_script_runs_then_stays(main: bool, beside: str) -> None:
    content = f"<p>{STORY}<p data-nosnippet>H1</p><!--googleoff: all-->H2<!--googleon: all--><p class=x>H3"
    page = page_of(f"{beside}<div id=app style='display: none'>{content}</div>", TextRules(main=main, drop=(".x",)))

    assert page.text.removeprefix("Loading\n") == STORY


@pytest.mark.parametrize("main", [True, False])
def test_c8_text_when_a_page_switches_indexing_off_then_is_left_out_up_to_where_it_is_switched_on(main: bool) -> None:
    page = page_of(
        f"<div>{STORY}<!--googleoff: index--><p>A</div><div>B<!-- GoogleOn: all --><p>{STORY}<!--googleoff: anchor-->C"
        "</div><!--googleoff:all-->D",
        TextRules(main=main),
    )

    assert page.text == f"{STORY}\n{STORY}C"


@pytest.mark.parametrize("main", [True, False])
def test_c8_text_when_the_source_names_elements_then_they_decide(main: bool) -> None:
    body = "<nav class=tree>A</nav><main><p>B<em>C</em><p class=x>D</main><div class=note>E<i class=x>F</i></div>"

    assert page_of(body, TextRules(main=main, drop=(".x", "em"))).text == ("B" if main else "A\nB\nE")
    assert page_of(body, TextRules(main=main, keep=(".note", "nav, p"), drop=("i",))).text == "A\nBC\nD\nE"
    assert page_of(body, TextRules(main=main, keep=(".other",))).text == page_of(body, TextRules(main=main)).text


def test_c8_digest_when_only_what_is_not_indexed_differs_then_differs() -> None:
    one, other = (page_of(f"<nav>Home {year}</nav><main>{STORY}</main>") for year in (2025, 2026))

    assert one.text == other.text
    assert compute_fields_digest(one) != compute_fields_digest(other)


def test_c8_digest_when_all_text_is_indexed_then_is_that_of_earlier_releases() -> None:
    page = page_of(f"<p>{STORY}")

    assert page.whole == page.whole_digest == ""
    assert compute_fields_digest(page) == compute_fields_digest(Page(title="t", text=STORY))


@pytest.mark.parametrize(
    "stray", ["\x02", "\x02\x03", "\x02\x1d", "\x02\x06\x02\x05", "\x02\x19", "a\x02b", "\x02\x13", "&#2;&#3;"]
)
def test_c8_text_when_a_page_has_characters_that_are_marks_then_they_are_no_part_of_it(stray: str) -> None:
    page = page_of(f"<nav>Home{stray}</nav><p>{STORY}{stray}<div>{stray}End")

    assert STORY in page.text
    assert not any(ord(character) < 0x20 and character != "\n" for character in page.text + page.whole)


def test_region_when_pages_have_endless_names_then_they_are_not_kept() -> None:
    tracemalloc.start()
    for number in range(100):
        parser = LexborHTMLParser(f'<div class="{number} {"x" * 100_000}" id="{number}{"y" * 100_000}">')
        node = parser.css_first("div")
        assert node is not None
        find_region("div", node)
    del parser, node
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 2 << 20

"""Fetched from one URL, shown with another (A4): what the server saw, what the index and the rows say."""

from __future__ import annotations

from typing import Any

from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_stories import Run, Story, Tell, page, pages, run, source

INTRA, OTHER = "intra.acme.test", "other.acme.test"
SHOWN = "https://www.example.com"


def displayed(project: CrawlProject, *pairs: tuple[str, str], **overrides: Any) -> None:
    """A source of both hosts with such a mapping; ``from`` is a host of the site, with a path."""
    site = project.site
    mapping = [{"from": site.url(host.partition("/")[0], "/" + host.partition("/")[2]), "to": to} for host, to in pairs]
    project.edit(**source(site, [INTRA, OTHER]), **({"display": mapping} if mapping else {}), **overrides)


def shown(project: CrawlProject) -> dict[str, str]:
    """Display URL by access path of what the index holds."""
    return {
        hit.fields["access_url"].split("/", 2)[2].replace(f":{project.site.port}", ""): hit.fields["url"]
        for hit in project.hits("*")
    }


def _mapped(project: CrawlProject) -> list[Run]:
    site = project.site
    displayed(project, (INTRA, SHOWN), (f"{INTRA}/docs/", "https://docs.example.com/"))
    pages(site, INTRA, a=page("alpha barometer"), copy=page("alpha barometer"))
    site.set_page(INTRA, "/", page("start", "/a.html", "/copy.html", "/docs/b.html"))
    site.set_page(INTRA, "/docs/b.html", page("beta"))
    site.set_page(OTHER, "/", page("other"))
    first = run(project)
    FOUND["mapped"] = shown(project)
    FOUND["urls"] = project.lines("urls", "demo")
    FOUND["search"] = project.ask("search", "alpha")
    FOUND["filtered"] = project.ask("search", "*", "--filter", "host:docs.example.com")
    FOUND["verify"] = project.ask("verify", "demo")
    return [first, run(project)]


def _edited(project: CrawlProject) -> list[Run]:
    site = project.site
    displayed(project)
    pages(site, INTRA, a=page("alpha"), aa=page("alpha"))
    site.set_page(OTHER, "/", page("other"))
    runs = [run(project)]
    displayed(project, (INTRA, SHOWN))
    FOUND["reason"] = project.ask("status", "demo")["force_recrawl"]
    runs.append(run(project))
    FOUND["edited"] = shown(project)
    FOUND["listed"] = [hit.fields["duplicates"] for hit in project.hits("alpha")]
    displayed(project)
    runs.append(run(project))
    FOUND["unmapped"] = shown(project)
    return [*runs, run(project)]


def _clash(project: CrawlProject) -> list[Run]:
    site = project.site
    # What is shown is the other host's own URL as well.
    displayed(project, (OTHER, site.url(INTRA)))
    pages(site, INTRA, x=page("of the intranet"))
    pages(site, OTHER, x=page("of the other"), only=page("only there"))
    runs = [run(project)]
    FOUND["clash"] = project.lines("urls", "demo", "--code", "956")
    FOUND["clash verify"] = project.ask("verify", "demo")
    site.delete_page(INTRA, "/x.html")
    runs.append(run(project))
    FOUND["after"] = shown(project)
    site.set_page(INTRA, "/x.html", page("of the intranet"))
    return [*runs, run(project)]


def _invalid(project: CrawlProject) -> list[Run]:
    site = project.site
    pages(site, INTRA, a=page("alpha"))
    site.set_page(OTHER, "/", page("other"))
    displayed(project, (f"{INTRA}/a", f"{SHOWN}/{'long' * 10_000}"))
    runs = [run(project)]
    displayed(project, (f"{INTRA}/a", f"{SHOWN}/a"))
    return [*runs, run(project)]


#: What commands said while a story was told.
FOUND: dict[str, Any] = {}
STORIES: dict[str, Story] = {"mapped": _mapped, "edited": _edited, "clash": _clash, "invalid": _invalid}


def test_display_when_prefixes_are_mapped_then_fetched_from_one_host_and_shown_with_the_other(tell: Tell) -> None:
    first, again = tell("mapped")

    assert {entry["host"] for entry in first.log} == {INTRA, OTHER}
    access = f"{OTHER}/"
    assert FOUND["mapped"].pop(access).startswith(f"http://{OTHER}:")
    assert FOUND["mapped"] == {
        f"{INTRA}/": f"{SHOWN}/",
        f"{INTRA}/a.html": f"{SHOWN}/a.html",
        f"{INTRA}/docs/b.html": "https://docs.example.com/b.html",
    }
    assert (again.versions, again.counts["indexed"]) == (first.versions, 0)


def test_display_when_rows_and_hits_are_shown_then_with_the_display_url_and_verified_by_the_access_url(
    tell: Tell,
) -> None:
    tell("mapped")

    rows = {
        row["access_url"].partition(INTRA)[2].partition("/")[2]: row
        for row in FOUND["urls"]
        if INTRA in row["access_url"]
    }
    assert {path: row["url"] for path, row in rows.items()} == {
        "": f"{SHOWN}/",
        "a.html": f"{SHOWN}/a.html",
        "copy.html": f"{SHOWN}/copy.html",
        "docs/b.html": "https://docs.example.com/b.html",
    }
    assert (rows["copy.html"]["code"], rows["copy.html"]["duplicate_of"]) == (909, f"{SHOWN}/a.html")
    assert [(hit["url"], hit["duplicates"]) for hit in FOUND["search"]["hits"]] == [
        (f"{SHOWN}/a.html", [f"{SHOWN}/copy.html"])
    ]
    assert [hit["url"] for hit in FOUND["filtered"]["hits"]] == ["https://docs.example.com/b.html"]
    assert FOUND["verify"]["ok"]


def test_display_when_the_mapping_is_edited_then_everything_is_shown_anew_under_the_same_ids(tell: Tell) -> None:
    first, mapped, unmapped, again = tell("edited")

    assert FOUND["reason"] == "changed: display"
    assert FOUND["edited"][f"{INTRA}/a.html"] == f"{SHOWN}/a.html"
    assert FOUND["listed"] == [[f"{SHOWN}/aa.html"]]
    assert all(url.startswith(f"http://{path.partition('/')[0]}:") for path, url in FOUND["unmapped"].items())
    # The page of the other host is shown as before, and not sent.
    assert mapped.counts["indexed"] == unmapped.counts["indexed"] == 2
    assert len(first.versions) == len(mapped.versions) == len(unmapped.versions) == 3
    assert (again.counts["indexed"], again.ended.status["force_recrawl"]) == (0, None)


def test_display_when_two_pages_would_have_one_url_then_the_better_access_url_is_shown(tell: Tell) -> None:
    first, gone, back = tell("clash")

    x = {"intra": f"{INTRA}/x.html", "other": f"{OTHER}/x.html"}
    assert (first.codes[x["intra"]], first.codes[x["other"]]) == (200, 956)
    assert (gone.codes[x["intra"]], gone.codes[x["other"]]) == (404, 200)
    assert (back.codes[x["intra"]], back.codes[x["other"]]) == (200, 956)
    rows = {
        row["access_url"].partition("//")[2].partition(":")[0]: row
        for row in FOUND["clash"]
        if row["access_url"].endswith("x.html")
    }
    assert rows[OTHER]["state"] == "excluded"
    assert rows[OTHER]["in_index"] is False
    assert "/x.html" in rows[OTHER]["error"]
    assert INTRA in rows[OTHER]["error"]
    assert x["other"] not in [path for path in FOUND["after"] if path == x["intra"]]
    assert FOUND["after"][x["other"]].startswith(f"http://{INTRA}:")
    assert FOUND["clash verify"]["ok"]
    # Each display URL once, in each run.
    assert len(set(FOUND["after"].values())) == len(FOUND["after"])


def test_display_when_the_url_would_be_no_valid_one_then_not_indexed_until_the_mapping_is_mended(tell: Tell) -> None:
    invalid, mended = tell("invalid")

    assert invalid.codes[f"{INTRA}/a.html"] == 1010
    assert f"{INTRA}/a.html" not in invalid.in_index
    assert invalid.ended.exit_code == 0
    assert mended.codes[f"{INTRA}/a.html"] == 200
    assert f"{INTRA}/a.html" in mended.in_index

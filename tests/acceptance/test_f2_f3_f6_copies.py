"""One document for each text (F2), whatever order the pages come in; another copy takes the place of one that is gone (F3); near
copies are taken out only where the source file asks for it, within the limits on deleting (F6, L3).
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.acceptance.support_plans import apply, plan
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import Run, Story, Tell, page, pages, run, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess, write_project

HOST = "copies.acme.test"
EDITIONS = "editions.acme.test"
#: More than may always leave.
MANY = 14
SAME = page("the same everywhere")
COPIES = 150


def at(name: str) -> str:
    return f"{HOST}/{name}"


def _orders(project: CrawlProject) -> list[Run]:
    site = project.site
    project.edit(**source(site, HOST, concurrency=1, host_concurrency=1))
    same = page("the same everywhere")
    other_bytes = same.replace("<body>", '<body class="print"><!-- built by 7 -->')
    pages(site, HOST, best=same, second=same, further=other_bytes, alone=page("alone"))
    # Their title is their name.
    for name in ("/file.txt", "/file-of-old.txt"):
        site.set_page(HOST, name, "the same file", content_type="text/plain")
    # The best of them comes last.
    site.set_page(
        HOST,
        "/",
        page(
            "start",
            *("/further.html", "/second.html", "/alone.html", "/best.html", "/best.html?q=1"),
            *("/file-of-old.txt", "/file.txt"),
        ),
    )
    return [run(project), run(project), *_edit(project)]


def _edit(project: CrawlProject) -> list[Run]:
    """Copies are looked for no longer, and are again; each edit is planned and applied."""
    runs = []
    for scope, enter, leave in (("off", 4, 0), ("source", 0, 4)):
        project.edit(**source(project.site, HOST, concurrency=1, host_concurrency=1), copies={"scope": scope})
        made = plan(project)
        assert (made["edited"], made["enter"], made["leave"]) == (["copies.scope"], enter, leave)
        project.site.clear_log()
        apply(project, made)
        assert project.site.requested() == []
        runs.append(run(project))
    return runs


def _join(number: int) -> Story:
    def story(project: CrawlProject) -> list[Run]:
        site = project.site
        project.edit(**source(site, HOST), lifecycle={"max_delete_documents": 0})
        names = [f"/p{each:03}.html" for each in range(COPIES)]
        site.set_page(HOST, "/", page("start", *names[::-1]))
        for each, name in enumerate(names):
            site.set_page(HOST, name, page(f"page {each}"))
        runs = [run(project)]
        for name in names[:number]:
            site.set_page(HOST, name, page("an error page for everything"))
        runs.append(run(project))
        assert project.command("quarantine", "approve", "demo").returncode == 0
        return [*runs, run(project)]

    return story


def _near(project: CrawlProject) -> list[Run]:
    """Two editions of a page: one hit, and two once the source file says so, without a crawl."""
    site, text = project.site, " ".join(f"word{each} of the manual rarely differs," for each in range(120))
    project.edit(**source(site, HOST))
    editions = {name: page("Manual", text=f"{text} {name}") for name in ("one", "other/second")}
    site.set_page(HOST, "/", page("start", *(f"/{name}.html" for name in editions)))
    site.set_pages(HOST, {f"/{name}.html": body for name, body in editions.items()})
    crawled = run(project)
    found = [_search(project, "word7")]
    project.edit(**source(site, HOST), copies={"near": "off"})
    found.append(_search(project, "word7"))
    url = site.url(HOST, "/one.html")
    assert found[0] == {url: [site.url(HOST, "/other/second.html")]} or found[0] == {
        site.url(HOST, "/other/second.html"): [url]
    }
    assert found[1] == {url: [], site.url(HOST, "/other/second.html"): []}
    assert set(crawled.codes.values()) == {200}
    return [crawled]


def _search(project: CrawlProject, words: str) -> dict[str, list[str]]:
    answer = project.ask("search", words)
    assert answer["total"] == 2
    return {hit["url"]: hit["duplicates"] for hit in answer["hits"]}


FOLDERS = "cs", "de", "en", "vi"
ENGLISH = "The station records the pressure at noon, and keeps a copy of each reading before it is sent to the north."


def _fit(project: CrawlProject) -> list[Run]:
    """A page that is in English in the folders of all languages, and one under several names; links in both orders."""
    site, runs = project.site, []
    project.edit(**source(site, HOST, concurrency=1, host_concurrency=1))
    untranslated = {f"/{folder}/readings.html": page("Chapter 4", text=ENGLISH) for folder in FOLDERS}
    names = {f"/{name}.8.html": page("ACME manual - smtp(8)", text="Sends mail.") for name in ("lmtp", "smtp")}
    site.set_pages(HOST, {**untranslated, **names})
    for paths in ([*untranslated, *names], [*untranslated, *names][::-1]):
        site.set_page(HOST, "/", page("start", *paths))
        runs.append(run(project))
        assert _why(project, "/cs/readings.html") == (
            f"a copy of {site.url(HOST, '/en/readings.html')}: its URL names another language than that of the text, that one "
            "exactly the language of the text"
        )
        assert _why(project, "/lmtp.8.html") == (
            f"a copy of {site.url(HOST, '/smtp.8.html')}: the title has the name of that URL, and not of its own"
        )
        if len(runs) == 1:
            assert project.command("delete", "demo", "--yes").returncode == 0
    return [*runs, run(project)]


def _why(project: CrawlProject, path: str) -> str:
    return project.step("duplicate", project.site.url(HOST, path))


def _gone(project: CrawlProject) -> list[Run]:
    site = project.site
    project.edit(**source(site, HOST))
    pages(site, HOST, a=SAME, bb=SAME, ccc=SAME)
    runs = [run(project)]
    site.delete_page(HOST, "/a.html")
    runs.append(run(project))
    site.set_page(HOST, "/a.html", SAME)
    return [*runs, run(project)]


def _failing(project: CrawlProject) -> list[Run]:
    site = project.site
    project.edit(**source(site, HOST))
    pages(site, HOST, a=SAME, bb=SAME)
    runs = [run(project)]
    site.set_behaviour(HOST, "/a.html", status=503)
    return [*runs, run(project)]


def _forgetful(project: CrawlProject) -> list[Run]:
    site = project.site
    pages(site, HOST, a=SAME, bb=SAME, ccc=SAME)
    write_project(project.folder, site, project={"cache": {"preserve": False}}, **source(site, HOST))
    runs = [run(project)]
    site.delete_page(HOST, "/a.html")
    return [*runs, run(project), run(project)]


STORIES: dict[str, Story] = {
    "fit": _fit,
    "orders": _orders,
    "near": _near,
    "few": _join(10),
    "hundreds": _join(COPIES),
    "gone": _gone,
    "failing": _failing,
    "forgetful": _forgetful,
}


@pytest.mark.matrix
def test_copies_when_the_best_comes_last_then_it_is_the_document_and_lists_the_others(tell: Tell) -> None:
    first, second, off, on = tell("orders")

    assert first.versions.keys() == {at(""), at("alone.html"), at("best.html"), at("file.txt")}
    assert first.listed == {
        at("best.html"): sorted([at("best.html?q=1"), at("further.html"), at("second.html")]),
        at("file.txt"): [at("file-of-old.txt")],
    }
    copies = [url for url, code in first.codes.items() if code == 909]
    assert sorted(copies) == sorted(copy for listed in first.listed.values() for copy in listed)
    assert first.counts["duplicates"] == 4
    # Each was asked for once; the second run sends nothing.
    assert sorted(set(first.requested)) == sorted(first.requested)
    assert (second.codes, second.versions, second.counts["indexed"]) == (first.codes, first.versions, 0)
    assert (set(off.versions), len(off.listed)) == (set(first.codes), 0)
    assert set(off.codes.values()) == {200}
    assert (on.codes, on.versions.keys(), on.listed) == (first.codes, first.versions.keys(), first.listed)
    assert (off.counts["indexed"], on.counts["indexed"]) == (0, 0)


def test_copies_when_urls_name_languages_and_things_then_the_one_that_fits_the_text_is_the_document(tell: Tell) -> None:
    first, second, again = tell("fit")

    listed = {
        at("en/readings.html"): [at(f"{folder}/readings.html") for folder in FOLDERS if folder != "en"],
        at("smtp.8.html"): [at("lmtp.8.html")],
    }
    assert first.listed == second.listed == again.listed == listed
    assert first.versions.keys() == second.versions.keys() == {at(""), *listed}
    assert (again.counts["indexed"], again.counts["deleted"]) == (0, 0)


def test_near_copies_when_they_are_found_then_they_are_one_hit_until_the_source_file_says_otherwise(tell: Tell) -> None:
    [crawled] = tell("near")

    assert crawled.counts["indexed"] == 3


def test_documents_when_hundreds_become_one_then_none_is_taken_for_a_copy(tell: Tell) -> None:
    before, joined, again = tell("hundreds")

    assert len(before.versions) == COPIES + 1
    assert joined.versions.keys() == again.versions.keys() == before.versions.keys()
    assert {joined.codes[at(f"p{number:03}.html")] for number in range(COPIES)} == {965}
    assert (joined.ended.exit_code, joined.ended.status["quarantined"]) == (0, 0)
    assert (joined.counts["duplicates"], joined.counts["deleted"], again.counts["deleted"]) == (0, 0, 0)


def test_copies_when_a_few_documents_become_one_then_the_others_leave_within_the_limits_on_deleting(tell: Tell) -> None:
    before, joined, again = tell("few")

    assert len(before.versions) == COPIES + 1
    # They wait, and are found until somebody approves.
    assert joined.versions.keys() == before.versions.keys()
    assert len(joined.listed[at("p000.html")]) == 9
    assert (joined.ended.exit_code, joined.ended.status["quarantined"]) == (9, 9)
    assert (joined.counts["duplicates"], joined.counts["deleted"]) == (9, 0)
    assert before.versions.keys() - again.versions.keys() == {at(f"p{number:03}.html") for number in range(1, 10)}
    assert (again.ended.exit_code, again.counts["indexed"]) == (0, 0)


def test_survivor_when_gone_then_the_next_copy_is_searchable_after_the_same_run(tell: Tell) -> None:
    first, gone, back = tell("gone")

    assert (first.codes[at("a.html")], first.codes[at("bb.html")], first.codes[at("ccc.html")]) == (200, 909, 909)
    assert (gone.codes[at("a.html")], gone.codes[at("bb.html")], gone.codes[at("ccc.html")]) == (404, 200, 909)
    assert gone.versions.keys() == {f"{HOST}/", at("bb.html")}
    assert gone.listed == {at("bb.html"): [at("ccc.html")]}
    # From the cache: the copies were only asked whether they had changed.
    assert gone.bodies == 0
    assert gone.counts["deleted"] == 1
    # And it takes its place again.
    assert back.versions.keys() == {f"{HOST}/", at("a.html")}
    assert back.listed == {at("a.html"): [at("bb.html"), at("ccc.html")]}
    # The one that stood in for it was a document of the index: it counts.
    assert (back.codes[at("bb.html")], back.counts["deleted"]) == (909, 1)


def test_survivor_when_it_only_fails_then_it_stays_the_document(tell: Tell) -> None:
    first, failing = tell("failing")

    assert failing.codes[at("a.html")] == 503
    assert (failing.versions, failing.listed) == (first.versions, first.listed)


def test_survivor_when_gone_and_the_cache_keeps_nothing_then_the_next_is_fetched_in_the_same_run(tell: Tell) -> None:
    first, gone, again = tell("forgetful")

    assert first.listed == {at("a.html"): [at("bb.html"), at("ccc.html")]}
    assert gone.versions.keys() == {f"{HOST}/", at("bb.html")}
    assert gone.listed == {at("bb.html"): [at("ccc.html")]}
    # Asked for once more, whole; nobody else was.
    assert [entry["path"] for entry in gone.log if entry["status"] == 200 and "html" in entry["path"]] == ["/bb.html"]
    assert (again.versions, again.counts["indexed"]) == (gone.versions, 0)


def test_f3_copy_when_the_text_of_its_survivor_waits_for_the_index_then_it_stays_until_that_is_there(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, HOST, a=page("once one thing"), bb=page("once another thing"))
    project = new_project(tmp_path, site, **source(site, HOST))
    run(project)
    pages(site, HOST, a=SAME, bb=SAME)

    # Killed with the new text on its way to the index, and again with the first removals sent to it.
    codes = [
        COMMANDS.run(tmp_path, "crawl", "demo", SEARCHCRAWL_FAILPOINT=point).returncode
        for point in ("batch.sealed", "delete.sent")
    ]
    found = project.found("everywhere")
    after = run(project)

    assert codes == [-signal.SIGKILL] * 2
    assert found != []
    assert sorted(after.versions) == [f"{HOST}/", at("a.html")]
    assert after.codes[at("bb.html")] == 909
    assert project.found("everywhere") == [at("a.html")]


def manual(number: int, edition: int) -> str:
    """A page of a manual; its editions differ in one word."""
    text = " ".join(f"the part{number}x{each} rarely differs," for each in range(150))
    return page(f"Manual {number}", text=f"{text} edition {edition}")


def edit(project: CrawlProject, near: str) -> None:
    project.edit(**source(project.site, EDITIONS), copies={"near": near})


def of_editions(name: str) -> str:
    return f"{EDITIONS}/{name}.html"


@pytest.mark.matrix
def test_near_copies_when_they_are_removed_then_the_best_stays_and_another_takes_its_place_in_the_same_run(
    site: SiteProcess, tmp_path: Path
) -> None:
    bodies = {f"a{number}{'b' * edition}": manual(number, edition) for number in range(2) for edition in range(3)}
    pages(site, EDITIONS, **bodies)
    project = new_project(tmp_path, site)
    edit(project, "remove")
    first, again = run(project), run(project)

    assert first.versions.keys() == {f"{EDITIONS}/", of_editions("a0"), of_editions("a1")}
    assert first.listed == {
        of_editions(f"a{number}"): [of_editions(f"a{number}b"), of_editions(f"a{number}bb")] for number in range(2)
    }
    assert {first.codes[of_editions(f"a0{rest}")] for rest in ("b", "bb")} == {909}
    assert (first.counts["indexed"], first.counts["deleted"], again.counts["indexed"]) == (3, 0, 0)
    decided = project.ask("explain", site.url(EDITIONS, "/a0b.html"))["decided_by"]
    assert (decided["rule"], decided["key"]) == (f"a near copy of {site.url(EDITIONS, '/a0.html')}", "copies.near")

    # One of those that stay is gone, the other has another text.
    site.set_page(EDITIONS, "/a0.html", page("gone"), status=404)
    site.set_page(EDITIONS, "/a1.html", manual(7, 0))
    changed = run(project)

    assert changed.versions.keys() == {f"{EDITIONS}/", of_editions("a0b"), of_editions("a1"), of_editions("a1b")}
    assert changed.listed == {of_editions("a0b"): [of_editions("a0bb")], of_editions("a1b"): [of_editions("a1bb")]}
    assert (changed.counts["deleted"], changed.ended.exit_code) == (1, 0)

    edit(project, "group")
    made = plan(project)
    apply(project, made)
    back = run(project)

    assert (made["edited"], made["enter"], made["leave"]) == (["copies.near"], 2, 0)
    assert set(back.versions) == {
        f"{EDITIONS}/",
        *(of_editions(f"a{each}") for each in ("0b", "0bb", "1", "1b", "1bb")),
    }
    assert (back.listed, back.counts["indexed"]) == ({}, 0)


def test_near_copies_when_the_cache_keeps_no_record_then_are_compared_all_the_same_and_listed_by_the_next_run(
    site: SiteProcess, tmp_path: Path
) -> None:
    editions = {f"a{'b' * edition}": manual(1, edition) for edition in range(3)}
    pages(site, EDITIONS, a=editions["a"])
    project = new_project(tmp_path, site, project={"cache": {"preserve": False}})
    edit(project, "remove")
    run(project)
    pages(site, EDITIONS, **editions)
    second, third, fourth = run(project), run(project), run(project)

    assert second.versions.keys() == third.versions.keys() == {f"{EDITIONS}/", of_editions("a")}
    # It was fetched again, for its record was gone.
    assert third.listed == fourth.listed == {of_editions("a"): [of_editions("ab"), of_editions("abb")]}
    assert (fourth.counts["indexed"], fourth.counts["deleted"], fourth.counts["fetch_failures"]) == (0, 0, 0)


def test_documents_when_many_would_leave_as_near_copies_then_they_wait_and_are_found_until_somebody_approves(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, EDITIONS, **{f"a{edition:02}": manual(1, edition) for edition in range(MANY)})
    project = new_project(tmp_path, site)
    edit(project, "group")
    before = run(project)
    edit(project, "remove")
    planned = plan(project, code=10)
    held = run(project)

    assert set(held.versions) == set(before.versions)
    assert (held.ended.exit_code, held.ended.status["quarantined"], held.counts["deleted"]) == (9, MANY - 1, 0)
    assert (planned["leave"], planned["refetch"]) == (MANY - 1, 0)

    assert project.command("quarantine", "approve", "demo").returncode == 0
    after = run(project)

    assert after.versions.keys() == {f"{EDITIONS}/", of_editions("a00")}
    assert (after.ended.exit_code, after.counts["indexed"]) == (0, 0)
    assert len(after.listed[of_editions("a00")]) == MANY - 1


def test_near_copies_when_a_menu_alone_is_alike_then_they_stay_as_soon_as_it_is_known_to_be_one(
    site: SiteProcess, tmp_path: Path
) -> None:
    def menu_and(number: int) -> str:
        menu = "".join(f"<p>the part{line} rarely differs here or there or there" for line in range(60))
        return page(f"Kettle {number}", text=f"{menu}<p>It boils water of kind {number}")

    # Of fewer pages than ten nothing is said.
    few, many = ({f"a{number:02}": menu_and(number) for number in range(most)} for most in (8, 16))
    pages(site, EDITIONS, **few)
    project = new_project(tmp_path / "grown", site)
    edit(project, "remove")
    first = run(project)
    pages(site, EDITIONS, **many)
    second, third = run(project), run(project)
    fresh = new_project(tmp_path / "fresh", site)
    edit(fresh, "remove")

    assert first.versions.keys() == {f"{EDITIONS}/", of_editions("a00")}
    assert second.versions.keys() == run(fresh).versions.keys() == {f"{EDITIONS}/", *map(of_editions, many)}
    assert (second.listed, third.counts["indexed"], third.counts["changed"]) == ({}, 0, 0)
    assert project.found("rarely") == []

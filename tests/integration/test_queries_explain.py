"""What ``explain`` says of rows in each state, from a real store (L1, J2)."""

from __future__ import annotations

from typing import Any

import pytest

from searchcrawl import clock, urls
from searchcrawl.codes import Code
from searchcrawl.queries.explain import explain_url
from searchcrawl.queries.explain_context import build_inputs
from searchcrawl.sources.config import Source
from searchcrawl.store import batch_table, host_table, removal_table
from searchcrawl.store.documents import duplicate_key_table
from searchcrawl.store.states import DocumentState, FetchState
from tests.filled_store import SITE, FilledStore


def ask(filled: FilledStore, path: str, source: Source | None = None) -> dict[str, Any]:
    inputs = build_inputs(filled.project, source or filled.source)
    return explain_url(filled.database, inputs, path if "://" in path else SITE + path).as_json()


def step(told: dict[str, Any], name: str) -> str:
    """Outcome and detail of a step."""
    [found] = [step for step in told["steps"] if step["step"] == name]
    return f"{found['outcome']}: {found['detail']}"


def seal(filled: FilledStore, *removed: str) -> None:
    with filled.database.write_once() as transaction:
        run, now_ms = filled.run, clock.now_ms()
        if removed:
            ids = [filled.ids[path] for path in removed]
            removal_table.seal(transaction, run.source_id, run.id, now_ms, ids, counted=True)
        else:
            batch_table.seal_documents(transaction, run.source_id, run.id, now_ms)


def test_explain_when_rows_are_in_any_state_then_the_verdict_says_it(filled: FilledStore) -> None:
    filled.fetch("/indexed", "/failed", "/held", "/removing", "/edited")
    filled.send()
    filled.settle("/failed", 503, error="503 Service Unavailable: x")
    filled.settle("/removing", 404)
    filled.hold_back("/held")
    seal(filled, "/removing")
    filled.fetch("/sent")
    seal(filled)
    filled.fetch("/cached")
    filled.admit("/todo", "/again")
    filled.settle("/again", 902, state=FetchState.TODO)
    filled.admit("/unasked", "/nothing")
    filled.settle("/unasked", 951, rule="robots.unavailable")
    filled.settle("/nothing", 200)

    said = {path: ask(filled, path)["verdict"] for path in filled.ids}

    assert said == {
        "/indexed": "in the index",
        "/edited": "in the index",
        "/failed": "in the index as it was, and the last visit brought nothing better: 503 Service Unavailable",
        "/held": "in the index, and its removal waits in quarantine: 404 Not Found",
        "/removing": "in the index, and being removed: 404 Not Found",
        "/sent": "not yet in the index: being delivered",
        "/cached": "not yet in the index: fetched, and waits to be delivered",
        "/todo": "not in the index: to be visited",
        "/again": "not in the index: to be visited again, so far 902, the answer took too long",
        "/unasked": "not in the index: 951, robots.txt could not be read; tried again in the next run",
        "/nothing": "not in the index: removed, or never sent",
    }
    assert step(ask(filled, "/held"), "removal") == (
        f"quarantined: run {filled.run.id} would have removed more than the limits on deleting allow (404)"
    )
    assert "the index has version" in step(ask(filled, "/failed"), "index")


@pytest.mark.parametrize("code", [Code.DUPLICATE, Code.NOT_CANONICAL, Code.DISPLAY_URL_CLASH])
def test_explain_when_a_document_of_the_index_is_a_copy_then_it_says_when_it_leaves(
    filled: FilledStore, code: int
) -> None:
    filled.fetch("/indexed", "/copy")
    filled.send()
    filled.settle("/copy", code)
    with filled.database.write_once() as transaction:
        change = (filled.ids["/copy"], code, filled.ids["/indexed"], DocumentState.WITHHELD)
        duplicate_key_table.set_results(transaction, [change])

    said = ask(filled, "/copy")["verdict"]

    assert said.startswith(
        "in the index, and leaves at the end of a run in which the index has the other page as it is now"
    )


def test_explain_when_the_source_file_was_edited_then_the_rules_are_those_of_now(filled: FilledStore) -> None:
    filled.fetch("/indexed")
    filled.send()
    filled.fetch("/reviewed")
    filled.send()
    filled.settle("/reviewed", 955, rule="scope.exclude_urls: */reviewed")
    filled.admit("/refused", code=955, rule="scope.exclude_urls: */refused")
    narrow = filled.source.scope.model_copy(update={"exclude_urls": ("*/indexed", "*/reviewed")})
    edited = filled.source.model_copy(update={"scope": narrow})

    leaving, allowed = ask(filled, "/indexed", edited), ask(filled, "/refused", edited)
    reviewed, back = ask(filled, "/reviewed", edited), ask(filled, "/reviewed", filled.source)

    assert leaving["verdict"] == "in the index, and leaves with the next run: 955, outside the boundary"
    assert leaving["decided_by"]["rule"] == "*/indexed"
    assert reviewed["verdict"] == "in the index, and leaves at the end of a run: 955, outside the boundary"
    assert back["decided_by"]["rule"] == "*/reviewed"
    assert "changed: scope.exclude_urls" in step(leaving, "visit")
    assert allowed["verdict"].startswith("not in the index as yet: refused when it was found")
    assert allowed["decided_by"]["rule"] == "acme.test"


def test_explain_when_a_rule_about_the_whole_source_refused_then_it_is_named(filled: FilledStore) -> None:
    filled.admit("/too-many", code=955, rule="scope.max_urls: 100")

    fewer = filled.source.scope.model_copy(update={"exclude_urls": ("*.zip",)})
    told = ask(filled, "/too-many")
    edited = ask(filled, "/too-many", filled.source.model_copy(update={"scope": fewer}))

    assert told["verdict"] == "not in the index: 955, outside the boundary"
    assert (told["decided_by"]["rule"], told["decided_by"]["key"]) == ("100", "scope.max_urls")
    assert edited["decided_by"] == told["decided_by"]


def test_explain_when_copies_are_known_then_each_names_the_other(filled: FilledStore) -> None:
    filled.fetch("/first", "/second")
    filled.database.write(
        duplicate_key_table.set_results, [(filled.ids["/second"], 909, filled.ids["/first"], DocumentState.WITHHELD)]
    )
    filled.settle("/second", 909)
    filled.send()

    first, second = ask(filled, "/first"), ask(filled, "/second")

    assert step(first, "duplicate") == f"stands for: {SITE}/second"
    assert second["verdict"] == f"not in the index: 909, a copy of another page: {SITE}/first"
    assert (second["decided_by"]["step"], second["decided_by"]["rule"]) == ("duplicate", f"a copy of {SITE}/first")


def test_explain_when_a_display_url_is_asked_for_then_the_page_behind_it_is_explained(filled: FilledStore) -> None:
    shown = "https://www.example.test/page"
    filled.fetch("/page")
    filled.database.write(duplicate_key_table.set_keys, "display_key", {filled.ids["/page"]: urls.key(shown)})
    filled.send()

    told = ask(filled, shown)

    assert (told["url"], told["in_index"]) == (f"{SITE}/page", True)
    assert step(told, "identity").startswith(f"ok: {shown} is shown for {SITE}/page")


def test_explain_when_robots_txt_is_known_then_all_its_lines_that_forbid_are_named(filled: FilledStore) -> None:
    filled.admit("/tmp/a.html")
    filled.settle("/tmp/a.html", 951, rule="Disallow: /tmp/")
    body = b"User-agent: *\nDisallow: /tmp/\nDisallow: /*.html\nAllow: /tmp/b.html\n"
    filled.database.write(host_table.save_robots, {SITE: body}, clock.now_ms())

    known, never, allowed = (ask(filled, f"/tmp/{name}.html") for name in ("a", "c", "b"))

    assert known["verdict"] == "not in the index: 951, robots.txt forbids it"
    assert known["decided_by"] == {
        "step": "robots",
        "rule": "Disallow: /tmp/",
        "file": f"{SITE}/robots.txt",
        "key": "robots.txt",
        "proposal": {"action": "set", "file": filled.source.path, "key": "robots.obey", "value": False},
    }
    assert [reason["rule"] for reason in known["also"]] == ["Disallow: /*.html"]
    assert never["decided_by"]["rule"] == "Disallow: /*.html"
    assert allowed["decided_by"]["rule"] == "no link to it was followed"


def test_explain_when_the_source_never_ran_then_what_would_become_of_it(filled: FilledStore) -> None:
    never = filled.source.model_copy(update={"name": "never"})

    start, other = ask(filled, f"{SITE}/", never), ask(filled, "/other", never)

    assert start["verdict"] == "not in the index: the next run asks for it, as a start URL"
    assert start["decided_by"]["key"] == "start.urls"
    assert other["verdict"] == "not in the index: its source was never crawled; the rules would let it pass"


@pytest.mark.parametrize("user", ["me:hunter2@", "me@", "me:hunter2%40x@y@", "me:hunter2@x@"])
@pytest.mark.parametrize("begin", ["http://", "HTTP:", "http:\\\\"])
def test_explain_when_the_url_has_a_user_and_a_password_then_no_step_shows_them(
    filled: FilledStore, begin: str, user: str
) -> None:
    inputs = build_inputs(filled.project, filled.source)

    found = str(explain_url(filled.database, inputs, f"{begin}{user}{SITE.partition('//')[2]}/a").as_json())

    assert f"{SITE}/a" in found
    assert "hunter2" not in found
    assert "me@" not in found

"""The tables of a source file: what is taken, what is refused with file, key and value, and what an edit changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.config import Source
from searchcrawl.sources.effective import list_effective_values
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys, find_effect
from searchcrawl.sources.loading import build_index_filter, load_project, load_source
from searchcrawl.sources.secrets import redact
from tests.site.client import write_project

FORM = {"type": "form", "url": "http://www.acme.test/login", "username": "me", "password": "0pen-sesame"}
COOKIES = {"type": "cookies", "fields": {"session": "0pen-cookie"}}
BASIC = {"type": "basic", "username": "me", "password": "0pen-sesame"}
RENDER = {
    "mode": "auto", "wait_for": "#list > li", "quiet_ms": 100, "max_seconds": 8.0, "pages": 3,
    "block": ["stylesheet", "manifest"], "scroll": 4, "allow_hosts": ["cdn.example", "=api.example"],
    "max_page_mb": 16.0, "post": True,
    "actions": [{"match": "*/list/*", "click": "button.more"}, {"wait": "#list > li"}, {"scroll": 3}],
}  # fmt: skip


def loaded(folder: Path, **tables: Any) -> Source:
    write_project(folder, 80, **tables)
    return load_source(load_project(folder), "demo")


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("copies", {}),
        ("copies", {"scope": "off"}),
        ("copies", {"scope": "collection"}),
        ("copies", {"near": "off"}),
        ("copies", {"near": "remove"}),
        ("content", {}),
        ("content", {"mode": "all"}),
        ("content", {"keep": ["#a > p:not(.b), main", "[data-x='y' i]"], "drop": ["div > .ad"]}),
        ("render", {}),
        ("render", {"mode": "always"}),
        ("render", RENDER),
        ("login", BASIC),
        ("login", BASIC | {"type": "digest", "url": "https://www.acme.test/private/"}),
        ("login", FORM),
        (
            "login",
            FORM | {"form": "#login > form", "username_field": "user", "password_field": "pass", "check": "Log out"},
        ),
        ("login", FORM | {"fields": {"remember": "1", "empty": ""}}),
        ("login", COOKIES),
        ("login", {"type": "cookies", "url": "http://www.acme.test/agree"}),
    ],
)
def test_table_when_it_is_right_then_it_is_taken(tmp_path: Path, table: str, values: dict[str, Any]) -> None:
    source = loaded(tmp_path, **{table: values})

    assert getattr(source, table).model_dump(mode="json", exclude_defaults=True) == values


@pytest.mark.parametrize(
    ("table", "values", "message"),
    [
        ("copies", {"scope": "host"}, 'copies.scope: must be "source", "collection" or "off" (got "host")'),
        ("copies", {"scope": True}, "copies.scope: must be a string (got true)"),
        ("copies", {"near": "on"}, 'copies.near: must be "group", "remove" or "off" (got "on")'),
        ("copies", {"near": "remove", "scope": "off"}, 'copies.near: not with scope = "off" (got "remove")'),
        ("copies", {"nears": "off"}, "copies.nears: unknown key (did you mean near?)"),
        ("content", {"mode": "most"}, 'content.mode: must be "main" or "all" (got "most")'),
        ("content", {"keep": ["main", "p["]}, 'content.keep: not a CSS selector (got "p[")'),
        ("content", {"drop": ["div::before"]}, 'content.drop: not a CSS selector (got "div::before")'),
        ("content", {"drop": [""]}, 'content.drop: must not be empty (got "")'),
        ("content", {"drop": "nav"}, 'content.drop: must be a list (got "nav")'),
        ("content", {"keeps": ["p"]}, "content.keeps: unknown key (did you mean keep?)"),
        ("login", {"username": "me"}, "login.type: is required with username"),
        (
            "login",
            {"type": "ntlm"},
            'login.type: must be "basic", "digest", "form", "cookies" or "browser" (got "ntlm")',
        ),
        ("login", {"type": "basic", "username": "me"}, 'login.password: is required with type = "basic"'),
        ("login", {"type": "digest", "password": "x"}, 'login.username: is required with type = "digest"'),
        ("login", BASIC | {"username": "me:too"}, "login.username: must have no colon: it ends the name (RFC 7617)"),
        ("login", BASIC | {"check": "Log out"}, 'login.check: not with type = "basic"'),
        ("login", {"type": "form", "password": "x"}, 'login.url: is required with type = "form"'),
        ("login", FORM | {"url": "ftp://acme.test/"}, 'login.url: not an http or https URL (got "ftp://acme.test/")'),
        ("login", FORM | {"form": "form["}, 'login.form: not a CSS selector (got "form[")'),
        ("login", FORM | {"password": 1234}, "login.password: must be a string"),
        ("login", FORM | {"pasword": "x"}, "login.pasword: unknown key (did you mean password?)"),
        ("login", {"type": "cookies"}, 'login.fields: is required with type = "cookies", or url'),
        (
            "login",
            {"type": "cookies", "fields": {"session": "0pen; cookie"}},
            "login.fields: a cookie's name and value have no blanks, quotes, commas or semicolons",
        ),
        ("login", COOKIES | {"password": "0pen-sesame"}, 'login.password: not with type = "cookies"'),
        ("render", {"mode": "on"}, 'render.mode: must be "never", "auto" or "always" (got "on")'),
        ("render", {"wait_for": "p["}, 'render.wait_for: not a CSS selector (got "p[")'),
        ("render", {"quiet_ms": -1}, "render.quiet_ms: must not be negative (got -1)"),
        ("render", {"max_seconds": 0}, "render.max_seconds: must be more than 0 (got 0)"),
        ("render", {"pages": 0}, "render.pages: must be at least 1 (got 0)"),
        ("render", {"scroll": -1}, "render.scroll: must not be negative (got -1)"),
        (
            "render",
            {"block": ["script"]},
            'render.block: must be one of eventsource, font, image, manifest, media, other, stylesheet, texttrack, websocket (got "script")',
        ),
        ("render", {"block": ["font", "font"]}, 'render.block: names a value twice (got ["font", "font"])'),
        (
            "render",
            {"allow_hosts": ["https://cdn.example"]},
            'render.allow_hosts: not a host (got "https://cdn.example")',
        ),
        ("render", {"max_page_mb": 0}, "render.max_page_mb: must be more than 0 (got 0)"),
        ("render", {"post": "yes"}, 'render.post: must be true or false (got "yes")'),
        (
            "render",
            {"actions": {"click": "a"}},
            'render.actions: must be a list: write [[render.actions]] (got {"click": "a"})',
        ),
        ("render", {"actions": [{}]}, "render.actions[0].click: is required, or wait or scroll"),
        ("render", {"actions": [{"match": "*"}]}, "render.actions[0].click: is required, or wait or scroll"),
        (
            "render",
            {"actions": [{"click": "a", "scroll": 1}]},
            "render.actions[0].scroll: not together with click (got 1)",
        ),
        ("render", {"actions": [{"scroll": 0}]}, "render.actions[0].scroll: must be at least 1 (got 0)"),
        (
            "render",
            {"actions": [{"scroll": 1}, {"click": "a["}]},
            'render.actions[1].click: not a CSS selector (got "a[")',
        ),
        ("render", {"actions": [{"wait": ""}]}, 'render.actions[0].wait: must not be empty (got "")'),
        (
            "render",
            {"actions": [{"click": "a", "match": "re:("}]},
            'render.actions[0].match: not an RE2 expression: missing ): ( (got "re:(")',
        ),
        (
            "render",
            {"actions": [{"click": "a", "matches": "*"}]},
            "render.actions[0].matches: unknown key (did you mean match?)",
        ),
        ("render", {"modes": "auto"}, "render.modes: unknown key (did you mean mode?)"),
        ("keep", {"min_bytes": -1}, "keep.min_bytes: must not be negative (got -1)"),
        ("keep", {"min_bytes": 9, "max_bytes": 8}, "keep.max_bytes: must not be below min_bytes = 9 (got 8)"),
        ("keep", {"mime_types": "text/*"}, 'keep.mime_types: must be a list (got "text/*")'),
        ("keep", {"exclude_urls": ["re:("]}, "keep.exclude_urls: not an RE2 expression: missing ): ( (got 're:(')"),
        ("keep", {"include_names": ["re:("]}, "keep.include_names: not an RE2 expression: missing ): ( (got 're:(')"),
        ("keep", {"exclude_names": ["re:"]}, "keep.exclude_names: must not be empty (got 're:')"),
        ("keep", {"include_names": [" "]}, "keep.include_names: must not be empty (got ' ')"),
    ],
)
def test_table_when_something_is_wrong_then_file_key_and_value_are_named_and_no_secret_shown(
    tmp_path: Path, table: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, **{table: values})

    assert str(raised.value) == f"sources/demo.toml: {message}"
    assert "0pen" not in str(raised.value)


def test_copies_when_they_are_edited_then_nothing_is_fetched_and_texts_are_read_where_their_digests_are_needed() -> (
    None
):
    effects = [find_effect([key]) for key in ("copies.scope", "copies.near")]

    assert [(effect.reading, effect.answers, effect.links, effect.refusals) for effect in effects] == [
        (True, False, False, False),
        (False, False, False, False),
    ]


def test_c8_content_when_it_is_edited_then_texts_are_read_again_and_nothing_is_fetched(tmp_path: Path) -> None:
    before, after = (
        compute_fingerprint(source, versions={})
        for source in (loaded(tmp_path), loaded(tmp_path, content={"mode": "all", "drop": ["nav"]}))
    )
    changed = find_changed_keys(before, after)
    effect = find_effect(changed)

    assert changed == ["content.drop", "content.mode"]
    assert effect.reading
    assert effect.admission
    assert not effect.answers
    assert not effect.links


def test_login_when_shown_then_password_and_cookies_are_stars(tmp_path: Path) -> None:
    password = list_effective_values(
        load_project(write_project(tmp_path, 80, login=BASIC)), loaded(tmp_path, login=BASIC)
    )
    cookies = list_effective_values(load_project(tmp_path), loaded(tmp_path, login=COOKIES))

    assert password["login.password"] == {"value": "***", "origin": "sources/demo.toml"}
    assert password["login.username"]["value"] == "me"
    assert cookies["login.fields"]["value"] == {"session": "***"}
    assert "0pen" not in json.dumps([password, cookies])
    assert redact("Cookie: session=0pen-cookie, 0pen-sesame") == "Cookie: session=***, ***"


def test_password_when_it_comes_from_the_environment_then_its_reference_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_PASSWORD", "0pen-the-door")
    login = {**BASIC, "password": {"env": "DEMO_PASSWORD"}}

    source = loaded(tmp_path, login=login)

    assert source.login.password == "0pen-the-door"
    assert list_effective_values(load_project(tmp_path), source)["login.password"]["value"] == {"env": "DEMO_PASSWORD"}


def test_fingerprint_when_the_login_changes_then_another_user_counts_and_another_password_does_not(
    tmp_path: Path,
) -> None:
    prints = [
        compute_fingerprint(loaded(tmp_path, login=login), versions={})
        for login in (BASIC, BASIC | {"password": "another"}, BASIC | {"username": "you"})
    ]

    assert find_changed_keys(prints[0], prints[1]) == []
    assert find_changed_keys(prints[1], prints[2]) == ["login.username"]


def test_c11_render_when_nothing_is_said_then_no_page_is_rendered(tmp_path: Path) -> None:
    render = loaded(tmp_path).render

    assert (render.mode, render.quiet_ms, render.max_seconds, render.pages, render.scroll) == ("never", 300, 5.0, 2, 0)


def test_c11_render_when_it_is_edited_then_the_cache_says_nothing_about_the_pages(tmp_path: Path) -> None:
    before, after = (
        compute_fingerprint(source, versions={}) for source in (loaded(tmp_path), loaded(tmp_path, render=RENDER))
    )
    changed = find_changed_keys(before, after)

    assert changed == [f"render.{key}" for key in sorted(RENDER.keys() - {"pages"})]
    assert all(find_effect([key]).answers for key in changed)


def test_c11_render_when_only_more_pages_are_rendered_at_once_then_nothing_is_fetched_again(tmp_path: Path) -> None:
    before, after = (
        compute_fingerprint(loaded(tmp_path, render={"mode": "auto", "pages": n}), versions={}) for n in (1, 4)
    )

    assert before == after


def test_c10_actions_when_pages_are_opened_then_each_gets_those_that_name_it_in_order(tmp_path: Path) -> None:
    actions = [{"click": "#all"}, {"match": "http://a.example/List/*", "scroll": 2}, {"match": "re:x$", "wait": "#end"}]

    options = loaded(tmp_path, render={"actions": actions}).render

    def listed(url: str) -> list[tuple[str, str, int]]:
        return [(action.action, action.selector, action.scroll or 0) for action in options.list_actions(url)]

    assert listed("http://a.example/list/1") == [("click", "#all", 0), ("scroll", "", 2)]
    assert listed("http://b.example/x") == [("click", "#all", 0), ("wait", "#end", 0)]
    assert listed("http://b.example/") == [("click", "#all", 0)]


def test_c10_actions_when_their_order_is_edited_then_the_pages_are_fetched_again(tmp_path: Path) -> None:
    first, second = {"click": "#more"}, {"scroll": 2}
    before, after = (
        compute_fingerprint(loaded(tmp_path, render={"actions": actions}), versions={})
        for actions in ([first, second], [second, first])
    )

    assert find_changed_keys(before, after) == ["render.actions"]


def test_c10_budget_when_it_is_tiny_then_it_is_a_byte(tmp_path: Path) -> None:
    sizes = [loaded(tmp_path, render={"max_page_mb": mb}).render.max_page_bytes for mb in (1e-9, 0.5, 64)]

    assert sizes == [1, 1 << 19, 64 << 20]


def test_b8_keep_table_when_empty_then_nothing_is_filtered(tmp_path: Path) -> None:
    rules = build_index_filter(loaded(tmp_path, keep={}))

    assert not rules
    assert rules.meta_robots

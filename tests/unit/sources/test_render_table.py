"""The [render] table: which pages a browser renders (C10, C11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys, find_effect
from searchcrawl.sources.loading import load_project, load_source
from tests.site.client import write_project


def loaded(folder: Path, **render: Any) -> Source:
    write_project(folder, 80, render=render)
    return load_source(load_project(folder), "demo")


WHOLE = {
    "mode": "auto", "wait_for": "#list > li", "quiet_ms": 100, "max_seconds": 8.0, "pages": 3,
    "block": ["stylesheet", "manifest"], "scroll": 4, "allow_hosts": ["cdn.example", "=api.example"],
    "max_page_mb": 16.0, "post": True,
    "actions": [{"match": "*/list/*", "click": "button.more"}, {"wait": "#list > li"}, {"scroll": 3}],
}  # fmt: skip


@pytest.mark.parametrize("render", [{}, {"mode": "always"}, WHOLE])
def test_c11_render_when_it_is_right_then_is_taken(tmp_path: Path, render: dict[str, Any]) -> None:
    source = loaded(tmp_path, **render)

    assert source.render.model_dump(mode="json", exclude_defaults=True) == render


def test_c11_render_when_nothing_is_said_then_no_page_is_rendered(tmp_path: Path) -> None:
    render = loaded(tmp_path).render

    assert (render.mode, render.quiet_ms, render.max_seconds, render.pages, render.scroll) == ("never", 300, 5.0, 2, 0)


@pytest.mark.parametrize(
    ("render", "message"),
    [
        ({"mode": "on"}, 'render.mode: must be "never", "auto" or "always" (got "on")'),
        ({"wait_for": "p["}, 'render.wait_for: not a CSS selector (got "p[")'),
        ({"quiet_ms": -1}, "render.quiet_ms: must not be negative (got -1)"),
        ({"max_seconds": 0}, "render.max_seconds: must be more than 0 (got 0)"),
        ({"pages": 0}, "render.pages: must be at least 1 (got 0)"),
        ({"scroll": -1}, "render.scroll: must not be negative (got -1)"),
        ({"block": ["script"]}, "render.block: must be one of eventsource, font, image, "),
        ({"block": ["font", "font"]}, "render.block: names a value twice"),
        ({"allow_hosts": ["https://cdn.example"]}, "render.allow_hosts: "),
        ({"max_page_mb": 0}, "render.max_page_mb: must be more than 0 (got 0)"),
        ({"post": "yes"}, "render.post: must be true or false "),
        ({"actions": {"click": "a"}}, "render.actions: must be a list: write [[render.actions]] "),
        ({"actions": [{}]}, "render.actions[0].click: is required, or wait or scroll"),
        ({"actions": [{"match": "*"}]}, "render.actions[0].click: is required, or wait or scroll"),
        ({"actions": [{"click": "a", "scroll": 1}]}, "render.actions[0].scroll: not together with click"),
        ({"actions": [{"scroll": 0}]}, "render.actions[0].scroll: must be at least 1 (got 0)"),
        ({"actions": [{"scroll": 1}, {"click": "a["}]}, 'render.actions[1].click: not a CSS selector (got "a[")'),
        ({"actions": [{"wait": ""}]}, "render.actions[0].wait: must not be empty "),
        ({"actions": [{"click": "a", "match": "re:("}]}, "render.actions[0].match: not an RE2 expression: "),
        ({"actions": [{"click": "a", "matches": "*"}]}, "render.actions[0].matches: unknown key (did you mean match?)"),
        ({"modes": "auto"}, "render.modes: unknown key (did you mean mode?)"),
    ],
)
def test_c11_render_when_something_is_wrong_then_file_key_and_value_are_named(
    tmp_path: Path, render: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, **render)

    assert str(raised.value).startswith(f"sources/demo.toml: {message}")


def test_c11_render_when_it_is_edited_then_the_cache_says_nothing_about_the_pages(tmp_path: Path) -> None:
    before, after = (
        compute_fingerprint(source, versions={}) for source in (loaded(tmp_path), loaded(tmp_path, **WHOLE))
    )
    changed = find_changed_keys(before, after)

    assert changed == [f"render.{key}" for key in sorted(WHOLE.keys() - {"pages"})]
    assert all(find_effect([key]).answers for key in changed)


def test_c11_render_when_only_more_pages_are_rendered_at_once_then_nothing_is_fetched_again(tmp_path: Path) -> None:
    before, after = (compute_fingerprint(loaded(tmp_path, mode="auto", pages=n), versions={}) for n in (1, 4))

    assert before == after


def test_c10_actions_when_pages_are_opened_then_each_gets_those_that_name_it_in_order(tmp_path: Path) -> None:
    actions = [{"click": "#all"}, {"match": "http://a.example/List/*", "scroll": 2}, {"match": "re:x$", "wait": "#end"}]

    options = loaded(tmp_path, actions=actions).render

    def listed(url: str) -> list[tuple[str, str, int]]:
        return [(action.kind, action.selector, action.scroll or 0) for action in options.list_actions(url)]

    assert listed("http://a.example/list/1") == [("click", "#all", 0), ("scroll", "", 2)]
    assert listed("http://b.example/x") == [("click", "#all", 0), ("wait", "#end", 0)]
    assert listed("http://b.example/") == [("click", "#all", 0)]


def test_c10_actions_when_their_order_is_edited_then_the_pages_are_fetched_again(tmp_path: Path) -> None:
    first, second = {"click": "#more"}, {"scroll": 2}
    before, after = (
        compute_fingerprint(loaded(tmp_path, actions=actions), versions={})
        for actions in ([first, second], [second, first])
    )

    assert find_changed_keys(before, after) == ["render.actions"]


def test_c10_budget_when_it_is_tiny_then_it_is_a_byte(tmp_path: Path) -> None:
    sizes = [loaded(tmp_path, max_page_mb=mb).render.max_page_bytes for mb in (1e-9, 0.5, 64)]

    assert sizes == [1, 1 << 19, 64 << 20]

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

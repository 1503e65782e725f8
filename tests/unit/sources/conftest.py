"""A project without sources."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a project."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n")
    (tmp_path / "searchcrawl.toml").write_text('contact = "crawler@example.org"\n')
    (tmp_path / "sources").mkdir()
    return tmp_path

"""The settings module of a project, and what it says of spiders in Python; does without Scrapy as long as it can."""

from __future__ import annotations

import os
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from searchcrawl.environment import Variable
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.checking import quote_value
from searchcrawl.sources.files import has_spiders_folder, make_importable

SHIPPED_SETTINGS: Final = "searchcrawl.settings"


def find_settings_module(root: Path) -> str:
    """The module that the project's scrapy.cfg names, importable from the project's folder; raises ConfigurationError."""
    parser = ConfigParser()
    try:
        parser.read(root / "scrapy.cfg", encoding="utf-8")
    except (ConfigParserError, UnicodeDecodeError) as error:
        raise ConfigurationError("scrapy.cfg", "", str(error)) from error
    module = parser.get("settings", "default", fallback=SHIPPED_SETTINGS)
    make_importable(root)
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise ConfigurationError("scrapy.cfg", "settings.default", f"no such module (got {quote_value(module)})")
    return module


def find_name_clashes(root: Path) -> list[ConfigurationError]:
    """An error for each name that both a source and a spider in Python have, and for each module that cannot be loaded.

    Loads Scrapy only where the project has a settings module or spiders of its own.
    """
    try:
        module = os.environ.get(Variable.SETTINGS_MODULE) or find_settings_module(root)
        if module == SHIPPED_SETTINGS and not has_spiders_folder(root):
            return []
    except ConfigurationError as error:
        return [error]
    from searchcrawl.cli.scrapy_commands import load_settings  # noqa: PLC0415  # slow to load
    from searchcrawl.spiders.spider_loader import SourceSpiderLoader  # noqa: PLC0415  # slow to load

    try:
        loader = SourceSpiderLoader.from_settings(load_settings("sources"))
    except ConfigurationError as error:
        return [error]
    return [*loader.spider_errors, *loader.name_clashes]

"""Runs commands that need Scrapy: its own commands, and our commands that crawl."""

from __future__ import annotations

import os
import sys
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from scrapy.cmdline import execute
from scrapy.settings import Settings

from searchcrawl.cli import commands
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.checking import quote_value
from searchcrawl.sources.loading import find_project

#: These commands make a project or need none.
WITHOUT_PROJECT: Final = frozenset({"init", "quick"})
_OWN_SETTINGS: Final = "searchcrawl.settings"
_SETTINGS_VARIABLE: Final = "SCRAPY_SETTINGS_MODULE"


def execute_command(argv: list[str], name: str) -> None:
    """Runs a command as ``scrapy`` does, and exits with its code; raises ConfigurationError."""
    execute(argv, load_settings(name))


def load_settings(command: str) -> Settings:
    """The settings of the project, or ours where a command works without a project; raises ConfigurationError."""
    module = os.environ.get(_SETTINGS_VARIABLE)
    if module is None:
        try:
            root = find_project()
        except ConfigurationError:
            # The command itself reports the missing project, if it needs one.
            module = _OWN_SETTINGS
        else:
            module = _OWN_SETTINGS if command in WITHOUT_PROJECT else find_settings_module(root)
        # Scrapy asks this variable whether it is inside a project.
        os.environ[_SETTINGS_VARIABLE] = module
    settings = Settings()
    settings.setmodule(module, priority="project")
    if not settings["COMMANDS_MODULE"]:
        settings.set("COMMANDS_MODULE", commands.__name__, priority="project")
    return settings


def find_settings_module(root: Path) -> str:
    """The module that the project's scrapy.cfg names, importable from the project's folder; raises ConfigurationError."""
    parser = ConfigParser()
    try:
        parser.read(root / "scrapy.cfg", encoding="utf-8")
    except (ConfigParserError, UnicodeDecodeError) as error:
        raise ConfigurationError("scrapy.cfg", "", str(error)) from error
    module = parser.get("settings", "default", fallback=_OWN_SETTINGS)
    if str(root) not in sys.path:
        sys.path.append(str(root))
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise ConfigurationError("scrapy.cfg", "settings.default", f"no such module (got {quote_value(module)})")
    return module

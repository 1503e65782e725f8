"""Runs commands that need Scrapy: its own commands, and our commands that crawl."""

from __future__ import annotations

import os
from typing import Final

from scrapy.cmdline import execute
from scrapy.settings import Settings

from searchcrawl.cli import commands
from searchcrawl.cli.settings_module import OWN_SETTINGS, SETTINGS_VARIABLE, find_settings_module
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.own_code import ordinary_errors
from searchcrawl.sources.loading import find_project
from searchcrawl.sources.source_settings import list_own_defaults
from searchcrawl.spiders.python_modules import describe_broken

#: These commands make a project or need none.
WITHOUT_PROJECT: Final = frozenset({"init", "quick"})


def execute_command(argv: list[str], name: str) -> None:
    """Runs a command as ``scrapy`` does, and exits with its code; raises ConfigurationError."""
    settings = load_settings(name)
    if editor := os.environ.get("EDITOR"):
        # Scrapy looks there only where it loads the settings itself.
        settings["EDITOR"] = editor
    execute(argv, settings)


def load_settings(command: str) -> Settings:
    """The settings of the project, or ours where a command works without a project; raises ConfigurationError."""
    module = os.environ.get(SETTINGS_VARIABLE)
    if module is None:
        try:
            root = find_project()
        except ConfigurationError:
            # The command itself reports the missing project, if it needs one.
            module = OWN_SETTINGS
        else:
            module = OWN_SETTINGS if command in WITHOUT_PROJECT else find_settings_module(root)
        # Scrapy asks this variable whether it is inside a project.
        os.environ[SETTINGS_VARIABLE] = module
    settings = Settings()
    _load_module(settings, module)
    if not settings["COMMANDS_MODULE"]:
        settings.set("COMMANDS_MODULE", commands.__name__, priority="project")
    settings.setdict(list_own_defaults(), priority="default")
    return settings


def _load_module(settings: Settings, module: str) -> None:
    try:
        with ordinary_errors():
            settings.setmodule(module, priority="project")
    except Exception as error:
        # It is the project's own, and may raise anything.
        raise ConfigurationError("settings module", "", describe_broken(module, error)) from error

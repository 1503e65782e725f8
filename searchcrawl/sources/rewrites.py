"""``[[rewrite]]`` of a source: how links are changed before any rule is applied (K1)."""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Final

import re2
from pydantic import Field, model_validator

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.rules.rewriting import PatternRewriter, PluginRewriter, Rewriter, parse_replacement, re2_options
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import LIST, Check, PublicText, Table, refuse

_METHODS: Final = ("open", "rewrite", "close")
#: Characters that separate parameters or end a path or a query.
_NO_NAME: Final = frozenset("=&;/?# \t")


def _check_expression(text: str) -> str:
    try:
        re2.compile(text, re2_options())
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        refuse(f"not an RE2 expression: {reason}")
    return text


def _check_plugin(text: str) -> str:
    module, colon, name = text.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        refuse('must be "module:Class"')
    return text


def _check_parameter(text: str) -> str:
    if set(text) & _NO_NAME or not text.isprintable():
        refuse("must be the name of a parameter, with * for any characters")
    return text


ParameterNames = Annotated[tuple[Annotated[PublicText, Check(_check_parameter, "name of a parameter")], ...], LIST]


class Rewrite(Table):
    """One ``[[rewrite]]``: an expression and its replacement, or a plugin (UrlRewriter) as ``module:Class``."""

    match: Annotated[PublicText, Check(_check_expression, "RE2 expression")] | None = Field(
        None, description="An expression that is searched anywhere in the URL."
    )
    replace: Annotated[str, Privacy.PUBLIC] | None = Field(
        None, description=r"What the match is replaced by; `\1` is its first group."
    )
    plugin: Annotated[PublicText, Check(_check_plugin, "`module:Class`")] | None = Field(
        None, description="A class with the methods of `UrlRewriter`, in place of `match` and `replace`."
    )

    @model_validator(mode="after")
    def _check(self) -> Rewrite:
        if self.plugin is not None and (self.match is not None or self.replace is not None):
            refuse("not together with match and replace", key="plugin")
        if self.plugin is None and self.match is None:
            refuse("is required, or plugin", key="match")
        if self.plugin is None and self.replace is None:
            refuse("is required with match", key="replace")
        if self.match is not None and self.replace is not None:
            _check_groups(self.match, self.replace)
        return self


def _check_groups(match: str, replace: str) -> None:
    try:
        pieces = parse_replacement(replace)
    except ValueError as error:
        refuse(f"no such escape: {error}", key="replace")
    groups = re2.compile(match, re2_options()).groups
    wanted = max((piece for piece in pieces if isinstance(piece, int)), default=0)
    if wanted > groups:
        refuse(f"no group \\{wanted} in match", key="replace")


Rewrites = Annotated[tuple[Rewrite, ...], LIST]


def build_rewriters(rewrites: tuple[Rewrite, ...], *, file: str, root: Path) -> list[Rewriter]:
    """The rewriters in their order; raises ConfigurationError for a plugin that cannot be imported.

    Modules of plugins are found as Scrapy finds those of a project: ``root`` is looked into as well.
    """
    found: list[Rewriter] = []
    for number, rewrite in enumerate(rewrites):
        key = f"rewrite[{number}]"
        if rewrite.plugin is not None:
            plugin_class = _import_class(rewrite.plugin, file=file, key=f"{key}.plugin", root=root)
            found.append(PluginRewriter(plugin_class, rewrite.plugin, file=file, key=key))
        elif rewrite.match is not None and rewrite.replace is not None:
            found.append(PatternRewriter(rewrite.match, rewrite.replace, file=file, key=key))
    return found


def _import_class(plugin: str, *, file: str, key: str, root: Path) -> Any:
    module, _, name = plugin.partition(":")
    if str(root) not in sys.path:
        sys.path.append(str(root))
    try:
        found = attrgetter(name)(importlib.import_module(module))
    except Exception as error:
        # A module of a user may raise any error when it is loaded.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ConfigurationError(file, key, f'cannot be imported: {reason} (got "{plugin}")') from error
    if not isinstance(found, type):
        raise ConfigurationError(file, key, f'is no class (got "{plugin}")')
    missing = [method for method in _METHODS if not callable(getattr(found, method, None))]
    if missing:
        raise ConfigurationError(file, key, f'has no method {", ".join(missing)} (got "{plugin}")')
    return found

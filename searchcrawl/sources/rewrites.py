"""``[[rewrite]]`` of a source: how links are changed before any rule is applied (K1)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import re2
from pydantic import Field, model_validator

from searchcrawl.rules.rewriting import PatternRewriter, PluginRewriter, Rewriter, parse_replacement, re2_options
from searchcrawl.sources.plugin_classes import PluginName, import_class
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
    plugin: PluginName | None = Field(
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


def build_rewriters(rewrites: tuple[Rewrite, ...], *, file: str, root: Path, routes: bool) -> list[Rewriter]:
    """The rewriters in their order; raises ConfigurationError for a plugin that cannot be imported.

    Modules of plugins are found as Scrapy finds those of a project: ``root`` is looked into as well.
    """
    found: list[Rewriter] = []
    for number, rewrite in enumerate(rewrites):
        key = f"rewrite[{number}]"
        if rewrite.plugin is not None:
            plugin_class = import_class(rewrite.plugin, _METHODS, file=file, key=f"{key}.plugin", root=root)
            found.append(PluginRewriter(plugin_class, rewrite.plugin, file=file, key=key, routes=routes))
        elif rewrite.match is not None and rewrite.replace is not None:
            found.append(PatternRewriter(rewrite.match, rewrite.replace, file=file, key=key, routes=routes))
    return found

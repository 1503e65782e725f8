"""URL normalisation: a URL that was found is rewritten and stripped; the result is the identity of a row (K1; X-T2).

The boundary decides about the result, so no rewriter can lead past it. Another URL may be shown in its place (A4).
"""

from __future__ import annotations

import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import re2

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.items import Link
from searchcrawl.plugins import Rewritten, UrlRewriter
from searchcrawl.rules.archives import split_path
from searchcrawl.rules.decision import ALLOWED, Decision
from searchcrawl.urls import unescape_unreserved
from searchcrawl.user_code import ordinary_errors, show_error

logger = logging.getLogger(__name__)

#: The longest term that an index takes; a longer URL would be cut there.
MAX_DISPLAY_BYTES: Final = 32_766


class DisplayMap:
    """Prefixes of access URLs with their replacements; the longest prefix that matches is replaced.

    Both are URLs; those of files may be written in any way. The constructor raises InvalidUrl.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        prefixes = {urls.resolve_typed(access): urls.resolve(display, listed=True) for access, display in pairs}
        self._prefixes = sorted(prefixes.items(), key=lambda pair: -len(pair[0]))

    def resolve(self, access_url: str, own: str | None = None) -> str:
        """The display URL of an identity, the identity itself where no prefix matches; raises InvalidUrl.

        ``own`` is the display URL that a rewriter set for this row (K1); no prefix is replaced then.
        """
        if own is not None:
            return _check_display(own)
        for access, display in self._prefixes:
            if access_url.startswith(access):
                return _check_display(display + access_url[len(access) :])
        return access_url

    def show(self, access_url: str, own: str | None = None) -> str:
        """The display URL, or the access URL if the display URL is not valid."""
        try:
            return self.resolve(access_url, own)
        except InvalidUrl:
            return access_url


def _check_display(display: str) -> str:
    # Only a source with routes has one in its URLs.
    shown = urls.resolve(display, routes=True, listed=True)
    if len(shown.encode("utf-8", "surrogatepass")) > MAX_DISPLAY_BYTES:
        raise InvalidUrl(f"display URL of more than {MAX_DISPLAY_BYTES} bytes")
    return shown


#: Session and tracking names: the default of ``scope.strip_parameters``.
SESSION_NAMES: Final = ("jsessionid", "phpsessid", "aspsessionid*", "cfid", "cftoken", "utm_*", "gclid", "fbclid")
_ANY: Final = "[^=&;/?]*"
_SEPARATED: Final = re.compile("([&;])")


class Identity:
    """Removes parameters from URLs, in the query and in path segments (``;jsessionid=…``).

    ``names`` match whole names, without regard to case; ``*`` matches any characters. With ``routes`` a fragment that is a
    route is part of a URL (``scope.hash_routes``).
    """

    def __init__(self, names: Sequence[str] = (), *, routes: bool = False) -> None:
        self._names = tuple(names)
        self.routes = routes
        alternatives = "|".join(_build_expression(name) for name in names)
        ends = r"(?=[=&;/?]|$)"
        self._name = re.compile(alternatives, re.IGNORECASE)
        # A name may be written with escapes.
        self._suspect = re.compile(f"[?&;](?:(?:{alternatives}){ends}|[^=&;/?]*%)", re.IGNORECASE) if names else None
        self._in_path = re.compile(f";(?:{alternatives})(?:=[^;/]*)?(?=[;/]|$)", re.IGNORECASE)

    def resolve(self, text: str, base: str | None = None) -> str:
        """As ``urls.resolve``, with the routes of the source; raises InvalidUrl."""
        return urls.resolve(text, base, routes=self.routes)

    def strip(self, url: str) -> str:
        """The URL (an identity of ``urls.resolve``) without those parameters; the same URL where it has none.

        The other parameters keep their order; an empty query loses its ``?``.
        """
        if self.routes and urls.has_route(url):
            bare, route = urls.split_route(url)
            return self.strip(bare) + route
        if ("?" in url or ";" in url) and self._suspect is not None and self._suspect.search(url) is not None:
            # The path of a file in an archive is a name: it has no parameters, whatever its characters.
            outermost, path = split_path(url)
            kept = self._strip(outermost)
            # The name of the archive may be part of what is stripped.
            is_kept = not path or len(split_path(kept + path)[0]) <= len(kept)
            return kept + path if is_kept else self._strip(url)
        return url

    def find_name(self, url: str) -> str:
        """The first of the names that ``strip`` removes from a URL; empty where it removes none."""
        return next((name for name in self._names if Identity([name]).strip(url) != url), "")

    def _strip(self, url: str) -> str:
        start = url.find("/", 8)
        before, mark, query = url.partition("?")
        path = before[start:]
        if ";" in path:
            path = self._in_path.sub("", unescape_unreserved(path) if self._is_hidden_in(path) else path)
        kept = self._filter_query(query) if mark else ""
        return before[:start] + path + (mark + kept if kept or not query else "")

    def _is_hidden_in(self, path: str) -> bool:
        return "%" in path and self._in_path.search(unescape_unreserved(path)) is not None

    def _filter_query(self, query: str) -> str:
        """The query without those parameters; each other parameter keeps the separator before it."""
        pieces = _SEPARATED.split(query)
        kept = [
            separator + parameter
            for separator, parameter in zip(["", *pieces[1::2]], pieces[::2], strict=True)
            if not self._is_stripped(parameter)
        ]
        text = "".join(kept)
        # The first parameter has no separator.
        return text[1:] if text[:1] in {"&", ";"} and kept[0] else text

    def _is_stripped(self, parameter: str) -> bool:
        name = parameter.partition("=")[0]
        return bool(name) and self._name.fullmatch(unescape_unreserved(name)) is not None


def _build_expression(name: str) -> str:
    """An expression for a name with stars, in linear time.

    What stands between two stars is taken where it comes first, and is never looked for again: any later place leaves
    less for the rest.
    """
    first, *others = map(re.escape, name.split("*"))
    if not others:
        return first
    return first + "".join(f"(?>{_ANY}?{piece})" for piece in others[:-1] if piece) + _ANY + others[-1]


#: How many results are remembered: links repeat from page to page.
_MAX_REMEMBERED: Final = 20_000
#: How many errors of a plugin are logged in a run; all are counted.
_MAX_LOGGED: Final = 20


class NormalisedUrl(NamedTuple):
    """The identity of a URL that was found, after the rewriters.

    ``display`` and ``found_as`` are those of ``items.Link``. If ``code`` is not 0, a rewriter discards the link by the
    rule of ``decision``; then ``url`` is the identity of the URL as it was found.
    """

    url: str
    display: str | None = None
    found_as: str | None = None
    code: int = 0
    decision: Decision = ALLOWED
    error: str | None = None

    @property
    def link(self) -> Link:
        return Link(self.url, False, self.display, self.found_as)


class Discarded(Exception):
    """A rewriter discards a link, by the rule of ``decision``."""

    def __init__(self, decision: Decision, *, code: int = Code.OUTSIDE_BOUNDARY, error: str | None = None) -> None:
        self.decision = decision
        self.code = code
        self.error = error
        super().__init__(decision.rule)


class Rewriter:
    """One ``[[rewrite]]``."""

    #: whether the result depends on nothing but the URL, so that it can be remembered
    by_url_alone = True

    def rewrite(self, url: str, referrer: str | None) -> Rewritten:
        """Rewrites a URL; raises Discarded."""
        raise NotImplementedError

    def open(self, source: str) -> None:
        """Is called when a run begins; raises ConfigurationError."""

    def close(self) -> None:
        """Is called when the run has ended."""


class PatternRewriter(Rewriter):
    """``match`` and ``replace``: each match of the expression, anywhere in the URL, is replaced."""

    def __init__(self, match: str, replace: str, *, file: str = "", key: str = "rewrite", routes: bool = False) -> None:
        self._search = re2.compile(match, re2_options())
        self._pieces = parse_replacement(replace)
        self._routes = routes
        self._decision = Decision(False, match, file, f"{key}.match")

    def rewrite(self, url: str, referrer: str | None) -> Rewritten:
        position = 0
        parts: list[str] = []
        for match in self._search.finditer(url):
            parts.append(url[position : match.start()])
            parts += [piece if isinstance(piece, str) else match.group(piece) or "" for piece in self._pieces]
            position = match.end()
        if not parts:
            return Rewritten(url)
        text = "".join(parts) + url[position:]
        if not text:
            raise Discarded(self._decision)
        try:
            return Rewritten(urls.resolve(text, routes=self._routes))
        except InvalidUrl as error:
            raise Discarded(self._decision, code=Code.MALFORMED_URL, error=f"rewritten to {error}") from error


class PluginRewriter(Rewriter):
    """Calls a class of the user: a plugin. ``name`` is its ``module:Class`` as in the source file."""

    by_url_alone = False

    def __init__(
        self,
        plugin_class: Callable[[], UrlRewriter],
        name: str,
        *,
        file: str = "",
        key: str = "rewrite",
        routes: bool = False,
    ) -> None:
        self._plugin_class = plugin_class
        self._routes = routes
        self._name = name
        self._file = file
        self._key = f"{key}.plugin"
        self._discards = Decision(False, f"discarded by plugin {name}", file, self._key)
        self._fails = Decision(False, f"error in plugin {name}", file, self._key)
        self._plugin: UrlRewriter | None = None
        # The reactor calls it for redirects and for the targets of refreshes and canonical links, the writer thread for
        # links and sitemaps, and a helper thread for start URLs and for rows that are checked anew.
        self._one_at_a_time = threading.RLock()
        #: errors of this run
        self.errors = 0

    def open(self, source: str) -> None:
        try:
            with ordinary_errors():
                self._plugin = self._plugin_class()
                self._plugin.open(source)
        except Exception as error:
            raise ConfigurationError(
                self._file, self._key, f"{self._name} cannot begin: {show_error(error)}"
            ) from error

    def close(self) -> None:
        plugin, self._plugin = self._plugin, None
        if plugin is None:
            return
        if self.errors:
            logger.warning("plugin %s failed at %d links; they are discarded", self._name, self.errors)
        try:
            with ordinary_errors():
                plugin.close()
        except Exception:
            logger.exception("plugin %s failed to close", self._name)

    def rewrite(self, url: str, referrer: str | None) -> Rewritten:
        try:
            with self._one_at_a_time, ordinary_errors():
                if self._plugin is None:
                    raise RuntimeError("the plugin is closed")
                rewritten = self._plugin.rewrite(url, referrer=referrer)
            if rewritten is None:
                raise Discarded(self._discards)
            return self._check(rewritten)
        except Discarded:
            raise
        except InvalidUrl as error:
            raise Discarded(self._discards, code=Code.MALFORMED_URL, error=f"rewritten to {error}") from error
        except Exception as error:
            self._report_error(url, error)
            raise Discarded(self._fails, error=_one_line(f"{self._name}: {show_error(error)}")) from error

    def _check(self, rewritten: Any) -> Rewritten:
        access, display = rewritten.access_url, rewritten.display_url
        if not isinstance(access, str) or not isinstance(display, str | None):
            raise TypeError(f"access_url and display_url must be strings (got {access!r}, {display!r})")
        return Rewritten(urls.resolve(access, routes=self._routes), None if display == access else display or None)

    def _report_error(self, url: str, error: Exception) -> None:
        self.errors += 1
        if self.errors <= _MAX_LOGGED:
            more = " (its further errors are counted only)" if self.errors == _MAX_LOGGED else ""
            logger.warning("plugin %s failed, %s is discarded: %s%s", self._name, url, show_error(error), more)


class Rewriting:
    """The URL normalisation of a source: its rewriters in the order of its file, then its Identity."""

    def __init__(self, rewriters: Sequence[Rewriter] = (), identity: Identity | None = None) -> None:
        self._rewriters = tuple(rewriters)
        self.identity = identity or Identity()
        self._by_url_alone = all(rewriter.by_url_alone for rewriter in rewriters)
        self._remembered: dict[str, NormalisedUrl] = {}

    @property
    def rewrites(self) -> bool:
        """Whether there is any rewriter."""
        return bool(self._rewriters)

    @property
    def displays(self) -> bool:
        """Whether a rewriter may set display URLs."""
        return not self._by_url_alone

    @property
    def plugin_errors(self) -> Counter[str]:
        """The number of links at which each plugin failed in this run, by its name."""
        plugins = [rewriter for rewriter in self._rewriters if isinstance(rewriter, PluginRewriter)]
        return Counter({plugin._name: plugin.errors for plugin in plugins if plugin.errors})

    def open(self, source: str) -> None:
        """Opens all rewriters for a run of ``source``; raises ConfigurationError for a plugin that cannot begin."""
        for number, rewriter in enumerate(self._rewriters):
            try:
                rewriter.open(source)
            except ConfigurationError:
                for opened in self._rewriters[:number]:
                    opened.close()
                raise

    def close(self) -> None:
        """Closes all rewriters; may be called twice."""
        for rewriter in self._rewriters:
            rewriter.close()

    def normalise(self, url: str, referrer: str | None = None) -> NormalisedUrl:
        """Normalises a URL (one of ``urls.resolve``) that was found on the page ``referrer``."""
        if not self._rewriters:
            return NormalisedUrl(self.identity.strip(url))
        if not self._by_url_alone:
            return self._rewrite(url, referrer)
        normalised = self._remembered.get(url)
        if normalised is None:
            normalised = self._rewrite(url, referrer)
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[url] = normalised
        return normalised

    def normalise_links(
        self, links: Iterable[Link], referrer: str | None = None
    ) -> tuple[list[Link], list[NormalisedUrl]]:
        """Normalises the links of the page ``referrer``; returns the links that are kept, and the discarded ones.

        Each target comes once, in the order of its first link, and is nofollow only if all its links are. A link that is
        nofollow is left out where a rewriter discards it: it is not followed anyway, so it needs no row.
        """
        kept: dict[str, Link] = {}
        discarded: dict[str, NormalisedUrl] = {}
        for link in links:
            normalised = self.normalise(link.url, referrer)
            before = kept.get(normalised.url)
            if normalised.code:
                if not link.nofollow:
                    discarded.setdefault(normalised.url, normalised)
            elif before is None or (before.nofollow and not link.nofollow):
                texts = link.texts if before is None else before.texts + link.texts
                kept[normalised.url] = Link(
                    normalised.url, link.nofollow, normalised.display, normalised.found_as, texts
                )
            elif link.texts:
                kept[normalised.url] = before._replace(texts=before.texts + link.texts)
        return list(kept.values()), list(discarded.values())

    def _rewrite(self, url: str, referrer: str | None) -> NormalisedUrl:
        access, shown = url, None
        try:
            for rewriter in self._rewriters:
                rewritten = rewriter.rewrite(access, referrer)
                access, shown = rewritten.access_url, rewritten.display_url or shown
        except Discarded as discarded:
            return NormalisedUrl(
                self.identity.strip(url), None, None, discarded.code, discarded.decision, discarded.error
            )
        identity = self.identity.strip(access)
        return NormalisedUrl(identity, _limit_display(shown, identity, self.identity), None if access == url else url)


def _limit_display(shown: str | None, url: str, identity: Identity) -> str | None:
    """The display URL for the row; a text that is no URL is kept as well, within limits (1010)."""
    if shown is None:
        return None
    try:
        resolved = identity.resolve(shown)
    except InvalidUrl:
        return shown.replace("\0", "\ufffd")[:1000].encode("utf-8", "replace").decode()
    return None if resolved == url else resolved[: MAX_DISPLAY_BYTES + 1]


def re2_options() -> re2.Options:
    """Options for the expressions of users: RE2 logs no errors, as our own messages name them."""
    options = re2.Options()
    options.log_errors = False
    return options


def parse_replacement(text: str) -> tuple[str | int, ...]:
    r"""The pieces of a ``replace``: texts, and groups for ``\0`` to ``\9``; ``\\`` is a backslash. Raises ValueError."""
    pieces: list[str | int] = []
    rest = iter(text)
    for character in rest:
        if character != "\\":
            pieces.append(character)
            continue
        following = next(rest, "")
        if following.isascii() and following.isdigit():
            pieces.append(int(following))
        elif following == "\\":
            pieces.append("\\")
        else:
            raise ValueError(f"\\{following}")
    return tuple(pieces)


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text[:600]).split())[:300]

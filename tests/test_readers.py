"""Whatever takes bytes of strangers has an entry in ``tests.readers``, or is called by one that has (X-R13).

It is found in the syntax tree: regular expressions anywhere in the package, and public functions that take bytes,
headers, answers or nodes, or, where nearly all text is from outside, text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Final

import pytest

from tests.reach import ROOT, Place, Reach, read_module
from tests.readers import MODULES, READERS

#: Types of what comes from outside.
_TYPES: Final = frozenset(
    {"bytes", "Body", "LargeBody", "memoryview", "Headers", "Response", "ClientResponse", "LexborNode"}
)
#: What such text is called.
_NAMES: Final = frozenset(
    {
        "text",
        "url",
        "href",
        "value",
        "content",
        "label",
        "reference",
        "line",
        "given",
        "words",
        "values",
        "header",
        "body",
    }
)
_PACKAGES: Final = (
    *("html", "http", "robots", "sitemaps", "login", "convert", "urls", "rules", "soft404", "documents", "politeness"),
    *("index", "terminal", "scheduling", "render", "kinds"),
)
#: There text is what the owner wrote, or the index has.
_OWN_TEXT: Final = ("http", "index", "politeness", "documents", "scheduling")
_EXPRESSIONS: Final = frozenset(
    {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
)
#: An expression that repeats nothing more often than this takes constant time at each place.
_FEW: Final = 100

#: What needs no entry, and why.
EXCEPTIONS: Final = {
    "searchcrawl.sources.*": "reads what the owner wrote",
    "searchcrawl.cli.*": "reads what the owner types, and snippets of 240 characters",
    "searchcrawl.rules.rewriting:PluginRewriter.*": "calls what the owner wrote",
    "searchcrawl.index.local.search:build_hit_pattern": "reads what the owner searches for",
    "searchcrawl.index.solr.query:_prefix": "reads what the owner searches for",
    "searchcrawl.index.local.search:_WORD": "reads what the owner searches for",
    "searchcrawl.queries.search:_read_faults": "reads what the owner searches for",
    "searchcrawl.index.solr.receiver:_MARKED": "reads words between marks, which are no part of a word",
    "searchcrawl.index.forms:_STEMMED": "reads what the owner searches for",
    "searchcrawl.index.local.receiver:_OF_SYSTEM": "reads messages of the library of the index",
    "searchcrawl.index.solr.transport:SolrSession.*": "hands answers on to readers",
    "searchcrawl.rules.week_window:*": "reads what the owner wrote",
    "searchcrawl.rules.lifecycle:Failures.parse": "reads what the store has: written by itself",
    "searchcrawl.rules.lifecycle:parse_unread": "reads what the store has: written by itself",
    "searchcrawl.rules.rendering:parse": "reads what the store has: written by itself",
    "searchcrawl.queries.explain:_MORE_THAN": "reads messages of its own, of bounded length",
    "searchcrawl.queries.explain_reasons:*": "reads keys and rules that the owner wrote",
    "searchcrawl.queries.source_findings:_TYPE": "reads what the owner wrote",
    "searchcrawl.extensions.watch_extension:_AMOUNT": "reads a file of the operating system",
    "searchcrawl.store.engine.written_tables:_WRITES": "reads statements of its own",
    "searchcrawl.cache.folder:_SEGMENT_NAME": "reads names of its own files",
    "searchcrawl.http.*_middleware:*.process_response": "hands headers and bodies on to readers",
    "searchcrawl.kinds.web.login.*_middleware:*.process_response": "hands headers and bodies on to readers",
    "searchcrawl.kinds.web.login.login_middleware:SessionLogin.process_rendered": "hands headers and bodies on to readers",
    "searchcrawl.http.visit_end:OutcomeMiddleware.process_response": "hands headers on to readers",
    "searchcrawl.http.large_response:*": "hands bodies on",
    "searchcrawl.http.replay_middleware:find_further": "hands answers of the cache on",
    "searchcrawl.kinds.web.login.session:LoginSession.*": "hands URLs and pages on to readers",
    "searchcrawl.convert.conversion_pool:ConversionPool.submit": "hands bodies on to a worker process",
    "searchcrawl.convert.archive_shelf:ArchiveShelf.*": "hands bodies and headers on to a worker process",
    "searchcrawl.convert.archive_middleware:ArchiveMiddleware.process_response": "hands bodies on to the shelf",
    "searchcrawl.render.*wall:*": "hands URLs and headers on to readers",
    "searchcrawl.render.browser_request:resolve": "hands URLs on to readers",
    "searchcrawl.render.browser:Browser.render": "hands an answer on to the browser",
    "searchcrawl.render.renderer:Renderer.render": "hands an answer on to the browser",
    "searchcrawl.render.renderer:Verdicts.*": "hands URLs on to the rules",
    "searchcrawl.render.*_middleware:*.process_response": "hands bodies on to readers",
    "searchcrawl.render.render_middleware:RenderMiddleware.process_response": "hands bodies on to readers",
    "searchcrawl.http.python_spider_handler:PythonSpiderHandler.answer_browser": "hands bodies and headers on to readers",
    "searchcrawl.render.browser_handler:SpiderProxy.find_failure": "hands URLs on to readers",
    "searchcrawl.robots.files:*": "hands bodies on to the parser",
    "searchcrawl.kinds.web.sitemaps.fetching:fetch_sitemap": "hands URLs on to the requests",
    "searchcrawl.kinds.web.sitemaps.queue:*": "hands URLs on",
    "searchcrawl.kinds.web.login.cookie_jar:CookieJar.set": "takes what the owner wrote",
    "searchcrawl.kinds.file.local.jail:*": "hands names on to the operating system",
    "searchcrawl.kinds.file.local.permissions:*": "hands paths on to the operating system, and reads what the kernel says",
    "searchcrawl.kinds.file.roots:open_root": "takes what the owner wrote",
    "searchcrawl.kinds.file.names:join": "takes what the owner wrote",
    "searchcrawl.kinds.file.scope:FolderScope.find_refusal": "hands URLs on to the rules",
    "searchcrawl.kinds.file.selection:find_refusal_on": "hands names on to the rules",
    "searchcrawl.kinds.file.remote.smb_requests:*": "hands handles on to the server, and answers on to readers",
    "searchcrawl.kinds.file.remote.smb_structures:build_*": "takes handles of 16 bytes",
    "searchcrawl.kinds.file.remote.walking:names_it": "compares names",
    "searchcrawl.kinds.file.remote.web_client:WebClient.send": "hands answers on to readers",
    "searchcrawl.kinds.file.remote.webdav_resources:Facts.describes": "hands headers on to readers",
    "searchcrawl.kinds.listing:StoredMarks.*": "asks the store",
    "searchcrawl.kinds.table.config:*": "reads what the owner wrote",
    "searchcrawl.kinds.table.lister:Mark.read": "reads what the store has: written by itself",
    "searchcrawl.release:*": "reads files of this copy, and what git says of them",
    "searchcrawl.terminal:GuardedStream.write": "hands text on to to_lines",
}


@cache
def reach_of_readers() -> Reach:
    return Reach(Place(reader.read.__module__, reader.name) for reader in READERS)


@cache
def findings() -> tuple[tuple[Place, str], ...]:
    """All places that need a reader, with what is found there."""
    return tuple(_find())


def _find() -> Iterator[tuple[Place, str]]:
    for place, node in definitions():
        if takes_outside(place, node):
            yield place, "takes what comes from outside"
        yield from ((place, ast.unparse(call)[:80]) for call in expressions(node))


def definitions() -> Iterator[tuple[Place, ast.AST]]:
    for path in sorted((ROOT / "searchcrawl").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        module = read_module(name)
        assert module is not None
        yield from ((Place(name, defined), node) for defined, nodes in module.defined.items() for node in nodes)


def takes_outside(place: Place, node: ast.AST) -> bool:
    """Whether it is a public function of such a package that takes what comes from outside."""
    package = f"{place.module}.".removeprefix("searchcrawl.").removeprefix("kinds.web.").split(".")[0]
    public = not any(part.startswith("_") for part in place.name.split("."))
    if package not in _PACKAGES or not public or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        types = set(re.findall(r"\w+", ast.unparse(argument.annotation))) if argument.annotation else set()
        if types & _TYPES or (package not in _OWN_TEXT and "str" in types and argument.arg in _NAMES):
            return True
    return False


def expressions(node: ast.AST) -> Iterator[ast.Call]:
    """Calls of the modules for regular expressions; those that repeat little are left out."""
    for call in ast.walk(node):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id in {"re", "re2"}
            and call.func.attr in _EXPRESSIONS
            and not (isinstance(call.args[0], ast.Constant) and _repeats_little(call.args[0].value))
        ):
            yield call


def _repeats_little(expression: str | bytes) -> bool:
    parser = re._parser  # type: ignore[attr-defined]
    low, high = parser.parse(expression).getwidth()
    return high - low <= _FEW


def is_covered(place: Place) -> bool:
    return place in reach_of_readers().places or any(fnmatchcase(str(place), exception) for exception in EXCEPTIONS)


def test_functions_and_expressions_when_they_read_outside_bytes_then_have_a_reader() -> None:
    strays = {f"{place}: {what}" for place, what in findings() if not is_covered(place)}

    assert strays == set(), "declare how they are called in tests/readers/, or say here why not"


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_exception_when_it_is_listed_then_is_needed(exception: str) -> None:
    reached = reach_of_readers().places

    assert any(fnmatchcase(str(place), exception) and place not in reached for place, _ in findings())


def test_reach_when_it_follows_names_then_finds_what_is_called_and_nothing_else() -> None:
    reach = Reach([Place("tests.readers.headers", "refresh")])
    found = {str(place) for place in reach.places}

    assert "searchcrawl.html.metas:_TIME" in found
    assert "searchcrawl.html.metas:_read_target" in found
    assert "searchcrawl.html.metas:read_robots_directives" not in found
    assert "searchcrawl.kinds.web.login.cookie_jar:CookieJar.store" not in found


def test_function_when_it_is_new_then_is_found() -> None:
    node = ast.parse("def read_anything(line: str, raw: bytes) -> None: ...").body[0]
    pattern = ast.parse("_NEW = re.compile(r'(a+)+$')").body[0]
    short = ast.parse("_SHORT = re.compile('[a-z]{2,3}')").body[0]

    assert takes_outside(Place("searchcrawl.html.new", "read_anything"), node)
    assert not takes_outside(Place("searchcrawl.html.new", "_read_anything"), node)
    assert not is_covered(Place("searchcrawl.html.new", "read_anything"))
    assert len(list(expressions(pattern))) == 1
    assert not any(expressions(short))


def test_readers_when_they_are_declared_then_are_all_listed() -> None:
    declared = {
        node.name
        for module in MODULES
        for node in ast.parse((ROOT / module.__name__.replace(".", "/")).with_suffix(".py").read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    }

    assert {reader.name for reader in READERS} == declared

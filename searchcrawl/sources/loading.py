"""Loads the files of a project, and builds from a source the rules that decide about its URLs and pages.

A broken searchcrawl.toml stops everything, a broken source file that source only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from searchcrawl import urls
from searchcrawl.exceptions import ConfigurationError, InvalidFile, InvalidUrl, NotAvailableYet, UnknownSource
from searchcrawl.kind import load_named
from searchcrawl.rules.attribute_values import AttributeMap, Mapped
from searchcrawl.rules.boundary import NO_LIMITS, Boundary
from searchcrawl.rules.forgotten import Forgotten
from searchcrawl.rules.index_filter import IndexFilter
from searchcrawl.rules.rewriting import DisplayMap, Identity, PatternRewriter, PluginRewriter, Rewriter, Rewriting
from searchcrawl.rules.url_rules import HostScope
from searchcrawl.sources import project
from searchcrawl.sources.attribute_table import find_clashes
from searchcrawl.sources.checking import (
    guess,
    is_about,
    join_errors,
    join_key,
    leave_out_broken,
    quote_value,
    read_known_keys,
    read_toml,
    validate,
)
from searchcrawl.sources.config import STANDARD, Origin, Source, SourceFile
from searchcrawl.sources.effective import (
    OPTION,
    hide_plain_secrets,
    list_layers,
    merge_layers,
    name_option,
)
from searchcrawl.sources.fetch_tables import TlsFiles, find_login_errors
from searchcrawl.sources.files import find_no_file, has_source_file, list_source_files
from searchcrawl.sources.forgotten_list import read_list
from searchcrawl.sources.plugin_classes import (
    find_component_errors,
    find_error,
    import_class,
    import_converter,
    import_spider,
)
from searchcrawl.sources.principals import find_principals_errors
from searchcrawl.sources.project import FILE, Project, ProjectFile
from searchcrawl.sources.receivers import (
    find_feed_errors,
    find_receiver_errors,
    find_shared_files,
    find_unknown_receivers,
)
from searchcrawl.sources.secrets import find_secrets, replace_secrets
from searchcrawl.sources.source_settings import list_refused_settings
from searchcrawl.terminal import to_one_line

T = TypeVar("T")

PROJECT_VARIABLE: Final = "SEARCHCRAWL_PROJECT"
_NAME: Final = re.compile(r"[a-z0-9_-]+")
#: The keys of ``[scope]`` that are no argument of ``Boundary``.
_NOT_ABOUT_SINGLE_URLS: Final = frozenset(
    {"host", "follow_links", "max_urls", "strip_parameters", "max_urls_per_pattern", "trap_after"}
)
#: The methods of a class that rewrites URLs.
_OF_REWRITER: Final = ("open", "rewrite", "close")


def find_project(start: Path | None = None) -> Path:
    """The folder of the project: SEARCHCRAWL_PROJECT, or that of the scrapy.cfg found upwards from ``start``.

    The search begins in the working directory if ``start`` is None. Raises ConfigurationError if there is no project.
    """
    named = os.environ.get(PROJECT_VARIABLE)
    if named:
        if not Path(named).is_dir():
            raise ConfigurationError(PROJECT_VARIABLE, "", f"is not a folder (got {quote_value(named)})")
        return Path(named).resolve()
    try:
        here = (start or Path.cwd()).resolve()
    except OSError as error:
        raise ConfigurationError("scrapy.cfg", "", f"the working folder is gone ({error.strerror})") from error
    for folder in (here, *here.parents):
        if (folder / "scrapy.cfg").is_file():
            return folder
    raise ConfigurationError("scrapy.cfg", "", f"no project here or above: searchcrawl init DIR, or {PROJECT_VARIABLE}")


def has_project_file() -> bool:
    """Whether there is a project with a searchcrawl.toml, good or broken."""
    try:
        return (find_project() / FILE).exists()
    except ConfigurationError:
        return False


def load_project(root: Path) -> Project:
    """The project in ``root``; raises ConfigurationError, or InvalidFile with every error of the file."""
    return _require_no_errors(*read_project(root))


def read_project(root: Path) -> tuple[Project | None, Sequence[ConfigurationError]]:
    """The project in ``root``, without what is wrong, if it can be read at all, and every error of its file.

    Raises ConfigurationError for a file that cannot be read.
    """
    # Neither a database nor an index can be named that lies below any other bytes.
    if os.fsencode(root) != str(root).encode("utf-8", "replace"):
        message = f"the path of the project is not UTF-8, or the locale is not (got {quote_value(str(root))})"
        raise ConfigurationError(project.FILE, "", message)
    raw = read_toml(root / project.FILE, project.FILE)
    tables, errors = read_known_keys(ProjectFile, raw, file=project.FILE, root=root)
    extra = {"root": root, "written": tables, "forgotten": read_list(root)}
    for table, settings in _list_shared_settings(tables):
        errors = join_errors(errors, list_refused_settings(settings, file=project.FILE, above=table))
    loaded, more = validate(Project, tables, file=project.FILE, extra=extra)
    if loaded is None:
        return None, join_errors(errors, more)
    hide_plain_secrets(loaded, of_file=ProjectFile)
    return loaded, join_errors(errors, more + find_project_errors(loaded))


def _list_shared_settings(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The settings of ``[defaults]`` and of each named set, with the name of their table."""
    named = tables.get("parameters")
    sets = named.items() if isinstance(named, Mapping) else ()
    for place, values in (("defaults", tables.get("defaults")), *((join_key(("parameters", n)), v) for n, v in sets)):
        if isinstance(values, Mapping):
            yield place, values.get("settings")


def load_source(project: Project, name: str, *, overrides: Mapping[str, Any] | None = None) -> Source:
    """One source of the project; raises UnknownSource, ConfigurationError, or InvalidFile with every error of the file.

    ``overrides`` are tables of a command line, which go before the file. If the source has attributes or feeds, all other
    sources are read as well: an attribute has the same type in all of them, and each feed a file of its own.
    """
    try:
        source = _load_source(project, name, overrides or {})
    except ConfigurationError as error:
        if not overrides:
            raise
        alone = partial(_load_source, project, name, {})
        return _require_no_errors(None, name_option(error, alone, file=f"sources/{name}.toml"))
    if source.attributes.types_in_use() or source.feeds:
        others, _ = _load_all(project)
        others[name] = source
        clashing = _find_clashes(project, others)
        _require_no_errors(source, [error for of_source, error in clashing if of_source == source.name])
    return source


def _load_source(project: Project, name: str, overrides: Mapping[str, Any]) -> Source:
    if not _NAME.fullmatch(name) or not has_source_file(project.root, name):
        raise UnknownSource(f"unknown source: {name}")
    file = f"sources/{name}.toml"
    own, errors = _read_tables(project, read_toml(project.sources_dir / f"{name}.toml", file), file)
    given, wrong = _read_tables(project, overrides, OPTION)
    chosen, unknown = _choose_set(project, {**own, **given}, OPTION if "parameters" in given else file)
    layers = list_layers(project, own, file=file, parameters=chosen, overrides=given)
    values, origins = merge_layers(layers)
    secrets = list(find_secrets(values))
    references = {place: secret.reference for place, secret in secrets}
    extra = {"name": name, "path": file, "folder": project.root, "origins": origins, "references": references}
    extra |= {"forgotten": project.forgotten, "user_converters": dict(project.converters)}
    loaded, more = validate(Source, values, file=file, extra=extra)
    errors = join_errors([*errors, *wrong, *unknown], more)
    sound, broken = leave_out_broken(values, errors)
    rest = loaded if not more else validate(Source, sound, file=file, extra=extra)[0]
    # What a kind of source that comes later needs, nobody can say.
    is_later = any(error.key == "type" and isinstance(error, NotAvailableYet) for error in errors)
    if rest is not None and not is_later:
        errors += [
            ConfigurationError(error.file, error.key, replace_secrets(error.message, (secret for _, secret in secrets)))
            for error in _find_errors(project, rest)
            if not is_about(error.key, broken)
        ]
    source = _require_no_errors(loaded, errors)
    hide_plain_secrets(source, of_file=SourceFile)
    return source


def _read_tables(
    project: Project, raw: Mapping[str, Any], file: str
) -> tuple[dict[str, Any], list[ConfigurationError]]:
    """The known tables of a source file or of ``--set``, with every error that a table shows by itself."""
    tables, errors = read_known_keys(SourceFile, raw, file=file, root=project.root)
    return tables, join_errors(errors, list_refused_settings(tables.get("settings"), file=file))


def _choose_set(project: Project, own: Mapping[str, Any], file: str) -> tuple[str, list[ConfigurationError]]:
    """The name of the source's parameter set (``standard`` by default), and an error if there is no such set (A3)."""
    name = own.get("parameters", STANDARD)
    if not isinstance(name, str) or name == STANDARD or name in project.parameters:
        return str(name), []
    message = f"no such set in {FILE}{guess(name, project.parameters)} (got {quote_value(name)})"
    return name, [ConfigurationError(to_one_line(file), "parameters", message)]


def is_source_name(text: str) -> bool:
    """Whether a source may have this name."""
    return _NAME.fullmatch(text) is not None


def stand_in_for(project: Project, name: str) -> Source:
    """A source of which only the name is known, as its file is missing or broken: with built-in values."""
    values = {"name": name, "path": f"sources/{name}.toml", "folder": project.root, "scope": {"allow_all": True}}
    return Source.model_validate({**values, "forgotten": project.forgotten})


def load_sources(project: Project) -> tuple[dict[str, Source], list[ConfigurationError]]:
    """The good sources by name, in order of their names, and every error of the broken files."""
    sources, errors = _load_all(project)
    clashing = _find_clashes(project, sources)
    names = {name for name, _ in clashing}
    sources = {name: source for name, source in sources.items() if name not in names}
    return sources, [*errors, *(error for _, error in clashing)]


def _find_clashes(project: Project, sources: Mapping[str, Source]) -> list[tuple[str, ConfigurationError]]:
    """What sources say differently of the same attribute or file, with the name of the source."""
    names = {source.path: name for name, source in sources.items()}
    clashing = find_clashes({source.path: source.attributes for source in sources.values()})
    return [(names[error.file], error) for error in clashing] + find_shared_files(project, sources.values())


def list_source_names(project: Project) -> list[str]:
    """The names of all source files, sorted; also of broken ones, of which the index and the store may have rows."""
    return list_names_below(project.root)


def list_names_below(root: Path) -> list[str]:
    """The same for a project whose file was not read."""
    return [path.stem for path in list_source_files(root)]


def require_source_file(project: Project, name: str) -> str:
    """``name``, if there is a source file of this name, broken or not; raises UnknownSource."""
    if name not in list_source_names(project):
        raise UnknownSource(f"unknown source: {name}")
    return name


def _load_all(project: Project) -> tuple[dict[str, Source], list[ConfigurationError]]:
    """Loads all sources without comparing them with each other."""
    sources: dict[str, Source] = {}
    errors: list[ConfigurationError] = []
    for path in list_source_files(project.root):
        try:
            if not _NAME.fullmatch(path.stem):
                raise ConfigurationError(
                    to_one_line(f"sources/{path.name}"), "name", "the file's name must be made of a-z 0-9 _ -"
                )
            sources[path.stem] = _load_source(project, path.stem, {})
        except ConfigurationError as error:
            errors.extend(error.errors)
    return sources, errors


def read_start_urls(project: Project, source: Source) -> list[str]:
    """The start URLs, in order, each once, as ``urls.resolve`` gives them (A10).

    ``start.files`` have a URL a line; blank lines and those that start with ``#`` don't count.
    Raises ConfigurationError for a file that cannot be read, and for a line that is no URL.
    """
    found = dict.fromkeys(urls.resolve(url, routes=source.scope.hash_routes) for url in source.start.urls)
    for file in source.start.files:
        found.update(dict.fromkeys(_read_urls(project.path(file), file, source)))
    return list(found)


def _read_urls(path: Path, file: str, source: Source) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        message = f"cannot be read: {reason} (got {quote_value(file)})"
        raise ConfigurationError(source.path, "start.files", message) from error
    found: list[str] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            identity = urls.resolve(text, routes=source.scope.hash_routes)
        except InvalidUrl:
            identity = ""
        if not identity.startswith(source.kind.begins):
            message = f"not {source.kind.url} (got {quote_value(text)})"
            raise ConfigurationError(to_one_line(file), f"line {number}", message)
        found.append(identity)
    return found


def build_boundary(source: Source) -> Boundary:
    """The boundary of a source; raises ConfigurationError for a rule that cannot be understood (B1–B5)."""
    shared: dict[str, Any] = {
        "kind": source.kind,
        "forgotten": build_forgotten(source, source.forgotten),
        "file": source.path,
    }
    if source.kind.rules:
        listed = load_named(source.kind.rules)(source)
        return Boundary(allow_all=True, **{**NO_LIMITS, "max_url_length": 0}, listed=listed, **shared)
    hosts = [HostScope(**dict(block)) for block in source.scope.host]
    own = (pair for pair in source.scope if source.kind.has_key("scope", pair[0]))
    rules = {name: value for name, value in own if name not in _NOT_ABOUT_SINGLE_URLS}
    return Boundary(**rules, hosts=hosts, **shared)


def build_forgotten(source: Source, lines: Sequence[str]) -> Forgotten | None:
    """``lines`` of ``forgotten.txt`` as a source sees URLs; None where there are none."""
    if not lines:
        return None
    display = build_display_map(source) if source.display else None
    return Forgotten(lines, identity=build_identity(source), display=display)


def build_identity(source: Source) -> Identity:
    """What belongs to the identity of a URL."""
    # What is listed is named as it is.
    return Identity(() if source.kind.is_listed else source.scope.strip_parameters, routes=source.scope.hash_routes)


def build_index_filter(source: Source) -> IndexFilter:
    """The filter of ``[keep]``; raises ConfigurationError for a rule that cannot be understood (B8, B9)."""
    return IndexFilter(**dict(source.keep), file=source.path, hash_routes=source.scope.hash_routes)


def build_display_map(source: Source) -> DisplayMap | None:
    """How access URLs become display URLs (A4); None if they are always the same."""
    # A plugin may set the display URL of any row (K1), and a reader that of what it reads.
    is_said = any(rewrite.plugin for rewrite in source.rewrite) or source.says_displays
    if not source.display and not is_said:
        return None
    return DisplayMap((pair.from_, pair.to) for pair in source.display)


def build_rewriting(project: Project, source: Source) -> Rewriting:
    """How URLs that are found become those of rows (K1); raises ConfigurationError for a plugin that cannot be had."""
    file, routes = source.path, source.scope.hash_routes
    rewriters: list[Rewriter] = []
    for number, (match, replace, plugin) in enumerate((one.match, one.replace, one.plugin) for one in source.rewrite):
        key = f"rewrite[{number}]"
        if plugin is not None:
            found = import_class(plugin, _OF_REWRITER, file=file, key=f"{key}.plugin", root=project.root)
            rewriters.append(PluginRewriter(found, plugin, file=file, key=key, routes=routes))
        elif match is not None and replace is not None:
            rewriters.append(PatternRewriter(match, replace, file=file, key=key, routes=routes))
    return Rewriting(rewriters, build_identity(source))


def build_attribute_map(source: Source) -> AttributeMap | None:
    """How values of pages become attributes (A5); None if the source has no ``[attributes]``, and names no column as title."""
    table, titled = source.attributes, source.title_column
    if not table.in_use and titled is None:
        return None
    types = table.types_in_use()
    mapped = [
        Mapped(f"{origin.kind}:{origin.name}", name, types.get(name, "date" if name == "last_modified" else "string"))
        for origin, name in table.mapped
    ]
    if titled is not None:
        mapped.insert(0, Mapped(f"{source.kind.values}:{titled.lower()}", "title", "string"))
    return AttributeMap(mapped, desc_fallback=table.use_desc_fallback)


def _require_no_errors(value: T | None, errors: Sequence[ConfigurationError]) -> T:
    if value is None or errors:
        raise errors[0] if len(errors) == 1 else InvalidFile(errors)
    return value


def _find_errors(project: Project, source: Source) -> list[ConfigurationError]:
    """The errors of a source whose single values are well-formed; each names the file and key to edit."""
    errors = [*_find_foreign_keys(source)]
    if not (source.start.urls or source.start.files or source.kind.is_listed):
        errors.append(ConfigurationError(source.path, "start.urls", "is required, or start.files"))
    errors += [
        source.build_error(f"start.urls[{number}]", f"not {source.kind.url} (got {quote_value(url)})")
        for number, url in enumerate(source.start.urls)
        if not urls.resolve(url).startswith(source.kind.begins)
    ]
    files = [("start.files", file) for file in source.start.files]
    named = {key: str(getattr(source.fetch, key)) for key in TlsFiles._fields if getattr(source.fetch, key)}
    files += [(f"fetch.{key}", file) for key, file in named.items()]
    errors += [
        source.build_error(key, f"{message} (got {quote_value(file)})")
        for key, file in files
        if (message := find_no_file(project.path(file))) is not None
    ]
    if named and not errors:
        errors += [
            source.build_error(f"fetch.{key}", f"{message} (got {quote_value(named[key])})")
            for key, message in source.fetch.tls_files(project.root).find_errors()
        ]
    errors += [source.build_error(f"login.{key}", message) for key, message in find_login_errors(source.login)]
    errors += [*_find_unmapped(source), *find_plugin_errors(project, source), *find_feed_errors(project, source)]
    errors += find_unknown_receivers(project, source)
    scope = source.scope
    if scope.hash_routes and not source.render.in_use:
        message = 'needs render.mode = "auto" or "always": routes are rendered (got true)'
        errors.append(source.build_error("scope.hash_routes", message))
    if not (scope.allow_all or scope.include_hosts or scope.include_urls or source.kind.is_listed):
        message = "nothing is included: name hosts or URLs, or set scope.allow_all = true"
        return [*errors, ConfigurationError(source.path, "scope.include_hosts", message)]
    for compiled in (build_boundary, build_index_filter, lambda one: build_rewriting(project, one)):
        errors += find_rule_errors(source, compiled)
    return errors


def _find_foreign_keys(source: Source) -> Iterator[ConfigurationError]:
    """Errors for what a source file says that its kind of source has not."""
    for place, origin in source.origins.items():
        table, _, name = place.partition(".")
        if origin == Origin(source.path) and not source.kind.has_key(table, name):
            yield ConfigurationError(source.path, place, f'is not for type = "{source.kind.name}"')


def _find_unmapped(source: Source) -> list[ConfigurationError]:
    """Errors for attributes that the file gives a type to or drops, and that no key maps a value to."""
    table = source.attributes
    said = {"types": [(f"types.{name}", name) for name in table.types], "drop": [("drop", name) for name in table.drop]}
    return [
        ConfigurationError(source.path, f"attributes.{place}", f"nothing is mapped to {name}{guess(name, table.named)}")
        for key, places in said.items()
        if source.origins.get(f"attributes.{key}") == Origin(source.path)
        for place, name in places
        if name not in table.named
    ]


def find_plugin_errors(project: Project, source: Source) -> list[ConfigurationError]:
    """The errors of classes of users that are to see documents, or that are components of Scrapy (K4)."""
    found = [
        source.build_error(f"settings.{name}", message)
        for name, message in find_component_errors(source.settings, root=project.root)
    ]
    imports: tuple[tuple[str, str | None, Callable[..., object]], ...] = (
        ("spider", source.spider, partial(import_spider, base=source.kind.spider)),
        ("document_service", source.document_service, partial(import_class, methods=["process"])),
    )
    for name, plugin, load in imports:
        file, key = source.locate(name)
        if plugin is not None:
            found += find_error(partial(load, plugin, file=file, key=key, root=project.root))
    return found


def find_project_errors(project: Project) -> list[ConfigurationError]:
    """The errors of a searchcrawl.toml whose single values are well-formed."""
    errors = _find_unknown_sources(project)
    for mimetype, plugin in project.converters.items():
        key = join_key(("converters", mimetype))
        errors += find_error(partial(import_converter, plugin, file=FILE, key=key, root=project.root))
    return [*errors, *find_receiver_errors(project), *find_principals_errors(project)]


def _find_unknown_sources(project: Project) -> list[ConfigurationError]:
    """The schedules of sources that have no file (H1)."""
    names = [path.stem for path in list_source_files(project.root)]
    return [
        ConfigurationError(
            FILE,
            join_key(("schedules", name, "sources")),
            f"no such source{guess(source, names)} (got {quote_value(source)})",
        )
        for name, schedule in project.schedules.items()
        for source in schedule.sources
        if source not in names
    ]


#: Of a longer list only the first error is found: each of its rules is asked about by itself.
_LONGEST_LIST: Final = 200


def find_rule_errors(source: Source, compile_rules: Callable[[Source], Any]) -> Iterator[ConfigurationError]:
    """The errors of ``compile_rules``, which raises the first: the list that it names is asked rule by rule, and left out."""
    seen: set[str] = set()
    while errors := find_error(partial(compile_rules, source)):
        [error] = errors
        rules = _find_rules(source, error.key)
        if error.key in seen or not 1 < len(rules) <= _LONGEST_LIST:
            yield source.build_error(error.key, error.message)
            return
        seen.add(error.key)
        good = []
        for rule in dict.fromkeys(rules):
            of_rule = find_error(partial(compile_rules, _replace(source, error.key, [rule])))
            wrong = [each for each in of_rule if each.key == error.key]
            yield from (source.build_error(each.key, each.message) for each in wrong)
            good += [] if wrong else [rule]
        source = _replace(source, error.key, good)


def _find_rules(source: Source, key: str) -> Sequence[str]:
    """The rules of a key as ``scope.exclude_urls``; none where it is no list of texts."""
    table, _, name = key.partition(".")
    found = getattr(getattr(source, table, None), name, ())
    return found if isinstance(found, tuple) and all(isinstance(rule, str) for rule in found) else ()


def _replace(source: Source, key: str, rules: Sequence[str]) -> Source:
    table, _, name = key.partition(".")
    changed = getattr(source, table).model_copy(update={name: tuple(rules)})
    return source.model_copy(update={table: changed})

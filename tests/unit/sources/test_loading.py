"""Projects and sources from files: precedence, errors on lines, start lists, boundaries."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError, InvalidFile, NotAvailableYet, UnknownSource
from searchcrawl.sources.checking import is_about, leave_out_broken
from searchcrawl.sources.loading import (
    build_boundary,
    find_project,
    load_project,
    load_source,
    load_sources,
    read_start_urls,
)
from tests.source_files import GOOD, find_error_of_project, loaded, write_source

DIGITS = (
    "sources/demo.toml: exceeds the limit (4300 digits) for integer string conversion: "
    "value has 5000 digits; use sys.set_int_max_str_digits() to increase the limit"
)
NOTHING_INCLUDED = "nothing is included: name hosts or URLs, or set scope.allow_all = true"


def lines_of(root: Path, text: str) -> list[str]:
    """Every line that is said about a source file."""
    write_source(root, text)
    return [str(error) for error in load_sources(load_project(root))[1]]


def test_find_project_when_below_it_then_its_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEARCHCRAWL_PROJECT", raising=False)

    assert find_project(root / "sources") == root.resolve()


def test_find_project_when_named_by_the_environment_then_that(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHCRAWL_PROJECT", str(root))

    assert find_project(tmp_path_factory.mktemp("elsewhere")) == root.resolve()


def test_find_project_when_the_environment_names_no_folder_then_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHCRAWL_PROJECT", str(root / "nowhere"))

    with pytest.raises(ConfigurationError, match="SEARCHCRAWL_PROJECT: is not a folder"):
        find_project()


def test_find_project_when_there_is_none_then_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEARCHCRAWL_PROJECT", raising=False)

    with pytest.raises(ConfigurationError, match="no project here or above"):
        find_project(tmp_path)


def test_load_project_when_only_contact_is_given_then_the_documented_defaults(root: Path) -> None:
    project = load_project(root)

    assert project.user_agent == "searchcrawl"
    assert project.database_url == f"sqlite:///{root}/var/searchcrawl.db"
    assert (project.cache.threshold_mb, project.cache.preserve, project.cache.max_gb) == (250, True, 20)
    assert (project.index.type, project.index_dir) == ("local", root / "var/index")
    assert (project.logs_dir, project.logs.level) == (root / "var/log", "INFO")
    assert (project.logs.max_bytes, project.logs.backups) == (1_000_000, 2)
    assert project.cache_dir == root / "var/cache"
    assert project.user_agent_header.endswith("(+crawler@example.org)")


def test_load_project_when_paths_are_absolute_then_they_stay(root: Path) -> None:
    (root / "searchcrawl.toml").write_text(
        'contact = "a@example.org"\nstore.url = "sqlite:////srv/x.db"\ncache.dir = "/srv/cache"\n'
    )

    project = load_project(root)

    assert project.database_url == "sqlite:////srv/x.db"
    assert project.cache_dir == Path("/srv/cache")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://crawler:p%40ss@db.example.org:5433/search?sslmode=require",
        "postgresql+psycopg:///search?host=/run/postgresql",
    ],
)
def test_load_project_when_the_store_is_postgresql_then_its_url_stays(root: Path, url: str) -> None:
    (root / "searchcrawl.toml").write_text(f'contact = "a@example.org"\nstore.url = "{url}"\n')

    project = load_project(root)

    assert project.database_url == url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3cret@h/d", '"postgresql://me:***@h/d"'),
        ("postgresql+psycopg://me:s3/c@ret@h/", '"postgresql+psycopg://me:***@h/"'),
        ("postgresql+psycopg://me@h/d?password=s3cret&a=b", '"postgresql+psycopg://me@h/d?password=***&a=b"'),
    ],
)
def test_load_project_when_the_url_is_wrong_then_its_password_is_not_shown(root: Path, url: str, shown: str) -> None:
    (root / "searchcrawl.toml").write_text(f'contact = "a@example.org"\nstore.url = "{url}"\n')

    assert str(find_error_of_project(root)).endswith(f"(got {shown})")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "contact: is required"),
        ('contact = ""', 'contact: must be an http or https URL or a mail address (got "")'),
        ('contact = "me"', 'contact: must be an http or https URL or a mail address (got "me")'),
        ('contact = "ftp://example.org/"', "contact: must be an http or https URL or a mail address (got "),
        ('contact = "https://example.org/\\nX: y"', "contact: must be an http or https URL or a mail address (got "),
        ("contact = 1", "contact: must be a string (got 1)"),
        ('contact = {env = "NOT_SET_ANYWHERE"}', "contact: the environment variable NOT_SET_ANYWHERE is not set"),
        ('contact = {env = "A", file = "b"}', 'contact: must be a string (got {"env": "A", "file": "b"})'),
        ('contact = "a@example.org"\nfoo = 1', "foo: unknown key"),
        ('contact = "a@example.org"\n[stor]\nurl = "x"', "stor: unknown key (did you mean store?)"),
        ('contact = "a@example.org"\nstore.url = "postgresql://h/d"', "store.url: must be sqlite:/// and the path of a "),
        ('contact = "a@example.org"\nstore.url = "postgresql+psycopg://h"', "store.url: must end in the name of a database"),
        ('contact = "a@example.org"\nstore.url = "postgresql+psycopg://h:x/d"', "store.url: not a URL of a database (got "),
        ('contact = "a@example.org"\nstore.url = "postgresql+psycopg://h/d/e"', "store.url: must end in the name of a "),
        ('contact = "a@example.org"\nstore.url = "postgresql+psycopg://h/d?password=x"', "store.url: the password belongs "),
        ('contact = "a@example.org"\nstore.url = "mysql://h/d"', "store.url: must be sqlite:/// and the path of a "),
        ('contact = "a@example.org"\nstore.url = "sqlite://"', "store.url: must be sqlite:/// and the path of a "),
        ('contact = "a@example.org"\ncache.location = "database"', "cache.location: not available yet (got "),
        ('contact = "a@example.org"\ncache.location = "disk"', 'cache.location: must be "files" (got "disk")'),
        ('contact = "a@example.org"\ncache.threshold_mb = 0', "cache.threshold_mb: must be more than 0 (got 0)"),
        ('contact = "a@example.org"\ncache.max_gb = 0.1', "cache.threshold_mb: must not be more than cache.max_gb"),
        ('contact = "a@example.org"\ncache.preserve = "yes"', 'cache.preserve: must be true or false (got "yes")'),
        ('contact = "a@example.org"\nindex.type = "lucene"', 'index.type: must be "local" or "solr" (got "lucene")'),
        ('contact = "a@example.org"\nindex.type = "solr"', 'index.url: is required where index.type is "solr"'),
        (
            'contact = "a@example.org"\nindex.url = "http://h:8983/solr/x"',
            'index.url: is of a Solr server, and index.type is "local"',
        ),
        ('contact = "a@example.org"\nindex.url = "http://h:8983"', "index.url: must end in the name of a core"),
        ('contact = "a@example.org"\nindex.url = "h:8983/solr/x"', "index.url: not an http or https URL (got "),
        ('contact = "a@example.org"\nlogs.level = "LOUD"', 'logs.level: must be "DEBUG", "INFO", "WARNING", '),
        ('contact = "a@example.org"\nlogs.max_bytes = true', "logs.max_bytes: must be a whole number (got true)"),
        (
            'contact = "a@example.org"\nnotify.command = "cat >> told.txt"',
            "notify.command: >> is for a shell, and none reads the command: have one run it, as sh -c '…' (got \"***\")",
        ),
        ('contact = "a@example.org"\nnotify.command = "cat | mail me"', "notify.command: | is for a shell, and none reads"),
        ('contact = "a@example.org"\nnotify.command = "cat; date"', "notify.command: ; is for a shell, and none reads the "),
        ('contact = "a@example.org"\nnotify.command = "cat && date"', "notify.command: && is for a shell, and none reads "),
        ('contact = "a@example.org"\nnotify.command = "cat >told"', "notify.command: > is for a shell, and none reads the "),
        ('contact = "a@example.org"\nuser_agent = "two words"', "user_agent: must be one word of "),
        ('contact = "a@example.org"\n[defaults.scope]\ndepth = -1', "defaults.scope.depth: must not be negative (got -1)"),
        ('contact = "a@example.org"\n[defaults.mail]\nhost = "x"', "defaults.mail: not available yet"),
        ('contact = "a@example.org"\n[defaults]\ntitle = "x"', "defaults.title: unknown key"),
    ],
)  # fmt: skip
def test_load_project_when_a_value_is_wrong_then_one_line_says_so(root: Path, text: str, line: str) -> None:
    (root / "searchcrawl.toml").write_text(text)

    error = find_error_of_project(root)

    assert str(error).startswith(f"searchcrawl.toml: {line}")
    assert not isinstance(error, InvalidFile)
    assert isinstance(error, NotAvailableYet) == ("not available yet" in line)


@pytest.mark.parametrize("command", ["sh -c 'cat >> told.txt; date'", "curl http://x.test/?a=1&b=2", r"cat \;"])
def test_load_project_when_a_command_only_quotes_what_is_for_a_shell_then_it_is_good(root: Path, command: str) -> None:
    (root / "searchcrawl.toml").write_text(
        f'contact = "a@example.org"\n[notify]\ncommand = """{command}"""\n'.replace("\\", "\\\\")
    )

    assert load_project(root).notify.command == command


def test_load_project_when_the_file_is_missing_then_refused(root: Path) -> None:
    (root / "searchcrawl.toml").unlink()

    with pytest.raises(ConfigurationError, match=r"^searchcrawl.toml: cannot be read \(No such file"):
        load_project(root)


def test_load_source_when_only_the_mandatory_is_given_then_the_documented_defaults(root: Path) -> None:
    write_source(root, GOOD)

    source = loaded(root)

    assert (source.name, source.path, source.type) == ("demo", "sources/demo.toml", "web")
    assert (source.fetch.concurrency, source.fetch.host_concurrency, source.fetch.delay_seconds) == (8, 4, 1.0)
    assert (source.fetch.timeout_seconds, source.fetch.max_redirects, source.fetch.retries) == (30, 10, 3)
    assert source.fetch.max_bytes == 32 * 1024 * 1024
    assert source.fetch.default_charset == "windows-1252"
    assert source.scope.max_url_length == 2048
    assert (source.scope.max_path_segments, source.scope.max_query_parameters) == (16, 10)
    assert source.scope.max_repeated_segments == 3
    assert source.robots.obey
    assert source.robots.max_crawl_delay_seconds == 60
    assert source.change.condition == ("date", "checksum")
    assert source.lifecycle.remove_on == (404, 410)
    assert (source.lifecycle.max_delete_percent, source.lifecycle.max_delete_documents) == (10, 1000)
    assert source.keep.meta_robots


def test_load_source_when_the_project_has_defaults_then_file_defaults_built_in_in_this_order(root: Path) -> None:
    with (root / "searchcrawl.toml").open("a") as file:
        file.write(
            '[defaults.fetch]\nretries = 7\ndelay_seconds = 5\n[[defaults.scope.host]]\nhost = "a.example.org"\n'
        )
    write_source(root, GOOD + "[fetch]\ndelay_seconds = 2\n")

    source = loaded(root)

    assert (source.fetch.delay_seconds, source.fetch.retries, source.fetch.max_redirects) == (2.0, 7, 10)
    assert [block.host for block in source.scope.host] == ["a.example.org"]


@pytest.mark.parametrize("name", ["other", "../searchcrawl", "Demo", "", "demo.toml"])
def test_load_source_when_there_is_no_such_source_then_unknown(root: Path, name: str) -> None:
    write_source(root, GOOD)

    with pytest.raises(UnknownSource):
        load_source(load_project(root), name)


@pytest.mark.parametrize(
    ("addition", "line"),
    [
        ("depth = -1", "scope.depth: must not be negative (got -1)"),
        ("depth = 1.0", "scope.depth: must be a whole number (got 1.0)"),
        (f"depth = {9**30}", "scope.depth: must be at most 1000000000000 (got "),
        ("depth = true", "scope.depth: must be a whole number (got true)"),
        ('depth = "1"', 'scope.depth: must be a whole number (got "1")'),
        ("dpeth = 1", "scope.dpeth: unknown key (did you mean depth?)"),
        ("trap_after = -1", "scope.trap_after: must not be negative (got -1)"),
        ('include_urls = "x"', 'scope.include_urls: must be a list (got "x")'),
        ("include_urls = [1]", "scope.include_urls: must be a string (got 1)"),
        ('include_urls = ["re:("]', "scope.include_urls: not an RE2 expression: "),
        ('exclude_hosts = ["http://example.org/"]', "scope.exclude_hosts: not a host (got "),
        ('exclude_hosts = ["*.b.c"]', 'scope.exclude_hosts: must be a host, =host or a prefix like www.*: "b.c" has all '),
        ('exclude_hosts = ["a.*.org"]', "scope.exclude_hosts: must be a host, =host or a prefix like www.* (got "),
        ("include_ports = [0]", "scope.include_ports: must be at least 1 (got 0)"),
        ("include_ports = [80]\nexclude_ports = [81]", "scope.include_ports: not together with exclude_ports (got [80])"),
        (
            '[[scope.host]]\nhost = "a"\ninclude_ports = [80]\nexclude_ports = [81]',
            "scope.host[0].include_ports: not together with exclude_ports (got [80])",
        ),
        ('[[scope.host]]\ninclude_paths = ["/a"]', "scope.host[0].host: is required"),
        ('[[scope.host]]\nhost = "a"\ninclude_paths = ["a"]', 'scope.host[0].include_paths: must start with / (got "a")'),
        ('[[scope.host]]\nhost = "a"\nexclude_paths = [""]', 'scope.host[0].exclude_paths: must start with / (got "")'),
        ("exclude_ports = [65536]", "scope.exclude_ports: must be at most 65535 (got 65536)"),
        ('[[scope.host]]\nhost = "a"\npaths = ["a"]', "scope.host[0].paths: unknown key"),
        ("[scope.host]\nhost = 1", 'scope.host: must be a list: write [[scope.host]] (got {"host": 1})'),
        ("[fetch]\ndelay_seconds = -0.5", "fetch.delay_seconds: must not be negative (got -0.5)"),
        ("[fetch]\ndelay_seconds = nan", "fetch.delay_seconds: must be a finite number (got NaN)"),
        ("[fetch]\ntimeout_seconds = 0", "fetch.timeout_seconds: must be more than 0 (got 0)"),
        ("[fetch]\nconcurrency = 0", "fetch.concurrency: must be at least 1 (got 0)"),
        ('[fetch]\nprivate_networks = ["10.0.0.1/8"]', "fetch.private_networks: not a network in CIDR form"),
        ('[fetch]\nresolve = {"example.org" = "here"}', 'fetch.resolve."example.org": not an IP address (got "here")'),
        ('[fetch]\nresolve = {"a/b" = "127.0.0.1"}', 'fetch.resolve: not a host name (got "a/b")'),
        ('[fetch]\nheaders = {"User-Agent" = "x"}', 'fetch.headers: this header is set by searchcrawl (got "User-Agent")'),
        ('[fetch]\nheaders = {"X-A" = "a\\nb"}', 'fetch.headers.X-A: must be printable ASCII (got "a\\nb")'),
        ('[fetch]\nheaders = {"X-A" = {key = "v"}}', 'fetch.headers.X-A: must be a string (got {"key": "v"})'),
        ('[fetch]\ndefault_charset = "klingon"', 'fetch.default_charset: unknown charset (got "klingon")'),
        ('[fetch]\ndefault_language = "english!"', "fetch.default_language: not a language tag"),
        ('[fetch]\nca_file = "a\\u0000b"', 'fetch.ca_file: must be printable (got "a\\u0000b")'),
        ('[fetch]\nca_file = "ca.pem"', 'fetch.ca_file: no such file (got "ca.pem")'),
        ("[change]\ncondition = []", "change.condition: must not be empty (got [])"),
        ('[change]\ncondition = ["etag", "etag"]', "change.condition: names a value twice (got "),
        ('[change]\ncondition = ["size"]', 'change.condition: must be "date", "checksum" or "etag" (got "size")'),
        ("[lifecycle]\nremove_on = [200]", "lifecycle.remove_on: must be at least 400 (got 200)"),
        ("[lifecycle]\nmax_delete_percent = 101", "lifecycle.max_delete_percent: must be at most 100 (got 101)"),
        ('[lifecycle]\norphans = "drop"', "lifecycle.orphans: "),
        ("[keep]\nmax_age_days = inf", "keep.max_age_days: must be "),
        ("[keep]\nmeta_robots = 1", "keep.meta_robots: must be true or false (got 1)"),
        ('[mail]\nhost = "/srv"', "mail: not available yet"),
        ('[robots]\nuser_agent = ""', 'robots.user_agent: must not be empty (got "")'),
    ],
)  # fmt: skip
def test_load_source_when_a_value_is_wrong_then_one_line_says_so(root: Path, addition: str, line: str) -> None:
    lines = lines_of(root, GOOD + addition + "\n")

    assert len(lines) == 1
    assert lines[0].startswith(f"sources/demo.toml: {line}")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('type = "mail"\n', ['sources/demo.toml: type: not available yet (got "mail")']),
        ('type = "ftp"\n' + GOOD, ['sources/demo.toml: type: must be "web", "file" or "table" (got "ftp")']),
        ('name = "x"\n' + GOOD, ["sources/demo.toml: name: unknown key"]),
        ('collection = "a"\n' + GOOD, ["sources/demo.toml: collection: not available yet"]),
        ('groups = [""]\n' + GOOD, ['sources/demo.toml: groups: must be 1 to 100 printable characters (got "")']),
        ('mode = "index"\ntest = "yes"\n' + GOOD, [
            'sources/demo.toml: mode: must be "accept", "examine" or "index_only" (got "index")',
            'sources/demo.toml: test: must be true or false (got "yes")',
        ]),
        ("start = 3\n[scope]\ndepth = -1\nfoo = 1\n", [
            "sources/demo.toml: scope.foo: unknown key",
            "sources/demo.toml: start: must be a table (got 3)",
            "sources/demo.toml: scope.depth: must not be negative (got -1)",
        ]),
        ('[start]\nurls = ["ftp://example.org/"]\n[scope]\nallow_all = true\n', [
            'sources/demo.toml: start.urls: not an http or https URL (got "ftp://example.org/")',
        ]),
        ('[start]\nurls = ["http://example.org/"]\nsitemaps = "on"\n[scope]\nallow_all = true\n', [
            'sources/demo.toml: start.sitemaps: must be "auto", "off" or a list of URLs (got "on")',
        ]),
        ("[scope]\nallow_all = true\n", ["sources/demo.toml: start.urls: is required, or start.files"]),
        ('[start]\nurls = ["http://example.org/"]\n', [
            f"sources/demo.toml: scope.include_hosts: {NOTHING_INCLUDED}",
        ]),
        ('[start]\nurls = ["http://example.org/"]\n[scope]\nexclude_hosts = ["example.com"]\n', [
            f"sources/demo.toml: scope.include_hosts: {NOTHING_INCLUDED}",
        ]),
        ('[start]\nurls = ["http://a.org/"]\n[scope]\nallow_all = false\n[[scope.host]]\nhost = "a.org"\ninclude_paths = ["/"]\n', [
            f"sources/demo.toml: scope.include_hosts: {NOTHING_INCLUDED}",
        ]),
        ('[start]\nfiles = ["urls.txt"]\n[scope]\nallow_all = true\n', [
            'sources/demo.toml: start.files: no such file (got "urls.txt")',
        ]),
        ("[start\n", ["sources/demo.toml: line 1: expected ']' at the end of a table declaration"]),
        (f"type = 'web'\ntitle = {'9' * 5000}\n", [DIGITS]),
        ("type = 'web'\n\ntitle = \n", ["sources/demo.toml: line 3: invalid value"]),
        ('\n\ntitle = """\n', ["sources/demo.toml: line 3: unterminated string"]),
        ('"a\\nb" = 1\n' + GOOD, ['sources/demo.toml: "a\\nb": unknown key']),
    ],
)  # fmt: skip
def test_load_sources_when_a_file_is_wrong_then_every_error_has_its_line(
    root: Path, text: str, lines: list[str]
) -> None:
    said = lines_of(root, text)

    assert said == lines


def test_load_sources_when_a_file_is_not_utf_8_then_its_line_is_named(root: Path) -> None:
    (root / "sources" / "demo.toml").write_bytes(b'type = "web"\ntitle = "caf\xe9"\n')

    _, errors = load_sources(load_project(root))

    assert [str(error) for error in errors] == ["sources/demo.toml: line 2: is not UTF-8"]


def test_load_sources_when_one_is_broken_then_the_others_are_there(root: Path) -> None:
    write_source(root, GOOD, "good")
    write_source(root, "type = 1", "broken")
    write_source(root, GOOD, "Big Name")
    write_source(root, "", ".#good")

    sources, errors = load_sources(load_project(root))

    assert list(sources) == ["good"]
    assert list(dict.fromkeys(error.file for error in errors)) == ["sources/Big Name.toml", "sources/broken.toml"]


def test_load_source_when_the_file_begins_with_a_byte_order_mark_then_it_is_read(root: Path) -> None:
    (root / "sources" / "demo.toml").write_text(GOOD, encoding="utf-8-sig")

    assert loaded(root).scope.include_hosts == ("example.org",)


def test_start_urls_when_inline_and_from_files_then_identities_in_order_each_once(root: Path) -> None:
    (root / "urls.txt").write_text("# ours\n\nhttps://EXAMPLE.org/b#part\n  https://example.org/  \n")
    write_source(root, GOOD.replace("[start]", '[start]\nfiles = ["urls.txt"]'))
    project = load_project(root)

    found = read_start_urls(project, load_source(project, "demo"))

    assert found == ["https://example.org/", "https://example.org/b"]


@pytest.mark.parametrize("line", ["example.org", "file:///etc/passwd"])
def test_start_urls_when_a_line_is_no_url_then_file_and_line_are_named(root: Path, line: str) -> None:
    (root / "urls.txt").write_text(f"https://example.org/\n\n{line}\n")
    write_source(root, GOOD.replace("[start]", '[start]\nfiles = ["urls.txt"]'))
    project = load_project(root)

    with pytest.raises(ConfigurationError) as caught:
        read_start_urls(project, load_source(project, "demo"))

    assert str(caught.value) == f'urls.txt: line 3: not an http or https URL (got "{line}")'


def test_boundary_of_when_hosts_have_paths_then_both_decide(root: Path) -> None:
    write_source(root, GOOD + '[[scope.host]]\nhost = "example.org"\ninclude_paths = ["/docs/"]\n')

    boundary = build_boundary(loaded(root))

    assert boundary.decide("https://example.org/docs/a").allowed
    assert not boundary.decide("https://example.org/other").allowed
    assert boundary.decide("https://example.com/docs/").file == "sources/demo.toml"


NO_MODULE = "cannot be imported: ModuleNotFoundError: No module named 'nowhere'"
OTHERS_SHOW = (
    f'spider = "nowhere:Spider"\n{GOOD}exclude_urls = ["re:("]\n[fetch]\ndelay_seconds = -1\n'
    '[settings]\nLOG_LEVEL = "INFO"\nEXTENSIONS = {"nowhere.Bell" = 1}\n'
)
THEY_FOLLOW = (
    '[start]\nurls = ["no URL"]\n[scope]\ninclude_hosts = [1]\n[attributes]\n"meta:x" = "a b"\ndrop = ["y"]\n'
    '[login]\ntype = "none of these"\npassword = "x"\n'
)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            OTHERS_SHOW,
            [
                'settings.LOG_LEVEL: not for a source: each source has one log: use logs in searchcrawl.toml (got "INFO")',
                "fetch.delay_seconds: must not be negative (got -1)",
                f'settings.EXTENSIONS: {NO_MODULE} (got "nowhere.Bell")',
                f'spider: {NO_MODULE} (got "nowhere:Spider")',
                "scope.exclude_urls: not an RE2 expression: missing ): ( (got 're:(')",
            ],
        ),
        # What follows from a broken value is not said beside it.
        (
            THEY_FOLLOW,
            [
                'start.urls: not an http or https URL (got "no URL")',
                "scope.include_hosts: must be a string (got 1)",
                'login.type: must be "basic", "digest", "form", "cookies" or "browser" (got "none of these")',
                'attributes."meta:x": must be at most 64 letters, digits and _.- (ASCII), a letter first (got "a b")',
            ],
        ),
        (
            'colour = 1\n[start]\nurls = "x"\n',
            [
                "colour: unknown key",
                'start.urls: must be a list (got "x")',
                "scope.include_hosts: nothing is included: name hosts or URLs, or set scope.allow_all = true",
            ],
        ),
    ],
)
def test_load_sources_when_values_are_wrong_then_the_others_are_looked_at_as_well(
    root: Path, text: str, lines: list[str]
) -> None:
    assert lines_of(root, text) == [f"sources/demo.toml: {line}" for line in lines]


def test_leave_out_broken_when_a_key_has_several_errors_then_it_alone_is_left_out() -> None:
    tables = {"settings": {"A": 1, "B": 2}, "scope": {"depth": -1}, "login": {"type": "form"}, "spider": "x"}
    keys = ("settings.A", "settings.A.inner", "scope.depth", "scope.missing", "spider")

    sound, broken = leave_out_broken(tables, [ConfigurationError("f", key, "wrong") for key in keys])

    assert sound == {"settings": {"B": 2}, "login": {"type": "form"}}
    asked = ("settings.A", "settings.B", "scope.other", "login.type", "spider")
    assert [is_about(key, broken) for key in asked] == [True, False, True, False, True]

"""What is promised and not built yet is refused with "not available yet", and never called unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from searchcrawl.cli import commands, dispatch
from searchcrawl.sources.checking import read_known_keys
from searchcrawl.sources.config import SourceFile
from searchcrawl.sources.project import ProjectFile
from searchcrawl.sources.values import Table

#: All keys that are promised, by table; a number is a place in a list of tables.
PROJECT: Final = {
    "": "contact user_agent converters umask max_parallel notify",
    "store": "url retention_days",
    "cache": "dir threshold_mb preserve location max_gb",
    "index": "type path url",
    "receivers.a": "type path url class mode report rollback_days format delta",
    "logs": "dir level max_bytes backups urls",
    "schedules.a": "sources cron every_minutes window timezone mode misfire enabled scrapyd",
}
SOURCE: Final = {
    "": "type title groups collection parameters spider mode test receivers document_service render file table mail agent"
    " tests settings feeds",
    "cache": "preserve location",
    "start": "urls files sitemaps",
    "scope": "hash_routes allow_all include_hosts exclude_hosts include_urls exclude_urls include_ports exclude_ports depth"
    " follow_links dynamic_pages max_url_length max_path_segments max_query_parameters max_repeated_segments max_urls"
    " max_urls_per_pattern trap_after strip_parameters",
    "scope.host.0": "host include_paths exclude_paths include_ports exclude_ports",
    "keep": "mime_types exclude_mime_types min_bytes max_bytes max_age_days include_urls exclude_urls include_names"
    " exclude_names meta_robots",
    "fetch": "concurrency dns_per_second host_concurrency max_minutes sites delay_seconds timeout_seconds max_bytes"
    " max_redirects retries headers headers_to proxy resolve verify_certificates ca_file client_certificate client_key"
    " private_networks default_charset default_language timezone",
    "fetch.windows.0": "days from to delay_seconds",
    "robots": "obey user_agent crawl_delay max_crawl_delay_seconds",
    "login": "type url username password form username_field password_field fields check steps",
    "change": "condition",
    "lifecycle": "remove_on gone_confirmations error_runs_before_hidden orphans max_delete_percent max_delete_documents"
    " recrawl_every_hours recrawl_min_hours recrawl_max_hours trust_sitemap",
    "render": "mode wait_for quiet_ms max_seconds pages block scroll allow_hosts max_page_mb post",
    "render.actions.0": "match click wait scroll",
    "content": "mode keep drop language",
    "attributes": "drop types values use_desc_fallback",
    "rewrite.0": "match replace plugin",
    "display.0": "from to",
}
COMMANDS: Final = (
    "init quick crawl search status urls explain test plan apply verify recrawl flush resend suspend resume stop delete"
    " quarantine undelete cache submit optimize forget runs run tick serve selftest sources index solr receivers"
)
USES: Final = (
    "quick http://x/ --pages 1 --allow-private 10.0.0.0/8 --keep d",
    "sources check",
    "sources show a",
    "sources rename a",
    "sources export",
    "sources import",
    "sources apply",
    "sources rollback",
    "crawl --all",
    "crawl a --set A=b -a limit=1",
    "search w --source a --group a --rows 1 --sort a --filter a:b --facet a --offset 1",
    "search w --offset=1",
    "status --prometheus",
    "urls a --state todo --code 1 --rule r --host h --since 2020-01-01",
    "explain http://x/ --live",
    "test http://x/ --source a --render --trace f",
    "test http://x/ --source a --trace f",
    "verify --all-sources",
    "verify a --repair --yes",
    "receivers list",
    "receivers pause a --source b",
    "receivers resume a",
    "resend a --receiver b",
    "verify --yes",
    "delete a --yes",
    "quarantine list a --rejected",
    "quarantine approve a --run 1",
    "quarantine restore a",
    *(
        f"cache {action} a"
        for action in ["list", "show", "check", "repair", "compact", "count", "export", "import", "migrate"]
    ),
    "forget http://x/ --pattern p --file f",
)


def list_keys(tables: dict[str, str]) -> list[str]:
    return [f"{table}.{key}".lstrip(".") for table, keys in tables.items() for key in keys.split()]


def build(key: str) -> dict[str, object]:
    """The content of a file that has this key."""
    *tables, last = key.split(".")
    content: object = {last: 1}
    for table in reversed(tables):
        content = [content] if table == "0" else {table: content}
    assert isinstance(content, dict)
    return content


def find_unknown(model: type[Table], key: str, folder: Path) -> list[str]:
    _, errors = read_known_keys(model, build(key), file="f", root=folder)
    return [str(error) for error in errors if "not available yet" not in str(error)]


@pytest.mark.parametrize(
    ("model", "key"),
    [
        *((ProjectFile, key) for key in list_keys(PROJECT)),
        *((SourceFile, key) for key in list_keys(SOURCE)),
        # Of shared tables.
        *(
            (ProjectFile, f"{above}.{key}")
            for above in ("defaults", "parameters.slow")
            for key in list_keys(SOURCE)
            if "." in key
        ),
    ],
)
def test_key_when_promised_then_it_is_known_or_said_to_come(model: type[Table], key: str, tmp_path: Path) -> None:
    assert find_unknown(model, key, tmp_path) == []


@pytest.mark.parametrize("line", [*COMMANDS.split(), *USES])
def test_command_line_when_promised_then_it_is_known_or_said_to_come(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Outside any project: no command does anything.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dispatch, "guard_output", lambda: None)
    monkeypatch.setattr("searchcrawl.cli.command.guard_output", lambda: None)
    name, *args = line.split()
    if name in {"init", "quick"}:
        # They need no project.
        args.append("--help")

    with pytest.raises(SystemExit):
        dispatch.main(["searchcrawl", name, *args])

    said = capsys.readouterr().err
    assert "unknown" not in said
    assert "unrecognized" not in said


def test_commands_of_a_later_release_when_listed_then_none_is_built() -> None:
    assert commands.LATER.isdisjoint(commands.list_names())

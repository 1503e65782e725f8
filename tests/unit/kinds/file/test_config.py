"""The table ``[file]``: what is refused, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError, InvalidFile
from tests.source_files import loaded, write_project, write_source


def errors_of(folder: Path, table: str) -> list[str]:
    write_project(folder)
    write_source(folder, f'type = "file"\n{table}')
    try:
        loaded(folder)
    except InvalidFile as error:
        return [str(each) for each in error.errors]
    except ConfigurationError as error:
        return [str(error)]
    return []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "file.roots: is required"),
        ("[file]\nroots = []", "file.roots: is required"),
        ("[file]\nroots = ['']", 'file.roots: must not be empty (got "")'),
        ("[file]\nroots = ['/srv', '/srv/a']", "file.roots[1]: is in /srv, which is a root as well (got '/srv/a')"),
        ("[file]\nroots = ['/srv/', '//srv']", "file.roots[1]: is in /srv/, which is a root as well (got '//srv')"),
        ("[file]\nroots = ['/srv/../etc']", 'file.roots: must have no ".." in it (got "/srv/../etc")'),
        ("[file]\nroots = ['file:///srv']", 'file.roots: must be the path of a folder (got "file:///srv")'),
        ("[file]\nroots = ['smb://nas/x']", 'file.roots: not available yet (got "smb://nas/x")'),
        ("[file]\nroots = ['/srv']\nendpoint = 'x'", "file.endpoint: not available yet"),
        ("[file]\nroots = ['/srv']\npassword = 'x'", "file.password: not available yet"),
        ("[file]\nroots = ['/srv']\nmarker = 'a/b'", 'file.marker: must be the name of a file in the root (got "a/b")'),
        ("[file]\nroots = ['/srv']\npermissions = 'smb'", 'file.permissions: must be "none" or "posix" (got "smb")'),
        ("[file]\nroots = ['/srv']\nhiden = true", "file.hiden: unknown key (did you mean hidden?)"),
        ("[file]\nroots = ['/srv']\n[scope]\ninclude_hosts = ['x']", 'scope.include_hosts: is not for type = "file"'),
        ("[file]\nroots = ['/srv']\n[scope]\nexclude_names = ['re:(']", "scope.exclude_names"),
    ],
)
def test_table_when_a_value_is_wrong_then_says_so(tmp_path: Path, table: str, message: str) -> None:
    (error,) = errors_of(tmp_path, table)

    assert error.startswith(f"sources/demo.toml: {message}")


def test_roots_when_relative_then_start_at_the_project(tmp_path: Path) -> None:
    from searchcrawl.kinds.file.roots import list_paths

    assert errors_of(tmp_path, "[file]\nroots = ['docs/./a/', '/srv//b']") == []
    assert list_paths(loaded(tmp_path)) == [f"{tmp_path.resolve()}/docs/a".encode(), b"/srv/b"]
    assert errors_of(tmp_path, f"[file]\nroots = ['docs', '{tmp_path.resolve()}/docs/b']") != []

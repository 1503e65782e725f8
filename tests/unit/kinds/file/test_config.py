"""The table ``[file]``: what is refused, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError, InvalidFile
from searchcrawl.kinds.file.roots import list_roots
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
        (
            "[file]\nroots = ['file:///srv']",
            (
                "file.roots: must be the path of a folder, or begin with sftp://, smb://, dav://, davs://, s3:// "
                '(got "file:///srv")'
            ),
        ),
        (
            "[file]\nroots = ['sftp://anna:secret@nas/x']",
            (
                "file.roots: must have no user and no password in it: file.username and file.password are the place for them "
                '(got "sftp://anna:***@nas/x")'
            ),
        ),
        (
            "[file]\nroots = ['sftp:///x']",
            "file.roots: must have the name of a server, or of a bucket, after the scheme",
        ),
        ("[file]\nroots = ['sftp://nas:99999/x']", "file.roots: must have the name of a server, or of a bucket, after"),
        ("[file]\nroots = ['sftp://n as/x']", "file.roots: must have the name of a server, or of a bucket, after"),
        ("[file]\nroots = ['dav://nas/x?y']", "file.roots: must have no ? and no # in it"),
        ("[file]\nroots = ['dav://nas/x/%2e%2E/y']", 'file.roots: must have no ".." and no NUL in it'),
        ("[file]\nroots = ['smb://nas']", "file.roots: must have the name of a share after that of the server"),
        (
            "[file]\nroots = ['s3://nas:9000/x']",
            "file.roots: must have the name of a bucket after s3://: file.endpoint",
        ),
        (
            "[file]\nroots = ['sftp://nas/a', 'sftp://NAS:22/a/b/']",
            "file.roots[1]: is in sftp://nas/a, which is a root",
        ),
        ("[file]\nroots = ['/srv']\nendpoint = 'https://x.example/'", "file.endpoint: only with s3://"),
        ("[file]\nroots = ['s3://b']\nendpoint = 'x'", 'file.endpoint: not an http or https URL (got "x")'),
        ("[file]\nroots = ['smb://nas/x']\nkey_file = 'x'", "file.key_file: only with sftp://"),
        ("[file]\nroots = ['/srv']\npassword = 'secret'", "file.password: only with sftp:// or smb://"),
        (
            "[file]\nroots = ['smb://nas/x']\nfollow_links = true",
            "file.follow_links: only with folders of this machine",
        ),
        ("[file]\nroots = ['/srv', 'dav://nas/x']\npermissions = 'posix'", "file.permissions: not for dav://"),
        ("[file]\nroots = ['/srv']\nmarker = 'a/b'", 'file.marker: must be the name of a file in the root (got "a/b")'),
        ("[file]\nroots = ['/srv']\npermissions = 'smb'", "file.permissions: not for a folder of this machine"),
        ("[file]\nroots = ['/srv']\npermissions = 'x'", 'file.permissions: must be "none", "posix" or "smb" (got "x")'),
        ("[file]\nroots = ['/srv']\nhiden = true", "file.hiden: unknown key (did you mean hidden?)"),
        ("[file]\nroots = ['/srv']\n[scope]\ninclude_hosts = ['x']", 'scope.include_hosts: is not for type = "file"'),
        ("[file]\nroots = ['/srv']\n[scope]\nexclude_names = ['re:(']", "scope.exclude_names"),
    ],
)
def test_table_when_a_value_is_wrong_then_says_so(tmp_path: Path, table: str, message: str) -> None:
    (error,) = errors_of(tmp_path, table)

    assert error.startswith(f"sources/demo.toml: {message}")


def find_urls(folder: Path, *roots: str) -> list[str]:
    assert errors_of(folder, f"[file]\nroots = {[*roots]}") == []
    return [root.url for root in list_roots(loaded(folder))]


def test_roots_when_relative_then_start_at_the_project(tmp_path: Path) -> None:
    assert find_urls(tmp_path, "docs/./a/", "/srv//b") == [f"{tmp_path.resolve().as_uri()}/docs/a/", "file:///srv/b/"]
    assert errors_of(tmp_path, f"[file]\nroots = ['docs', '{tmp_path.resolve()}/docs/b']") != []


def test_roots_when_on_servers_then_each_has_one_identity_however_it_is_written(tmp_path: Path) -> None:
    assert find_urls(tmp_path, "SFTP://Nas:22//srv/My%20Docs//ü!/") == ["sftp://nas/srv/My%20Docs/%C3%BC%21/"]
    assert find_urls(tmp_path, "sftp://[FE80::1]:2222", "davs://x/a b") == ["sftp://[fe80::1]:2222/", "davs://x/a%20b/"]
    assert find_urls(tmp_path, "s3://Bucket/a//b/", "s3://other") == ["s3://Bucket/a/%00/b/", "s3://other/"]


def test_permissions_when_not_said_then_are_those_of_each_root(tmp_path: Path) -> None:
    assert errors_of(tmp_path, "[file]\nroots = ['/srv', 'smb://nas/x', 's3://b', 'sftp://nas']") == []
    table = loaded(tmp_path).own
    assert {scheme: table.find_permissions(scheme) for scheme in ("file", "smb", "s3", "sftp", "dav")} == {
        "file": "posix", "smb": "smb", "s3": "none", "sftp": "none", "dav": "none",
    }  # fmt: skip


def test_password_when_a_message_or_a_text_has_the_table_then_is_not_in_it(tmp_path: Path) -> None:
    table = "[file]\nroots = ['sftp://nas']\nusername = 'anna'\npassword = 'very-secret-word'"
    assert errors_of(tmp_path, table) == []
    assert "very-secret-word" not in repr(loaded(tmp_path))
    assert "very-secret-word" not in "".join(errors_of(tmp_path, table.replace("sftp", "gopher")))

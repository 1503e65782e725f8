"""The keys of ``[table]`` in a source file."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError
from tests.source_files import find_error, loaded, write_project, write_source

_GOOD = """
type = "table"
[table]
url = "postgresql+psycopg://crawler:s3cret-word@db.example/shop"
table = "articles"
key = ["id"]
text = "body"
"""


def _error(root: Path, text: str) -> ConfigurationError:
    write_project(root)
    write_source(root, text)
    return find_error(root)


@pytest.mark.parametrize("key", ["url", "table", "key", "text"])
def test_source_when_a_key_lacks_that_it_must_have_then_the_error_names_it(tmp_path: Path, key: str) -> None:
    lines = [line for line in _GOOD.splitlines() if not line.startswith(f"{key} =")]

    error = _error(tmp_path, "\n".join(lines))

    assert (error.file, error.key) == ("sources/demo.toml", f"table.{key}")
    assert error.message.startswith("is required")


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ('query = "SELECT 1"', "table.table", "not together with query"),
        ('body = "data"', "table.text", "not together with body"),
        ('body_type = "mime"', "table.body_type", "only with body"),
        ('deny = ["others"]', "table.deny", "only with allow"),
        ('display = "https://shop.test/"', "table.display", "must name a column, as {id}"),
        ('display = "https://shop.test/{id"', "table.display", "not a template"),
        ('tittle = "name"', "table.tittle", "unknown key (did you mean title?)"),
        ('modified = ""', "table.modified", "must not be empty"),
    ],
)
def test_source_when_keys_do_not_go_together_then_the_error_says_so(
    tmp_path: Path, line: str, key: str, message: str
) -> None:
    error = _error(tmp_path, f"{_GOOD}{line}\n")

    assert error.key == key
    assert error.message.startswith(message)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nothing", "must be the URL of a database"),
        ("mysql+pymysql://crawler:s3cret-word@db.example/", "must end in the name of a database"),
        ("sqlite://", "must end in the name of a database"),
        ("sqlite:///:memory:", "must be sqlite:/// and the path of a file"),
        ("sqlite:///a.db?mode=rw", "must be sqlite:/// and the path of a file"),
        ("postgresql+psycopg://db.example/shop?password=s3cret-word", "the password belongs before the host"),
    ],
)
def test_url_when_it_names_no_database_then_the_error_shows_no_password(tmp_path: Path, url: str, message: str) -> None:
    text = _GOOD.replace("postgresql+psycopg://crawler:s3cret-word@db.example/shop", url)

    error = _error(tmp_path, text)

    assert error.key == "table.url"
    assert error.message.startswith(message)
    assert "s3cret-word" not in str(error)


def test_source_when_it_is_right_then_it_needs_no_other_table(tmp_path: Path) -> None:
    write_project(tmp_path)
    write_source(tmp_path, _GOOD)

    source = loaded(tmp_path)

    assert source.own.key == ("id",)
    assert "s3cret-word" not in repr(source)


def test_keys_of_tables_when_the_source_is_a_web_site_then_they_are_refused(tmp_path: Path) -> None:
    error = _error(tmp_path, '[start]\nurls = ["http://site.test/"]\n[scope]\nallow_all = true\n[table]\ntable = "a"\n')

    assert error.key == "table.table"
    assert error.message == 'is not for type = "web"'

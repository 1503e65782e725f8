"""Folders of projects with names that mean something else elsewhere, or that cannot be read, and whom a project names."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.files import find_no_file
from searchcrawl.sources.loading import find_project, list_source_names, load_project, load_source, load_sources
from searchcrawl.store.engine.database import Database
from tests.source_files import find_error, write_project, write_source


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_project(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name", ["what?", "is?it=so", "100%", "a%41b", "part#1", "a b+c", "it's @ [here]: 1;2", "größe 日本"]
)
def test_database_url_when_the_folder_has_characters_of_urls_then_the_store_is_in_it(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    (root / "searchcrawl.toml").write_text('contact = "a@example.org"\n')
    project = load_project(root)

    with closing(Database(project.database_url, project.root)) as database:
        folder = database.folder

    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert project.has_store
    assert project.stored_paths[0].is_file()
    assert folder == root / "var"


def test_load_project_when_the_folder_of_sources_cannot_be_read_then_no_source_counts_as_gone(root: Path) -> None:
    (root / "sources").symlink_to("sources")

    with pytest.raises(ConfigurationError, match=r"^sources: cannot be read \(Too many levels of symbolic links\)$"):
        load_project(root)


def test_load_source_when_the_folder_of_sources_cannot_be_read_then_it_is_not_unknown(root: Path) -> None:
    project = load_project(root)
    (root / "sources").write_text("a file")

    with pytest.raises(ConfigurationError, match=r"^sources: cannot be read \(Not a directory\)$"):
        load_source(project, "demo")
    with pytest.raises(ConfigurationError, match=r"^sources: cannot be read \(Not a directory\)$"):
        list_source_names(project)


def test_load_sources_when_the_folder_is_not_there_then_none(root: Path) -> None:
    assert load_sources(load_project(root)) == ({}, [])


def test_load_sources_when_a_file_is_a_link_that_leads_nowhere_or_a_pipe_then_the_others_are_there(root: Path) -> None:
    write_source(root)
    (root / "sources" / "link.toml").symlink_to("nowhere")
    os.mkfifo(root / "sources" / "pipe.toml")

    sources, errors = load_sources(load_project(root))

    assert [*sources] == ["demo"]
    assert [str(error) for error in errors] == [
        "sources/link.toml: cannot be read (No such file or directory)",
        "sources/pipe.toml: cannot be read (is a pipe, no file)",
    ]


def test_load_project_when_the_path_is_not_utf8_then_refused(root: Path) -> None:
    folder = root / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "searchcrawl.toml").write_text('contact = "crawler@example.org"\n')

    with pytest.raises(ConfigurationError, match="the path of the project is not UTF-8"):
        load_project(folder)


def test_find_project_when_the_working_folder_is_gone_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEARCHCRAWL_PROJECT", raising=False)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(ConfigurationError, match="the working folder is gone"):
        find_project()


def test_find_project_when_the_variable_names_a_circle_of_links_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "circle").symlink_to("circle")
    monkeypatch.setenv("SEARCHCRAWL_PROJECT", str(tmp_path / "circle"))

    with pytest.raises(ConfigurationError, match="SEARCHCRAWL_PROJECT: is not a folder"):
        find_project()


@pytest.mark.parametrize("contact", ["crawler@acme.test", "mailto:crawler@acme.test", "https://acme.test/crawler"])
def test_contact_when_it_is_an_address_in_any_form_then_is_sent_as_written(tmp_path: Path, contact: str) -> None:
    (tmp_path / "searchcrawl.toml").write_text(f'contact = "{contact}"\n', "utf-8")

    assert load_project(tmp_path).user_agent_header.endswith(f"(+{contact})")


def test_file_when_it_is_none_then_is_said_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("http://a.test/")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))

        said = {
            name: find_no_file(tmp_path / name) for name in ("list.txt", "folder", "pipe", "socket", "none", "circle")
        }

    assert said == {
        "list.txt": None,
        "folder": "is a folder, no file",
        "pipe": "is a pipe, no file",
        "socket": "is a socket, no file",
        "none": "no such file",
        "circle": f"cannot be read ({os.strerror(errno.ELOOP)})",
    }
    assert find_no_file(Path("/dev/null")) == "is a device, no file"
    assert find_no_file(tmp_path / "list.txt" / "x") == "no such file"
    assert find_no_file(tmp_path / "a\0b") == "no such file"


@pytest.mark.parametrize("name", ["searchcrawl.toml", "forgotten.txt", "sources/demo.toml"])
def test_project_when_a_pipe_is_in_place_of_a_file_then_is_not_waited_for(name: str, tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    if name != "searchcrawl.toml":
        write_project(tmp_path)
    os.mkfifo(tmp_path / name)

    assert str(find_error(tmp_path)) == f"{name}: cannot be read (is a pipe, no file)"


@pytest.mark.parametrize("key", ["start.files", "fetch.ca_file"])
def test_source_when_it_names_a_pipe_then_the_error_says_so(key: str, tmp_path: Path) -> None:
    table, name = key.split(".")
    os.mkfifo(tmp_path / "pipe")
    write_project(tmp_path)
    written = '[start]\nurls = ["http://a.test/"]\n[scope]\nallow_all = true\n'
    named = 'files = ["pipe"]' if name == "files" else 'ca_file = "pipe"'
    written = written.replace("[scope]", f"{named}\n[scope]") if table == "start" else f"{written}[fetch]\n{named}\n"
    write_source(tmp_path, written)

    _, errors = load_sources(load_project(tmp_path))

    assert [str(error) for error in errors] == [f'sources/demo.toml: {key}: is a pipe, no file (got "pipe")']

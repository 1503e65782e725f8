"""What is said of files that a source names and that are none."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.files import find_no_file
from searchcrawl.sources.loading import load_project, load_source, load_sources


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
        (tmp_path / "searchcrawl.toml").write_text('contact = "crawler@example.org"\n')
    os.mkfifo(tmp_path / name)

    with pytest.raises(ConfigurationError) as caught:
        load_source(load_project(tmp_path), "demo")

    assert str(caught.value) == f"{name}: cannot be read (is a pipe, no file)"


@pytest.mark.parametrize("key", ["start.files", "fetch.ca_file"])
def test_source_when_it_names_a_pipe_then_the_error_says_so(key: str, tmp_path: Path) -> None:
    table, name = key.split(".")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "searchcrawl.toml").write_text('contact = "crawler@example.org"\n')
    (tmp_path / "sources").mkdir()
    written = '[start]\nurls = ["http://a.test/"]\n[scope]\nallow_all = true\n'
    named = 'files = ["pipe"]' if name == "files" else 'ca_file = "pipe"'
    written = written.replace("[scope]", f"{named}\n[scope]") if table == "start" else f"{written}[fetch]\n{named}\n"
    (tmp_path / "sources" / "demo.toml").write_text(written)

    _, errors = load_sources(load_project(tmp_path))

    assert [str(error) for error in errors] == [f'sources/demo.toml: {key}: is a pipe, no file (got "pipe")']

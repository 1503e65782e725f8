"""The configuration set that ``solr configset`` writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchcrawl.cli import dispatch
from searchcrawl.index.opening import find_configset


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        dispatch.main(["searchcrawl", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(autouse=True)
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "guard_output", lambda: None)
    monkeypatch.setattr("searchcrawl.cli.command.guard_output", lambda: None)


def test_configset_when_the_folder_is_new_or_empty_then_written_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()

    codes = [call("solr", "configset", str(tmp_path / name), "--json") for name in ("a/b", "empty")]

    answer = json.loads(capsys.readouterr().out.splitlines()[0])
    assert codes == [0, 0]
    assert answer["files"] == ["lang/folding.txt", "lang/stopwords_en.txt", "schema.xml", "solrconfig.xml"]
    for name in answer["files"]:
        assert (Path(answer["configset"]) / name).read_bytes() == (find_configset() / name).read_bytes()
        assert (tmp_path / "empty" / name).is_file()


@pytest.mark.parametrize("action", ["configset", "restart"])
def test_configset_when_something_is_in_the_way_then_refused_and_untouched(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "schema.xml").write_text("mine")

    codes = [call("solr", action, str(tmp_path / name)) for name in ("full", "full/schema.xml")]

    assert codes == [2, 2]
    assert (tmp_path / "full" / "schema.xml").read_text() == "mine"
    assert ("not empty" if action == "configset" else "unrecognized argument: restart") in capsys.readouterr().err

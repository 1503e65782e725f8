"""Who is told of what: by a command, a webhook and a mail, once for each time that it happens; nothing hangs."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.operations.notifying import notify
from searchcrawl.sources.loading import load_project
from searchcrawl.sources.project import Project
from tests.tcp_server import TcpServer
from tests.threaded_site import QuietHandler, ThreadedSite


def project(root: Path, table: str) -> Project:
    root.mkdir(exist_ok=True)
    (root / "searchcrawl.toml").write_text(f'contact = "a@acme.test"\n[notify]\n{table}\n')
    return load_project(root)


def command(root: Path) -> str:
    """A command that keeps what it is told, one line each."""
    script = root / "tell"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f'#!/bin/sh\n{{ cat; echo "$SEARCHCRAWL_EVENT of $SEARCHCRAWL_SOURCE"; }} >> "{root}/told"\n')
    script.chmod(0o755)
    return f"command = \"'{script}' a word\""


def told(root: Path) -> list[str]:
    path = root / "told"
    return [line for line in path.read_text().splitlines() if line.startswith("{")] if path.exists() else []


class Hook(QuietHandler):
    """Takes what is posted; ``/no`` answers 500, ``/moved`` a redirect."""

    def do_POST(self) -> None:
        self.read_request()
        self.answer({"/no": 500, "/moved": 307}.get(self.path.partition("?")[0], 204), "", Location="/")


class Mailbox(TcpServer):
    """As much of SMTP as one mail needs."""

    def __init__(self) -> None:
        super().__init__()
        self.mails: list[str] = []

    def serve(self, connection: socket.socket) -> None:
        received = connection.makefile("r", encoding="utf-8", newline="")
        connection.sendall(b"220 here\r\n")
        lines: list[str] = []
        while line := received.readline().strip().upper():
            if line == "DATA":
                connection.sendall(b"354 go on\r\n")
                while (text := received.readline()) != ".\r\n":
                    lines.append(text.rstrip("\r\n"))
                self.mails.append("\n".join(lines))
            connection.sendall(b"221 bye\r\n" if line == "QUIT" else b"250 fine\r\n")
            if line == "QUIT":
                return


def test_command_when_something_happens_then_told_once_and_again_after_it_was_over(tmp_path: Path) -> None:
    here = project(tmp_path / "p", command(tmp_path / "c"))

    for events in (
        {"failed": "it failed\nforged"},
        {"failed": "again"},
        {},
        {"failed": "a new one", "quarantine": "q"},
    ):
        notify(here, "demo", events)  # type: ignore[arg-type]  # a dict of literals
    notify(here, "other", {"failed": "another source"})

    found = [json.loads(line) for line in told(tmp_path / "c")]
    assert [(each["event"], each["source"]) for each in found] == [
        ("failed", "demo"), ("failed", "demo"), ("quarantine", "demo"), ("failed", "other"),
    ]  # fmt: skip
    assert found[0]["message"] == "it failed\\nforged"
    assert found[1]["message"] == "a new one"
    assert "failed of demo\n" in (tmp_path / "c" / "told").read_text()


def test_events_when_a_command_and_a_run_judge_them_then_neither_takes_back_what_the_other_told(tmp_path: Path) -> None:
    here = project(tmp_path / "p", command(tmp_path / "c"))

    notify(here, "demo", {"verify": "found"}, judged=("verify",), by="verify")
    notify(here, "demo", {})
    notify(here, "demo", {"verify": "found"}, judged=("verify",), by="verify")
    notify(here, "demo", {}, judged=("verify",), by="verify")
    notify(here, "demo", {"verify": "back"}, judged=("verify",), by="verify")

    assert [json.loads(line)["message"] for line in told(tmp_path / "c")] == ["found", "back"]


def test_events_when_they_are_not_asked_for_then_nobody_is_told(tmp_path: Path) -> None:
    here = project(tmp_path / "p", command(tmp_path / "c") + '\non = ["quarantine"]')

    notify(here, "demo", {"failed": "f", "unreachable": "u"})
    notify(here, "demo", {"quarantine": "q"})

    assert [json.loads(line)["event"] for line in told(tmp_path / "c")] == ["quarantine"]


@pytest.mark.parametrize("script", ["sleep 60 & sleep 60", "trap '' TERM; while :; do sleep 1; done", "exec sleep 60"])
def test_command_when_it_hangs_then_it_is_ended_with_all_it_started_and_tried_again(
    tmp_path: Path, script: str, caplog: pytest.LogCaptureFixture
) -> None:
    marker = f"60.{time.time_ns() % 1_000_000}"
    path = tmp_path / "hang"
    path.write_text(
        "#!/bin/sh\n" + script.replace("sleep 60", f"sleep {marker}").replace("sleep 1;", f"sleep {marker};")
    )
    path.chmod(0o755)
    here = project(tmp_path / "p", f'command = "{path}"')
    begun = time.monotonic()

    notify(here, "demo", {"failed": "x" * 500_000}, limit_seconds=0.5)
    notify(here, "demo", {"failed": "again"}, limit_seconds=0.5)

    assert time.monotonic() - begun < 20
    assert [message.rpartition(": ")[2] for message in caplog.messages] == ["it was ended after 0.5 seconds"] * 2
    # What was killed takes a moment to be gone.
    deadline = time.monotonic() + 10
    while (left := [each for each in Path("/proc").glob("[0-9]*/cmdline") if marker in read(each)]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.05)
    assert left == []


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def test_command_when_it_fails_or_is_missing_then_it_is_logged_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number, name in enumerate(("false", "/nowhere/at/all")):
        here = project(tmp_path / str(number), f'command = "{name}"')
        notify(here, "demo", {"failed": "f"})
        notify(here, "demo", {"failed": "f"})

    assert len(caplog.messages) == 4
    assert "failed of demo could not be told by notify.command: it ended with exit code 1" in caplog.messages
    assert "No such file" in caplog.messages[-1]


def test_webhook_when_something_happens_then_it_gets_json_and_no_redirect_is_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadedSite(Hook) as hook:
        for path in ("yes", "no", "moved"):
            table = f'webhook = "http://127.0.0.1:{hook.port}/{path}?token=c4n4ry-of-a-hook"'
            notify(project(tmp_path / path, table), "demo", {"unreachable": "the index"})
    notify(project(tmp_path / "gone", table), "demo", {"unreachable": "the index"})

    assert [json.loads(each.body)["event"] for each in hook.requests] == ["unreachable"] * 3
    assert [message.rpartition(": ")[2] for message in caplog.messages[:2]] == ["it answered 500", "it answered 307"]
    assert len(caplog.messages) == 3
    assert "c4n4ry" not in caplog.text


def test_mail_when_something_happens_then_it_says_what(tmp_path: Path) -> None:
    with Mailbox() as mailbox:
        here = project(tmp_path / "p", f'mail = "ops@acme.test"\nmail_server = "127.0.0.1:{mailbox.port}"')
        notify(here, "demo", {"quarantine": "7 deletions wait"})
        notify(here, "demo", {"quarantine": "7 deletions wait"})

    [mail] = mailbox.mails
    assert "Subject: searchcrawl: demo: quarantine" in mail
    assert "To: ops@acme.test" in mail
    assert "7 deletions wait" in mail


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ('on = ["failure"]', "notify.on: must be"),
        ("on = []", "notify.on: must not be empty"),
        ('command = "\'x"', "notify.command: not a command: a quote is not closed"),
        ('command = " "', "notify.command: must not be empty"),
        ('webhook = "ftp://x/"', "notify.webhook: "),
        ('mail = "me"', "notify.mail: not a mail address"),
        ('on = ["failed"]', "notify.on: only together with command, webhook or mail: nobody is told"),
        ('mail_server = "a:1"', "notify.mail_server: only together with mail"),
        ('mail = "a@b.c"\nmail_server = "a b"', "notify.mail_server: must be HOST or HOST:PORT"),
        ("sms = 1", "notify.sms: unknown key"),
    ],
)
def test_table_when_a_value_is_wrong_then_refused_by_its_key(tmp_path: Path, table: str, line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        project(tmp_path / "p", table)

    assert str(caught.value).startswith(f"searchcrawl.toml: {line}")


def test_memory_when_it_is_damaged_then_it_is_told_again_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = project(tmp_path / "p", command(tmp_path / "c"))
    here.told_file("demo").parent.mkdir(parents=True)
    here.told_file("demo").write_text("{")

    notify(here, "demo", {"failed": "f"})

    assert len(told(tmp_path / "c")) == 1
    assert "what was told cannot be read" in caplog.text

"""The [login] table: what each type must have and may have, and that nothing of it is shown (C10, X-O3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.config import Source
from searchcrawl.sources.effective import list_effective_values
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys
from searchcrawl.sources.loading import load_project, load_source
from searchcrawl.sources.secrets import redact
from tests.site.client import write_project

FORM = {"type": "form", "url": "http://www.acme.test/login", "username": "me", "password": "0pen-sesame"}
COOKIES = {"type": "cookies", "fields": {"session": "0pen-cookie"}}
BASIC = {"type": "basic", "username": "me", "password": "0pen-sesame"}


def loaded(folder: Path, **login: Any) -> Source:
    write_project(folder, 80, login=login)
    return load_source(load_project(folder), "demo")


@pytest.mark.parametrize(
    "login",
    [
        BASIC,
        BASIC | {"type": "digest", "url": "https://www.acme.test/private/"},
        FORM,
        FORM | {"form": "#login > form", "username_field": "user", "password_field": "pass", "check": "Log out"},
        FORM | {"fields": {"remember": "1", "empty": ""}},
        COOKIES,
        {"type": "cookies", "url": "http://www.acme.test/agree"},
    ],
)
def test_login_when_it_has_what_its_type_needs_then_is_taken(tmp_path: Path, login: dict[str, Any]) -> None:
    source = loaded(tmp_path, **login)

    assert source.login.model_dump(exclude_defaults=True) == login


@pytest.mark.parametrize(
    ("login", "message"),
    [
        ({"username": "me"}, "login.type: is required with username"),
        ({"type": "ntlm"}, 'login.type: must be "basic", "digest", "form", "cookies" or "browser" (got "ntlm")'),
        ({"type": "basic", "username": "me"}, 'login.password: is required with type = "basic"'),
        ({"type": "digest", "password": "x"}, 'login.username: is required with type = "digest"'),
        (BASIC | {"username": "me:too"}, "login.username: must have no colon: it ends the name (RFC 7617)"),
        (BASIC | {"check": "Log out"}, 'login.check: not with type = "basic"'),
        ({"type": "form", "password": "x"}, 'login.url: is required with type = "form"'),
        (FORM | {"url": "ftp://acme.test/"}, 'login.url: not an http or https URL (got "ftp://acme.test/")'),
        (FORM | {"form": "form["}, 'login.form: not a CSS selector (got "form[")'),
        (FORM | {"password": 1234}, "login.password: must be a string"),
        (FORM | {"pasword": "x"}, "login.pasword: unknown key (did you mean password?)"),
        ({"type": "cookies"}, 'login.fields: is required with type = "cookies", or url'),
        (
            {"type": "cookies", "fields": {"session": "0pen; cookie"}},
            "login.fields: a cookie's name and value have no blanks, quotes, commas or semicolons",
        ),
        (COOKIES | {"password": "0pen-sesame"}, 'login.password: not with type = "cookies"'),
    ],
)
def test_login_when_something_is_wrong_then_the_key_is_named_and_no_secret_shown(
    tmp_path: Path, login: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, **login)

    assert str(raised.value) == f"sources/demo.toml: {message}"


def test_login_when_shown_then_password_and_cookies_are_stars(tmp_path: Path) -> None:
    password = list_effective_values(load_project(write_project(tmp_path, 80, login=BASIC)), loaded(tmp_path, **BASIC))
    cookies = list_effective_values(load_project(tmp_path), loaded(tmp_path, **COOKIES))

    assert password["login.password"] == {"value": "***", "origin": "sources/demo.toml"}
    assert password["login.username"]["value"] == "me"
    assert cookies["login.fields"]["value"] == {"session": "***"}
    assert "0pen" not in json.dumps([password, cookies])
    assert redact("Cookie: session=0pen-cookie, 0pen-sesame") == "Cookie: session=***, ***"


def test_password_when_it_comes_from_the_environment_then_its_reference_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_PASSWORD", "0pen-the-door")
    login = {**BASIC, "password": {"env": "DEMO_PASSWORD"}}

    source = loaded(tmp_path, **login)

    assert source.login.password == "0pen-the-door"
    assert list_effective_values(load_project(tmp_path), source)["login.password"]["value"] == {"env": "DEMO_PASSWORD"}


def test_fingerprint_when_the_login_changes_then_another_user_counts_and_another_password_does_not(
    tmp_path: Path,
) -> None:
    prints = [
        compute_fingerprint(loaded(tmp_path, **login), versions={})
        for login in (BASIC, BASIC | {"password": "another"}, BASIC | {"username": "you"})
    ]

    assert find_changed_keys(prints[0], prints[1]) == []
    assert find_changed_keys(prints[1], prints[2]) == ["login.username"]

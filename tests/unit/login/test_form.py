"""The form of a login page, found and filled in (C10)."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from searchcrawl.login.form import FilledForm, FormSettings, LoginFailed, fill_form

URL = "http://www.acme.test/account/login?next=%2F"
PLAIN = "<form method=post><input name=user><input name=pass type=password></form>"


def filled(html: str, *, charset: str = "utf-8", **wanted: Any) -> FilledForm:
    given = {"username": "me", "password": "open sesame", **wanted}
    return fill_form(html, url=URL, charset=charset, settings=FormSettings(**given))


def sent(html: str, **wanted: Any) -> list[tuple[str, str]]:
    return parse_qsl(filled(html, **wanted).body.decode(), keep_blank_values=True)


@pytest.mark.parametrize(
    ("html", "values"),
    [
        (PLAIN, [("user", "me"), ("pass", "open sesame")]),
        (
            (
                '<form method=POST><input type=hidden name=csrf value="t&amp;1"><input type="EMAIL" name=mail value="x">'
                '<input TYPE="Password" name=pw><input type=submit name=go value="Log in"><button name=other>No</button></form>'
            ),
            [("csrf", "t&1"), ("mail", "me"), ("pw", "open sesame"), ("go", "Log in")],
        ),
        (
            (
                "<form method=post action=/search><input name=q></form>"
                "<form method=post><input name=q type=hidden value=1><input name=u><input type=password name=p>"
                "<input type=checkbox name=stay checked><input type=checkbox name=spy value=1><input type=radio name=r value=2 checked>"
                "<select name=realm><option>staff<option selected value=x>external</select><textarea name=t>text</textarea>"
                "<input name=old disabled value=1><input type=file name=f><button type=button name=b>x</button></form>"
            ),
            [("q", "1"), ("u", "me"), ("p", "open sesame"), ("stay", "on"), ("r", "2"), ("realm", "x"), ("t", "text")],
        ),
        (
            "<form method=post><input type=password name=p><input name=u></form>",
            [("p", "open sesame"), ("u", "me")],
        ),
    ],
)
def test_form_when_filled_then_is_sent_as_a_browser_would(html: str, values: list[tuple[str, str]]) -> None:
    assert sent(html) == values


def test_form_when_source_names_fields_then_they_count() -> None:
    html = (
        "<form id=a method=post><input type=password name=x></form><div id=b><form method=post><input name=one><input name=two>"
        "<input type=password name=old><input type=password name=new></form></div>"
    )

    named = {"form": "#b", "username_field": "one", "password_field": "new", "fields": {"two": "2", "extra": "3"}}

    assert sent(html, **named) == [("one", "me"), ("two", "2"), ("old", ""), ("new", "open sesame"), ("extra", "3")]
    assert filled(html, **named).password_field == "new"


def test_form_when_no_user_name_is_given_then_only_the_password_is_set() -> None:
    assert sent(PLAIN, username=None) == [("user", ""), ("pass", "open sesame")]


@pytest.mark.parametrize(
    ("head", "action", "url"),
    [
        ("", "", URL),
        ("", 'action=""', URL),
        ("", 'action="check?x=1#y"', "http://www.acme.test/account/check?x=1"),
        ("", 'action="//me.test/"', "http://me.test/"),
        ('<base href="/other/">', 'action="check"', "http://www.acme.test/other/check"),
    ],
)
def test_form_when_it_has_an_action_then_leads_there(head: str, action: str, url: str) -> None:
    assert filled(head + PLAIN.replace("<form", f"<form {action}")).url == url


def test_form_when_page_has_another_charset_then_is_sent_in_it() -> None:
    form = filled(PLAIN, username="Jürgen 漢", charset="windows-1252")

    assert form.body == b"user=J%FCrgen+%26%2328450%3B&pass=open+sesame"


@pytest.mark.parametrize(
    ("html", "wanted", "message"),
    [
        ("<p>Welcome</p>", {}, "the page has no form with a password field"),
        ("<form method=post><input name=q></form>", {}, "the page has no form with a password field"),
        (PLAIN, {"form": "#login"}, "no form is found by login.form (#login)"),
        ("<form method=post id=f><input name=q></form>", {"form": "#f"}, "the form has no password field with a name"),
        ("<form method=post><input type=password></form>", {}, "the form has no password field with a name"),
        ("<form method=post><input type=password name=p></form>", {}, "the form has no field for the user name"),
        (PLAIN.replace("post", "get"), {}, "the form would send the password in a URL"),
        (PLAIN.replace("method=post", ""), {}, "the form would send the password in a URL"),
        (PLAIN.replace("<form", '<form action="javascript:go()"'), {}, "the form leads to what is no URL"),
    ],
)
def test_form_when_none_will_do_then_says_why_without_secrets(html: str, wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(LoginFailed) as raised:
        filled(html, **wanted)

    assert str(raised.value).startswith(message)
    assert not raised.value.transient
    assert "sesame" not in str(raised.value)


def test_form_when_shown_then_hides_what_it_sends() -> None:
    assert "sesame" not in repr(filled(PLAIN)) + repr(FormSettings(password="open sesame"))

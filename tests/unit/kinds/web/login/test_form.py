"""The form of a login page, found and filled in (C10)."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from searchcrawl.kinds.web.login.form import FilledForm, LoginFailed, fill_form
from searchcrawl.sources.fetch_tables import Login

URL = "http://www.acme.test/account/login?next=%2F"
PLAIN = "<form method=post><input name=user><input name=pass type=password></form>"


def filled(html: str, *, charset: str = "utf-8", **wanted: Any) -> FilledForm:
    given = {"username": "me", "password": "open sesame", **wanted}
    return fill_form(html, url=URL, charset=charset, login=Login(**given))


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
            [
                *(
                    ("q", "1"),
                    ("u", "me"),
                    ("p", "open sesame"),
                    ("stay", "on"),
                    ("r", "2"),
                    ("realm", "x"),
                    ("t", "text"),
                ),
                ("f", ""),
            ],
        ),
        (
            "<form method=post><input type=password name=p><input name=u></form>",
            [("p", "open sesame"), ("u", "me")],
        ),
    ],
)
def test_form_when_filled_then_is_sent_as_a_browser_would(html: str, values: list[tuple[str, str]]) -> None:
    assert sent(html) == values


USER = "<input name=u>"
PASSWORD = "<input type=password name=p>"
_TABLE = f"<tr><td>{USER}<tr><td>{PASSWORD}"


@pytest.mark.parametrize(
    ("html", "others"),
    [
        (f"<table><form method=post>{_TABLE}</form></table><input name=after>", []),
        (f"<table><tr><form method=post><td>{USER}<td>{PASSWORD}</form></tr></table>", []),
        (f"<table><form method=post>{USER}<tr><td>{PASSWORD}<tr><td><input name=x></form></table>", [("x", "")]),
        (f"<input name=x form=f><form id=f method=post>{USER}{PASSWORD}<input name=y form=g></form>", [("x", "")]),
        (f"<form method=post>{USER}{PASSWORD}<div></form><input name=x></div>", [("x", "")]),
        (
            f"<form method=post>{USER}{PASSWORD}<!--</form>--><script>'</form>'</script><input name=x></form>",
            [("x", "")],
        ),
        (
            f"<form method=post>{USER}{PASSWORD}<input name=x value='<form a></form>'></form>",
            [("x", "<form a></form>")],
        ),
        (
            f"<form method=post>{USER}{PASSWORD}<textarea name=x>\n\n</form><input></textarea>",
            [("x", "\r\n</form><input>")],
        ),
        (
            f"<form method=post>{USER}{PASSWORD}<template><form><input name=x></form></template><input name=y>",
            [("y", "")],
        ),
    ],
)
def test_form_when_its_controls_are_elsewhere_then_those_of_a_browser_are_sent(
    html: str, others: list[tuple[str, str]]
) -> None:
    values = sent(html)

    assert sorted(values) == sorted([("u", "me"), ("p", "open sesame"), *others])


@pytest.mark.parametrize(
    ("html", "others"),
    [
        (
            "<fieldset disabled><legend><input name=a></legend><legend><input name=b></legend><input name=c></fieldset>",
            ["a="],
        ),
        ("<fieldset disabled><div><fieldset><legend><input name=a></legend></fieldset></div></fieldset>", []),
        ("<datalist><input name=a></datalist>", []),
        ("<select name=s><option disabled>choose<option value=1>one<option>two</select>", ["s=1"]),
        ("<select name=s><optgroup disabled><option>a</optgroup><option> b \n c </select>", ["s=b c"]),
        ("<select name=s><option selected disabled>choose<option>one</select>", []),
        ("<select name=s><option selected>1<option selected>2</select>", ["s=2"]),
        ("<select name=s multiple><option selected>1<option>2<option selected>3</select>", ["s=1", "s=3"]),
        ("<select name=s multiple><option>1</select><select name=t size=3><option>1</select>", []),
        ("<input type=radio name=r value=1 checked><input type=radio name=r value=2 checked>", ["r=2"]),
        ("<input type=checkbox name=c checked value=''><input type=checkbox name=d>", ["c="]),
        ("<button>Log in</button><button name=b value=1>No</button>", []),
        ("<button type=button name=a>x</button><button name=b value=1>Go</button><input type=submit name=c>", ["b=1"]),
        ("<input type=image name=i src=x><button name=b>Go</button>", ["i.x=0", "i.y=0"]),
        ("<input type=image src=x>", ["x=0", "y=0"]),
        (
            "<input type=hidden name=_charset_><input type=hidden name=h value='a&#10;b'>",
            ["_charset_=utf-8", "h=a\r\nb"],
        ),
    ],
)
def test_form_when_filled_then_only_what_a_browser_would_send_is_sent(html: str, others: list[str]) -> None:
    values = sent(f"<form method=post>{USER}{PASSWORD}{html}</form>")

    assert [f"{name}={value}" for name, value in values[2:]] == others


def test_form_when_its_button_says_where_it_leads_then_that_counts() -> None:
    button = "<input type=submit formaction=/in formmethod=post><button formaction=/other>Other</button>"

    assert filled(f"<form action=/x>{USER}{PASSWORD}{button}").url == "http://www.acme.test/in"


@pytest.mark.parametrize(
    ("attribute", "charset", "sent_as"),
    [
        (" accept-charset='x-unknown latin1'", "utf-8", b"J%FCrgen+%26%2328450%3B"),
        ("", "windows-1252", b"J%FCrgen+%26%2328450%3B"),
        (" accept-charset=''", "utf-16le", b"J%C3%BCrgen+%E6%BC%A2"),
        (" accept-charset=''", "iso-8859-8-i", b"J%26%23252%3Brgen+%26%2328450%3B"),
    ],
)
def test_form_when_it_or_its_page_names_a_charset_then_is_sent_in_it(
    attribute: str, charset: str, sent_as: bytes
) -> None:
    form = filled(PLAIN.replace("<form", f"<form{attribute}"), username="Jürgen 漢", charset=charset)

    assert form.body == b"user=" + sent_as + b"&pass=open+sesame"


TWO = (
    "<form id=a method=post><input type=password name=x></form><div id=b><form method=post><input name=one><input name=two>"
    "<input type=password name=old><input type=password name=new></form></div>"
)
NAMED = {"form": "#b", "username_field": "one", "password_field": "new", "fields": {"two": "2", "extra": "3"}}


@pytest.mark.parametrize(
    ("html", "wanted", "values"),
    [
        (TWO, NAMED, [("one", "me"), ("two", "2"), ("old", ""), ("new", "open sesame"), ("extra", "3")]),
        # What was added for reading it is passed over by a selector.
        (
            f"<div><form method=post>{PASSWORD}</form></div><div><form method=post>{USER}{PASSWORD}</form><p></div>",
            {"form": "form:last-child", "username": None},
            [("p", "open sesame")],
        ),
        # Without a user name only the password is set.
        (PLAIN, {"username": None}, [("user", ""), ("pass", "open sesame")]),
    ],
)
def test_form_when_the_source_names_form_and_fields_then_they_count(
    html: str, wanted: dict[str, Any], values: list[tuple[str, str]]
) -> None:
    assert sent(html, **wanted) == values
    assert filled(html, **wanted).password_field == wanted.get("password_field", values[-1][0])


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
    assert "sesame" not in repr(filled(PLAIN)) + repr(Login(password="open sesame"))

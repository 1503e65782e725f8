from __future__ import annotations

from itertools import product
from typing import Final

import pytest
from webencodings import LABELS

from searchcrawl.html.encoding import decode, find_codec, find_encoding, prescan

JAPANESE = "これは日本語の文書です。東京の天気は晴れ、大阪は雨でした。"


def decoded(body: bytes, content_type: str = "text/html", default_charset: str = "windows-1252") -> tuple[str, str]:
    return decode(body, content_type=content_type, default_charset=default_charset)


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"\xef\xbb\xbfa", "text/html; charset=euc-jp", ("a", "utf-8")),
        ("é".encode("utf-16"), "text/html; charset=utf-8", ("é", "utf-16le")),
        (b"\xfe\xff\x00a", "", ("a", "utf-16be")),
        (b"<meta charset=utf-8>\xe9", "text/html; charset=iso-8859-1", ("<meta charset=utf-8>é", "windows-1252")),
        (b"<meta charset=koi8-r>\xc1", "text/html", ("<meta charset=koi8-r>а", "koi8-r")),
        ("<p>naïve".encode(), "text/html", ("<p>naïve", "utf-8")),
        (b"plain", "text/html", ("plain", "windows-1252")),
        (b"", "", ("", "windows-1252")),
    ],
    ids=["bom-over-header", "utf16-bom", "utf16be-bom", "header-over-meta", "meta", "utf-8", "ascii", "empty"],
)
def test_decode_when_declared_in_several_places_then_order_holds(
    body: bytes, content_type: str, expected: tuple[str, str]
) -> None:
    assert decoded(body, content_type) == expected


@pytest.mark.parametrize(
    "label", ["rot13", "idna", "unicode_escape", "utf-7", "johab", "base64", "zlib", "punycode", "undefined", "x", ""]
)
@pytest.mark.parametrize("where", ["header", "meta"])
def test_decode_when_label_is_unknown_or_unsafe_then_ignores_it(label: str, where: str) -> None:
    meta = f'<meta charset="{label}">' if where == "meta" else ""
    header = f"text/html; charset={label}" if where == "header" else "text/html"
    text = f"{meta}<p>Grüße +AGE- \\u0041"

    assert decoded(text.encode(), header) == (text, "utf-8")


def test_decode_when_declaration_lies_then_replaces_what_does_not_fit() -> None:
    text, charset = decoded(b"<p>caf\xe9 ol\xe9", "text/html; charset=utf-8")

    assert (text, charset) == ("<p>caf\ufffd ol\ufffd", "utf-8")


CHINESE = "中文网页内容测试，这是一个简体中文的页面。我们公司的产品介绍在这里。"
RUSSIAN = "Русский текст страницы для проверки кодировки, в котором есть несколько слов."
FRENCH = "Été à la forêt, où l’élève préféré a mangé des crêpes déjà préparées."


@pytest.mark.parametrize(
    ("text", "codec"),
    [(CHINESE, "gbk"), (JAPANESE, "shift_jis"), (JAPANESE, "euc_jp"), (RUSSIAN, "cp1251"), (FRENCH, "cp1252")],
)
@pytest.mark.parametrize("where", ["header", "meta"])
def test_decode_when_declared_as_utf8_but_in_nothing_like_it_then_it_is_detected(
    text: str, codec: str, where: str
) -> None:
    page = f"<meta charset=utf-8><title>{text}</title>" if where == "meta" else f"<title>{text}</title>"

    read, _ = decoded(page.encode(codec), "text/html; charset=utf-8" if where == "header" else "text/html")

    assert read == page


def test_decode_when_the_header_is_plainly_wrong_then_the_meta_element_counts() -> None:
    page = f"<meta charset=koi8-r>{RUSSIAN}"

    assert decoded(page.encode("koi8-r"), "text/html; charset=utf-8") == (page, "koi8-r")


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1251", "gbk", "shift_jis"])
@pytest.mark.parametrize("text", [CHINESE, JAPANESE, RUSSIAN, FRENCH])
def test_decode_when_utf8_is_declared_as_something_else_then_it_is_utf8(text: str, label: str) -> None:
    assert decoded(text.encode(), f"text/html; charset={label}") == (text, "utf-8")


def test_decode_when_utf8_has_broken_parts_then_it_is_still_utf8() -> None:
    body = RUSSIAN.encode() + b"\xe9" * 20

    assert decoded(body, "text/html; charset=utf-8") == (RUSSIAN + "\ufffd" * 20, "utf-8")


@pytest.mark.parametrize(
    ("text", "codec"), [(CHINESE, "gbk"), (JAPANESE, "shift_jis"), (RUSSIAN, "cp1251"), (FRENCH, "cp1252")]
)
def test_decode_when_the_declaration_is_right_then_it_counts(text: str, codec: str) -> None:
    assert decoded(text.encode(codec), f"text/html; charset={codec}")[0] == text


@pytest.mark.parametrize("codec", ["euc_jp", "shift_jis", "iso2022_jp"])
def test_decode_when_japanese_is_undeclared_then_finds_encoding(codec: str) -> None:
    page = f"<html><head><title>{JAPANESE[:8]}</title></head><body><p>{JAPANESE}</p></body></html>"

    text, charset = decoded(page.encode(codec))

    assert (text, charset.replace("-", "").replace("_", "")) == (page, codec.replace("_", ""))


@pytest.mark.parametrize(("codec", "label"), [("euc_jp", "x-euc-jp"), ("cp932", "Shift_JIS"), ("cp932", "x-sjis")])
@pytest.mark.parametrize("where", ["header", "meta"])
def test_decode_when_japanese_is_declared_then_reads_it(codec: str, label: str, where: str) -> None:
    meta = f'<meta http-equiv="Content-Type" content="text/html; charset={label}">' if where == "meta" else ""
    page = meta + JAPANESE

    text, _ = decoded(page.encode(codec), f'text/html; charset="{label}"' if where == "header" else "text/html")

    assert text == page


def test_decode_when_euc_jp_has_vendor_characters_then_reads_them() -> None:
    body = "第".encode("euc_jp") + b"\xad\xa1"

    assert decoded(body, "text/html; charset=euc-jp") == ("第①", "euc-jp")


@pytest.mark.parametrize(
    "text",
    [
        "Die Straße nach München führt über die Brücke, und die Größe der Häuser überrascht viele Gäste.",
        "Les élèves français préfèrent être à la plage pendant l'été, où la mer est très agréable.",
        "A educação em Portugal não é tão difícil: há opções para crianças e avós em várias regiões.",
    ],
    ids=["german", "french", "portuguese"],
)
def test_decode_when_western_is_undeclared_then_is_windows_1252(text: str) -> None:
    assert decoded(f"<p>{text}</p>".encode("cp1252")) == (f"<p>{text}</p>", "windows-1252")


def test_decode_when_default_is_configured_then_ascii_takes_its_name() -> None:
    assert decoded(b"abc", default_charset="EUC-JP") == ("abc", "euc-jp")


def test_decode_text_when_it_quotes_a_meta_then_does_not_believe_it() -> None:
    body = "<meta charset=koi8-r> é".encode()

    assert decode(body, content_type="text/plain", default_charset="windows-1252", markup=False)[1] == "utf-8"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<meta charset=utf-16le>", "utf-8"),
        (b"<meta charset=x-user-defined>", "windows-1252"),
        (b"<meta charset=bogus><meta charset=koi8-r>", "koi8-r"),
        (b"<!-- <meta charset=koi8-r> --><meta charset=big5>", "big5"),
        (b"<a title='<meta charset=koi8-r>'><meta charset=gbk>", "gbk"),
        (b"<meta http-equiv=content-type content='x;CHARSET = \"euc-kr\"'>", "euc-kr"),
        (b"<meta content='text/html; charset=euc-kr'>", None),
        (b"<meta charset=koi8-r", None),
        (b"<meta charset='koi8-r", None),
        (b"<?xml version='1.0' encoding='EUC-JP'?><html>", "euc-jp"),
        (b"<?xml version='1.0' encoding='rot13'?><meta charset=big5>", "big5"),
        (b" " * 9000 + b"<meta charset=koi8-r>", "koi8-r"),
    ],
)
def test_prescan_when_given_head_then_follows_the_standard(body: bytes, expected: str | None) -> None:
    assert prescan(body) == expected


def test_labels_when_looked_up_then_each_has_a_codec() -> None:
    encodings = sorted({name for label in LABELS if (name := find_encoding(label)) is not None})

    assert [b"a".decode(find_codec(name)) for name in encodings if not name.startswith("utf-16")] == ["a"] * 37
    assert [find_encoding(name) for name in encodings] == encodings


@pytest.mark.parametrize("label", ["replacement", "hz-gb-2312", "iso-2022-cn", "iso-2022-kr", "csiso2022kr"])
def test_labels_when_the_standard_reads_nothing_of_them_then_are_unknown(label: str) -> None:
    assert find_encoding(label) is None


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1252", "windows-1250", "iso-8859-2", "iso-8859-15", "latin5"])
@pytest.mark.parametrize(
    "text", ["© 2024", "50 €", "it’s", "a – b", "café", "l’été", "Ärger", "Größe", "100\xa0km", "ACME™", "❱", "Îți"]
)
@pytest.mark.parametrize("markup", [True, False])
def test_decode_when_one_letter_of_utf8_is_declared_as_latin_then_it_is_utf8(
    text: str, label: str, *, markup: bool
) -> None:
    body = f"A page of words. {text}".encode()

    content_type = f"text/plain; charset={label}"

    assert decode(body, content_type=content_type, default_charset="windows-1252", markup=markup)[1] == "utf-8"


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("AMANHÃ»", "cp1252"),
        ("AMANHÃ…", "cp1252"),
        ("Å\xa0bruke", "cp1252"),
        ("LE CAFÉ\xa0»", "cp1252"),
        ("Spaß“", "cp1252"),
        ("CAFÉ® CAFÉ® CAFÉ® CAFÉ® CAFÉ® CAFÉ®", "cp1252"),
        ("Perché\xa0… «è»", "cp1252"),
        ("SPÓŁKA, KÓŁKO, PÓŁ, SPÓŁKA, SPÓŁKA, SPÓŁKA", "iso8859_2"),
        ("Ā®", "cp1257"),
        ("Ä\xa0Ö\xa0Ü\xa0" * 3, "cp1252"),
        ("Ç\xa0Ğ\xa0İ\xa0Ö\xa0Ş\xa0Ü\xa0" * 3, "cp1254"),
        ("синхалски", "cp866"),
        ("чоктавски", "cp866"),
        ("เทงเจคาซัคสถาน", "cp874"),
        ("联通", "gbk"),
        ("한국", "euc_kr"),
    ],
)
@pytest.mark.parametrize("markup", [True, False])
def test_decode_when_few_letters_have_the_form_of_utf8_by_chance_then_what_is_declared_counts(
    text: str, codec: str, *, markup: bool
) -> None:
    label = {"cp866": "ibm866", "cp874": "windows-874", "iso8859_2": "iso-8859-2", "euc_kr": "euc-kr"}.get(codec, codec)

    content_type = f"text/plain; charset={label}"
    found = decode(text.encode(codec), content_type=content_type, default_charset="windows-1252", markup=markup)

    assert found[0] == text


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1251", "gbk", "shift_jis"])
def test_decode_when_utf8_with_a_broken_part_is_declared_as_something_else_then_it_is_utf8(label: str) -> None:
    text = FRENCH * 10
    body = text.encode() + "é ".encode("cp1252")

    assert decoded(body, f"text/html; charset={label}") == (f"{text}\ufffd ", "utf-8")


def test_decode_when_a_latin_page_has_some_utf8_then_what_is_declared_counts() -> None:
    body = FRENCH.encode("cp1252") * 3 + "é".encode()

    assert decoded(body, "text/html; charset=iso-8859-1") == (FRENCH * 3 + "Ã©", "windows-1252")


@pytest.mark.parametrize("label", ["utf-16", "utf-16le", "utf-16be"])
def test_decode_when_a_text_without_a_nul_is_declared_as_utf16_then_it_is_utf8(label: str) -> None:
    text = f"<p>{RUSSIAN} and words</p>"

    assert decoded(text.encode(), f"text/html; charset={label}") == (text, "utf-8")


@pytest.mark.parametrize("text", [CHINESE * 3, JAPANESE * 3, f"{CHINESE}\n" * 3, "<p>words</p>" * 9])
@pytest.mark.parametrize("label", ["utf-16le", "utf-16be"])
def test_decode_when_utf16_is_declared_and_right_then_it_counts(text: str, label: str) -> None:
    assert decoded(text.encode(label), f"text/html; charset={label}") == (text, label)


@pytest.mark.parametrize(
    ("text", "codec"), [(CHINESE, "gbk"), (JAPANESE, "shift_jis"), (RUSSIAN, "cp1251"), (FRENCH, "cp1252")]
)
def test_decode_text_when_declared_as_utf8_but_in_nothing_like_it_then_it_is_detected(text: str, codec: str) -> None:
    found = decode(
        text.encode(codec), content_type="text/csv; charset=utf-8", default_charset="windows-1252", markup=False
    )

    assert found[0] == text


TEXTS: Final = {
    "german": "Die Straße nach München führt über die Brücke. Größere Häuser überraschen dort viele Gäste, "
    "und die Bäckerei an der Ecke öffnet schon früh. Später hört man die Glocken läuten, während Schüler "
    "über den Platz laufen und ältere Leute auf den Bänken sitzen. ",
    "french": "Les élèves préfèrent être à la plage pendant l'été. La mère de François a acheté du pain à la "
    "boulangerie située près du théâtre, où l'on répète déjà la pièce. Après le dîner, ils reviennent "
    "fatigués mais très heureux de leur journée passée dehors. ",
    "portuguese": "A educação não é tão difícil. Há opções para crianças e avós em várias regiões, e as "
    "estações do comboio são fáceis de alcançar. Amanhã começará a exposição de pintura, à qual irão "
    "também os irmãos que vivem no interior do país. ",
    "spanish": "El año pasado la señora Núñez viajó a España. Después de la comida, los niños jugaron en el "
    "jardín mientras su tío leía el periódico. ¿Quién podría decir cuándo llegará el próximo avión? Mañana "
    "habrá más información en la página de la compañía. ",
    "italian": "La città è così bella perché c'è il mare. Più tardi andrò al caffè con papà, e lunedì sarò già "
    "all'università. Nessuno può dire quando verrà la libertà di cui si parlò martedì, però qualcosa "
    "cambierà nella società e nelle comunità più piccole. ",
    "swedish": "På våren går många människor längs ån. Där står gamla träd, och bänkarna är målade i blått. "
    "Några småbåtar ligger förtöjda vid bryggan, medan fåglarna sjunger över vattnet. Försäljaren på torget "
    "säljer färska jordgubbar från Öland. ",
    "danish": "Når foråret kommer, går børnene ud på gaden. Søren købte æbler og smør på torvet, før han "
    "kørte hjem over åen. Naboens hund gøede højt, men ingen blev bange. Om aftenen læser bedstemor en bog "
    "om øerne og de første sømænd. ",
}
LENGTHS: Final = (40, 120, 400, 2_000)
#: Too short to tell: letters of Central Europe are as likely.
OPEN: Final = {("spanish", 40, "html"), ("spanish", 40, "plain")}


def page_of(language: str, length: int, form: str) -> str:
    text = (TEXTS[language] * 20)[:length]
    if form == "plain":
        return text
    return f"<html><head><title>{text[:20]}</title></head><body><p>{text}</p></body></html>"


def test_d5_western_pages_when_they_declare_nothing_then_their_letters_are_right() -> None:
    cases = set(product(TEXTS, LENGTHS, ("html", "plain")))

    wrong = {
        case
        for case in cases
        if decode(page_of(*case).encode("cp1252"), content_type="", default_charset="windows-1252")[0] != page_of(*case)
    }

    assert len(cases) == 56
    assert wrong == OPEN


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("cp1251", "Библиотека открыта с девяти. Сайт: www.acme.test, тел. 5-45, формат PDF и HTML. "),
        ("koi8_r", "Весной дети идут на улицу, и соседская собака громко лает. Смотри www.acme.test. "),
        ("cp1253", "Η βιβλιοθήκη είναι ανοιχτή από τις εννέα. Δείτε www.acme.test και αρχεία PDF. "),
        ("cp1255", "הספרייה פתוחה מתשע בבוקר. ראו www.acme.test וקובצי PDF. "),
    ],
)
@pytest.mark.parametrize("times", [1, 10])
def test_d5_page_of_another_script_when_it_declares_nothing_then_is_not_taken_for_latin(
    codec: str, text: str, times: int
) -> None:
    page = f"<p>{text * times}</p>"

    assert decode(page.encode(codec), content_type="", default_charset="windows-1252")[0] == page

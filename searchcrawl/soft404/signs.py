"""What makes a page look like a placeholder page, told from the page alone: only whether its host is to be asked (L9, 965).

No sign decides about a page: the answer of the host to unknown paths does (``signature``). A sign that is missing costs a
look later, one too many costs two requests of a host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import xxhash

from searchcrawl.items import Page
from searchcrawl.rules.turned_pages import is_plain, split_url, words_of

#: Texts up to this length are compared by their words, longer ones by their longest lines.
_SHORT_CHARACTERS: Final = 1_000
_MOST_WORDS: Final = 24
_MOST_LINES: Final = 8
#: Shorter words of the URL are words of any line.
_ECHO_CHARACTERS: Final = 4
#: A line is told by the words with which it begins.
_BEGINNING: Final = 60
#: How many characters of a text are looked at.
_MAX_CHARACTERS: Final = 32_768
#: Two texts are alike if they have so much in common: of their words, or of the characters of their longest lines.
_ALIKE: Final = 0.75
#: A page with fewer words may be no page, and a known one that has fewer now may have lost its text.
_FEW_WORDS: Final = 40
_FEW_WORDS_OF_KNOWN: Final = 60

#: What placeholder pages say, in a title, a heading or a short text: no such page, closed for repairs, not allowed.
_NOTICES: Final = (
    *("404", "not found", "no such page", "does not exist", "doesn't exist", "no longer exist", "no longer available"),
    *("not available", "unavailable", "cannot be found", "can't be found", "could not be found", "couldn't find"),
    *(
        "could not find",
        "can't find",
        "not here any",
        "page is missing",
        "page missing",
        "has been removed",
        "was removed",
    ),
    *(
        "maintenance",
        "repair",
        "under construction",
        "coming soon",
        "be back soon",
        "try again",
        "something went wrong",
    ),
    *("an error", "error occurred", "internal error", "access denied", "forbidden", "not authorized", "not authorised"),
    *("session has expired", "session expired", "please log in", "please login", "please sign in", "must be logged in"),
    *("domain is for sale", "domain may be for sale", "domain is parked", "account suspended", "site suspended"),
    *(
        "nicht gefunden",
        "existiert nicht",
        "nicht vorhanden",
        "nicht verfügbar",
        "nicht mehr verfügbar",
        "gibt es nicht",
    ),
    *("wartungsarbeiten", "wartung", "im aufbau", "zugriff verweigert", "bitte melden sie sich an", "bitte anmelden"),
    *("introuvable", "n'existe pas", "n'existe plus", "non trouvée", "pas été trouvée", "indisponible", "accès refusé"),
    *("no encontrada", "no encontrado", "no existe", "no se encuentra", "no se ha encontrado", "mantenimiento"),
    *("non trovata", "non trovato", "non esiste", "non disponibile", "manutenzione", "não encontrada", "não existe"),
    *("manutenção", "niet gevonden", "bestaat niet", "onderhoud", "nie znaleziono", "nie istnieje", "nenalezen"),
    *("neexistuje", "hittades inte", "finns inte", "ikke fundet", "findes ikke", "ikke funnet", "finnes ikke"),
    *("ei löytynyt", "ei löydy", "nem található", "nu a fost găsit", "nu există", "bulunamadı", "δεν βρέθηκε"),
    *("не найден", "не существует", "технические работы", "не знайдено", "не існує", "не е намерен", "nije pronađen"),
    *("未找到", "找不到", "不存在", "没有找到", "沒有找到", "维护", "見つかりません", "存在しません", "メンテナンス"),
    *("찾을 수 없", "존재하지 않", "점검", "غير موجود", "לא נמצא", "không tìm thấy", "tidak ditemukan", "ไม่พบ"),
)
#: What the title of a login page says; menus say it on every page, so a text does not count.
_LOGINS: Final = (
    *("log in", "login", "log on", "sign in", "sign-in", "signin", "single sign", "authentication", "password"),
    *("anmelden", "anmeldung", "einloggen", "connexion", "se connecter", "iniciar sesión", "acceso", "accedi"),
    *(
        "iniciar sessão",
        "inloggen",
        "aanmelden",
        "zaloguj",
        "logowanie",
        "přihlášení",
        "logga in",
        "log ind",
        "logg inn",
    ),
    *("kirjaudu", "bejelentkezés", "autentificare", "giriş", "вход", "увійти", "登录", "登入", "ログイン", "로그인"),
)


def looks_like_notice(page: Page) -> bool:
    """Whether a page says in its title, in a heading or in a short text what placeholder pages say."""
    title = _fold(page.title)
    if any(words in title for words in _LOGINS) or any(words in title for words in _NOTICES):
        return True
    headings, text = "\n".join(page.headings[:3])[:_SHORT_CHARACTERS], page.all_text
    said = _fold(f"{headings}\n{text}" if len(text) <= _SHORT_CHARACTERS else headings)
    return any(words in said for words in _NOTICES)


def is_nearly_empty(page: Page, *, is_known: bool) -> bool:
    """Whether a page has next to no words; ``is_known``: it had a document before."""
    text, most = page.all_text, _FEW_WORDS_OF_KNOWN if is_known else _FEW_WORDS
    return len(text) <= _SHORT_CHARACTERS and sum(map(bool, words_of(text))) < most


def _fold(text: str) -> str:
    return text[:_MAX_CHARACTERS].lower().replace("\u2019", "'")


class Outline(NamedTuple):
    """So much of a text that one can tell whether another one is like it, in some hundred bytes.

    ``parts`` are hashes, and ``weights`` what each counts: of the words of a short text the smallest ones, each 1, of a long
    text those of the beginnings of its longest lines, each the length of the line. Words of the URL, which the page may
    repeat, are no part of it, nor are numbers. A template counts little in a long text: its lines are those of menus.
    """

    is_short: bool
    parts: bytes
    weights: bytes

    @classmethod
    def of(cls, text: str, *, asked: str) -> Self:
        """The outline of the answer to ``asked``."""
        echoes = {"", *(word for word in split_url(asked) if is_plain(word))}
        if len(text) <= _SHORT_CHARACTERS:
            hashes = sorted(map(_hash, set(words_of(text)).difference(echoes)))[:_MOST_WORDS]
            return cls(True, b"".join(value.to_bytes(4, "big") for value in hashes), b"")
        echoes = {word for word in echoes if len(word) >= _ECHO_CHARACTERS}
        lines = sorted(set(text[:_MAX_CHARACTERS].split("\n")), key=len)[-_MOST_LINES:]
        weights = b"".join(min(len(line), 0xFFFF).to_bytes(2, "big") for line in lines)
        beginnings = (
            " ".join(word for word in line[:_BEGINNING].lower().split() if word.isalpha() and word not in echoes)
            for line in lines
        )
        return cls(False, b"".join(_hash(beginning).to_bytes(4, "big") for beginning in beginnings), weights)

    @property
    def key(self) -> bytes:
        """What texts that are alike have in common, mostly: the smallest hash, or that of the longest line."""
        return self.parts[:4] if self.is_short else self.parts[-4:]

    def is_alike(self, other: Outline) -> bool:
        """Whether the texts are the same, or nearly so; one without words is like none."""
        if self.is_short is not other.is_short or not self.parts or not other.parts:
            return False
        if self == other:
            return True
        mine, others = self._list_parts(), other._list_parts()
        if self.is_short:
            # The smallest hashes of both together are a sample of all words (Broder 1997).
            sample = sorted({**mine, **others})[:_MOST_WORDS]
            return sum(part in mine and part in others for part in sample) >= _ALIKE * len(sample)
        common = sum(weight for part, weight in mine.items() if part in others)
        return common >= _ALIKE * max(sum(mine.values()), sum(others.values()))

    def _list_parts(self) -> dict[bytes, int]:
        parts: Sequence[bytes] = [self.parts[at : at + 4] for at in range(0, len(self.parts), 4)]
        if self.is_short:
            return dict.fromkeys(parts, 1)
        weights = (int.from_bytes(self.weights[at : at + 2], "big") for at in range(0, len(self.weights), 2))
        return dict(zip(parts, weights, strict=True))


def _hash(text: str) -> int:
    return xxhash.xxh32_intdigest(text.encode("utf-8", "surrogatepass"))

"""Western pages that declare nothing: seven languages, short and long, with markup and without (C9, X-D5)."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from searchcrawl.html.encoding import decode

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

"""Short texts in many languages, written for these tests: by language, some of a line each."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "en": (
        "The library opens at nine in the morning and closes at six, except on public holidays.",
        "Please send us the signed contract before the end of the month so that we can begin.",
        "Our new bridge carries twenty thousand cars a day across the river.",
    ),
    "de": (
        "Die Bibliothek öffnet um neun Uhr und schließt um achtzehn Uhr, außer an Feiertagen.",
        "Bitte senden Sie uns den unterschriebenen Vertrag vor dem Ende des Monats zurück.",
        "Unsere neue Brücke trägt jeden Tag zwanzigtausend Autos über den Fluss.",
    ),
    "fr": (
        "La bibliothèque ouvre à neuf heures et ferme à dix-huit heures, sauf les jours fériés.",
        "Veuillez nous renvoyer le contrat signé avant la fin du mois pour que nous puissions commencer.",
        "Notre nouveau pont porte chaque jour vingt mille voitures au-dessus du fleuve.",
    ),
    "es": (
        "La biblioteca abre a las nueve de la mañana y cierra a las seis, excepto los días festivos.",
        "Por favor, envíenos el contrato firmado antes de fin de mes para que podamos empezar.",
        "Nuestro nuevo puente lleva cada día veinte mil coches al otro lado del río.",
    ),
    "it": (
        "La biblioteca apre alle nove del mattino e chiude alle sei, tranne nei giorni festivi.",
        "Vi preghiamo di inviarci il contratto firmato entro la fine del mese per poter cominciare.",
        "Il nostro nuovo ponte porta ogni giorno ventimila automobili dall'altra parte del fiume.",
    ),
    "pt": (
        "A biblioteca abre às nove horas da manhã e fecha às seis, exceto nos feriados.",
        "Por favor, envie-nos o contrato assinado antes do fim do mês para que possamos começar.",
        "A nossa nova ponte leva todos os dias vinte mil carros para o outro lado do rio.",
    ),
    "nl": (
        "De bibliotheek gaat om negen uur open en sluit om zes uur, behalve op feestdagen.",
        "Stuur ons het ondertekende contract voor het einde van de maand terug, zodat wij kunnen beginnen.",
        "Onze nieuwe brug draagt elke dag twintigduizend auto's over de rivier.",
    ),
    "sv": (
        "Biblioteket öppnar klockan nio på morgonen och stänger klockan sex, utom på helgdagar.",
        "Var snäll och skicka tillbaka det undertecknade avtalet före månadens slut så att vi kan börja.",
        "Vår nya bro bär varje dag tjugotusen bilar över floden.",
    ),
    "da": (
        "Biblioteket åbner klokken ni om morgenen og lukker klokken seks, undtagen på helligdage.",
        "Send os venligst den underskrevne kontrakt inden udgangen af måneden, så vi kan begynde.",
        "Vores nye bro bærer hver dag tyve tusind biler over floden.",
    ),
    "fi": (
        "Kirjasto avataan aamulla yhdeksältä ja suljetaan kuudelta, paitsi pyhäpäivinä.",
        "Lähettäkää meille allekirjoitettu sopimus ennen kuukauden loppua, jotta voimme aloittaa.",
        "Uusi siltamme kantaa joka päivä kaksikymmentätuhatta autoa joen yli.",
    ),
    "pl": (
        "Biblioteka jest otwarta od dziewiątej rano do szóstej wieczorem, z wyjątkiem dni świątecznych.",
        "Prosimy o przesłanie podpisanej umowy przed końcem miesiąca, abyśmy mogli zacząć.",
        "Nasz nowy most codziennie przenosi dwadzieścia tysięcy samochodów przez rzekę.",
    ),
    "cs": (
        "Knihovna se otevírá v devět hodin ráno a zavírá v šest, kromě svátků.",
        "Pošlete nám prosím podepsanou smlouvu před koncem měsíce, abychom mohli začít.",
        "Náš nový most denně převede dvacet tisíc aut přes řeku.",
    ),
    "hu": (
        "A könyvtár reggel kilenckor nyit és este hatkor zár, kivéve az ünnepnapokat.",
        "Kérjük, küldje vissza az aláírt szerződést a hónap vége előtt, hogy elkezdhessük.",
        "Az új hidunkon naponta húszezer autó megy át a folyó fölött.",
    ),
    "ro": (
        "Biblioteca se deschide la ora nouă dimineața și se închide la ora șase, cu excepția sărbătorilor.",
        "Vă rugăm să ne trimiteți contractul semnat înainte de sfârșitul lunii, ca să putem începe.",
        "Noul nostru pod trece zilnic douăzeci de mii de mașini peste râu.",
    ),
    "tr": (
        "Kütüphane sabah saat dokuzda açılır ve akşam altıda kapanır, resmî tatiller hariç.",
        "Başlayabilmemiz için lütfen imzalı sözleşmeyi ay sonundan önce bize gönderin.",
        "Yeni köprümüz her gün yirmi bin arabayı nehrin öbür yakasına taşıyor.",
    ),
    "ru": (
        "Библиотека открывается в девять часов утра и закрывается в шесть, кроме праздничных дней.",
        "Пожалуйста, пришлите нам подписанный договор до конца месяца, чтобы мы могли начать.",
        "Наш новый мост каждый день пропускает двадцать тысяч машин через реку.",
    ),
    "uk": (
        "Бібліотека відчиняється о дев'ятій годині ранку і зачиняється о шостій, крім святкових днів.",
        "Будь ласка, надішліть нам підписаний договір до кінця місяця, щоб ми могли почати.",
        "Наш новий міст щодня пропускає двадцять тисяч машин через річку.",
    ),
    "el": (
        "Η βιβλιοθήκη ανοίγει στις εννέα το πρωί και κλείνει στις έξι, εκτός από τις αργίες.",
        "Παρακαλούμε στείλτε μας το υπογεγραμμένο συμβόλαιο πριν από το τέλος του μήνα.",
        "Η νέα μας γέφυρα μεταφέρει κάθε μέρα είκοσι χιλιάδες αυτοκίνητα πάνω από το ποτάμι.",
    ),
    "he": (
        "הספרייה נפתחת בתשע בבוקר ונסגרת בשש בערב, מלבד בימי חג.",
        "אנא שלחו לנו את החוזה החתום לפני סוף החודש כדי שנוכל להתחיל.",
        "הגשר החדש שלנו מעביר בכל יום עשרים אלף מכוניות מעל הנהר.",
    ),
    "ar": (
        "تفتح المكتبة في الساعة التاسعة صباحا وتغلق في السادسة مساء ما عدا أيام العطل.",
        "يرجى إرسال العقد الموقع إلينا قبل نهاية الشهر حتى نتمكن من البدء.",
        "يحمل جسرنا الجديد كل يوم عشرين ألف سيارة فوق النهر.",
    ),
    "ja": (
        "図書館は祝日を除いて、朝九時に開き、夕方六時に閉まります。",
        "始められるように、署名した契約書を月末までに送ってください。",
        "私たちの新しい橋は、毎日二万台の車が川を渡っています。",
    ),
    "ko": (
        "도서관은 공휴일을 제외하고 아침 아홉 시에 열고 저녁 여섯 시에 닫습니다.",
        "시작할 수 있도록 서명한 계약서를 월말까지 보내 주십시오.",
        "우리의 새 다리는 매일 이만 대의 자동차가 강을 건너게 합니다.",
    ),
    "zh": (
        "图书馆早上九点开门，晚上六点关门，节假日除外。",
        "请在月底之前把签好的合同寄给我们，以便我们开始工作。",
        "我们的新桥每天有两万辆汽车过河。",
    ),
    "th": (
        "ห้องสมุดเปิดเวลาเก้าโมงเช้าและปิดเวลาหกโมงเย็น ยกเว้นวันหยุดราชการ",
        "โปรดส่งสัญญาที่ลงนามแล้วให้เราก่อนสิ้นเดือนเพื่อที่เราจะได้เริ่มงาน",
        "สะพานใหม่ของเรารองรับรถยนต์สองหมื่นคันข้ามแม่น้ำทุกวัน",
    ),
}

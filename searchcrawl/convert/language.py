"""Which language a text is written in, where nobody says so (D5, C9).

Japanese, Korean and Chinese are told by their scripts. For the others resiliparse compares the text
with profiles of a hundred languages, which takes some 20 µs; it is right where there are a few
sentences. Of a single sentence chardet, which takes ten times as long, knows more.
"""

from __future__ import annotations

import re
from typing import Final

#: So much of a text is looked at.
MAX_CHARS: Final = 1_500
#: Fewer letters than this are names and numbers, of no language.
MIN_LETTERS: Final = 24
#: Shorter texts are those of which chardet knows more.
SHORT_CHARS: Final = 300

_KANA: Final = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HANGUL: Final = re.compile("[\uac00-\ud7a3]")
_IDEOGRAPH: Final = re.compile("[\u4e00-\u9fff]")
#: So much of it tells the script.
_SCRIPT_CHARS: Final = 400
_CJK_LETTERS: Final = 8
_MIN_CJK_SHARE: Final = 0.2
_MIN_KANA_SHARE: Final = 0.1


def detect_language(text: str) -> str:
    """The code of a text's language (ISO 639-1, lower case), empty where it cannot be told."""
    head = text[:MAX_CHARS]
    if not head.isascii() and (language := _by_script(head[:_SCRIPT_CHARS])):
        return language
    if len(head) < SHORT_CHARS and sum(map(str.isalpha, head)) < MIN_LETTERS:
        return ""
    # Both are loaded for the first page that does not say it.
    if len(head) < SHORT_CHARS:
        import chardet  # noqa: PLC0415  # heavy

        return chardet.detect(head.encode("utf-8", "replace"))["language"] or ""
    from resiliparse.parse.lang import detect_fast  # noqa: PLC0415  # heavy

    language, _ = detect_fast(head)
    return "" if language == "unknown" else language


def _by_script(head: str) -> str:
    """ja, ko or zh where a good part of the text is in their characters; empty for other scripts."""
    kana, hangul, ideographs = (len(script.findall(head)) for script in (_KANA, _HANGUL, _IDEOGRAPH))
    together = kana + hangul + ideographs
    if together < _CJK_LETTERS or together < len(head) * _MIN_CJK_SHARE:
        return ""
    if hangul > kana + ideographs:
        return "ko"
    return "ja" if kana >= together * _MIN_KANA_SHARE else "zh"

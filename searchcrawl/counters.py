"""The counters of a run: what ``status`` and the end of a crawl show (J1).

A stage adds to one with ``Run.count``, or with ``Run.write_counted`` in the transaction of what it counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

#: The counter of all URLs of a run; those of their classes are named in ``store.urls.url_classes``.
DISCOVERED: Final = "discovered"
#: Of the browser of sources that render.
RENDERED: Final = "rendered"
RENDERED_MS: Final = "rendered_ms"
RENDERED_BYTES: Final = "rendered_bytes"
INCOMPLETE: Final = "incomplete"
#: Of sources that are listed.
NOT_CONVERTED: Final = "not_converted"
#: In the order in which they are shown, each with its meaning.
COUNTS: Final[Mapping[str, str]] = {
    "to_fetch": "URLs that the run still has to visit: new, due, under way, to be tried again.",
    "fetched": "URLs whose last visit in the run brought an answer that was taken in, changed or not, also a redirect.",
    "fetch_failures": "URLs whose last visit in the run failed, those whose conversion failed included.",
    "rejected": "URLs that a rule refused in the run, without a request.",
    "discovered": "All URLs of the run: at any moment the sum of the four counters above.",
    "not_modified": "Pages that the server called unchanged (304).",
    "unchanged": "Pages that were fetched again, and whose content is as before.",
    "new": "Documents that were not known before.",
    "changed": "Known documents in which an indexed field differs.",
    "deleted": "Documents that were removed from the index, without copies that only the same run had sent.",
    "indexed": "Documents that the index acknowledged.",
    "non_indexable": "Pages that were fetched and are not to be indexed.",
    "conversion_failures": "Pages that could not be converted; they are in fetch_failures, too.",
    "not_converted": "Files and rows whose text was taken from the cache, as their bytes were read before, here or under another URL.",
    "duplicates": "Pages that are copies of another one, which is indexed in their place.",
    "rendered": "Pages that a browser rendered, those included that were only looked at to see what it brings.",
    "rendered_ms": "Milliseconds that this took; several pages at once count several times.",
    "rendered_bytes": "Bytes that the browser received for it, without what it had from before.",
    "incomplete": "Rendered pages that lacked a script, data or a frame, or were not done in time.",
}

#: Kept with the counters of a run and not shown as such: pages that ended with 959, pages that were not asked for as
#: their host had asked for a pause, by how many URLs the counters and the table differed at the end (an error of the
#: program), and whether every start URL failed. Of a run that delivers nothing: the removals that wait, and whether they
#: pass a limit on deleting. Documents of the index that were looked at when the run ended, and how many of them differed.
#: Pages of a source that renders none that are next to empty without their scripts.
#: Folders and tables that could not be read.
#: Rendered pages that were refused something, by the rule: the names of these counters begin so, and are few.
LOGIN_FAILURES: Final = "login_failures"
HELD_BACK: Final = "held_back"
MISCOUNTED: Final = "miscounted"
NO_START: Final = "no_start"
UNSENT_REMOVALS: Final = "unsent_removals"
PAST_LIMITS: Final = "past_limits"
LOOKED_AT: Final = "looked_at"
DIFFERING: Final = "differing"
SHELLS: Final = "shells"
FAILED_LISTINGS: Final = "failed_listings"
REFUSED_PARTS: Final = "refused_parts "
_HIDDEN: Final = (
    *(LOGIN_FAILURES, HELD_BACK, MISCOUNTED, NO_START, UNSENT_REMOVALS, PAST_LIMITS, LOOKED_AT, DIFFERING, SHELLS),
    FAILED_LISTINGS,
)


def sum_up(*counts: Mapping[str, int]) -> Counter[str]:
    """The sums of counters; unlike ``+`` it keeps what is 0 or below."""
    sums = Counter[str]()
    for each in counts:
        sums.update(each)
    return sums


def select_kept(counts: Mapping[str, int]) -> dict[str, int]:
    """What is written down of the counters of a run: all that are shown, and the others where they say something."""
    hidden = {
        name: counts[name]
        for name in (*_HIDDEN, *(each for each in counts if each.startswith(REFUSED_PARTS)))
        if counts.get(name)
    }
    return {name: counts.get(name, 0) for name in COUNTS} | hidden


def has_mostly_failed_logins(counts: Mapping[str, int]) -> bool:
    """Whether more than half of the pages that a run visited failed the login."""
    visited = counts.get("fetched", 0) + counts.get("fetch_failures", 0)
    return 2 * counts.get(LOGIN_FAILURES, 0) > visited

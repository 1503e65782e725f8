"""Ends the visits of rows that the boundary of the source refuses, without a request (B1-B9, B12, X-N4)."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler

from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.http.visit_end import (
    PUBLIC_ONLY,
    VisitEnded,
    build_visit_end,
    find_claim,
    find_redirects,
    join_lines,
)
from searchcrawl.items import Claim, Outcome
from searchcrawl.rules.boundary import Boundary, refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.targets import TargetRules
from searchcrawl.run import Run
from searchcrawl.sources.forgotten_watch import ForgottenWatch
from searchcrawl.stages import stages_of


class BoundaryMiddleware:
    """Ends visits outside the boundary (955, 1004, 961; ``rule`` is ``KEY: RULE``).

    The target of a followed redirect may be on any host (C6) that no exclude rule names, but must be an http or https
    URL.
    """

    def __init__(self, boundary: Boundary, forgotten: ForgottenWatch, traps: TrapWatch, targets: TargetRules) -> None:
        self._boundary = boundary
        self._forgotten = forgotten
        self._traps = traps
        self._targets = targets

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BoundaryMiddleware:
        stages = stages_of(crawler)
        run = stages.get(Run)
        forgotten = ForgottenWatch(run.project.root, run.source, run.boundary)
        return cls(run.boundary, forgotten, stages.get(TrapWatch), stages.get(TargetRules))

    def process_request(self, request: Request) -> None:
        claim = find_claim(request)
        if claim is None:
            return
        if not request.url.startswith(("http://", "https://")):
            raise build_visit_end(request, claim, Code.MALFORMED_URL, error="not an http or https URL")
        self._forgotten.look()
        if find_redirects(request):
            request.meta[PUBLIC_ONLY] = self._targets.is_public_only(request.url)
            return
        # A visit that begins again has the notes of its redirects.
        request.meta.pop(PUBLIC_ONLY, None)
        try:
            decide = self._boundary.decide_known if claim.is_known else self._boundary.decide
            decision = decide(claim.url, claim.depth, in_archive=claim.in_archive)
        except InvalidUrl as error:
            raise build_visit_end(request, claim, Code.MALFORMED_URL, error=str(error)) from error
        if decision.allowed:
            # The pattern of the URL may have been cut after the row was claimed.
            decision = self._traps.refuse(claim) or decision
        if not decision.allowed:
            raise VisitEnded(end_refused(claim, decision))


def end_refused(claim: Claim, decision: Decision) -> Outcome:
    """The end of a visit that the boundary, or a limit on traps, refuses."""
    rule = f"{decision.key}: {decision.rule}"
    error = f"{join_lines(f'outside the boundary ({rule})')}: {join_lines(claim.url)}"
    return Outcome(claim=claim, code=int(refusal_code(decision)), rule=rule, error=error)

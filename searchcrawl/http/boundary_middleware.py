"""Ends the visits of rows that the boundary of the source refuses, without a request (B1-B9, B12, X-N4)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scrapy import Request
from scrapy.crawler import Crawler

from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.http.side_requests import ASKED_FOR, SideRequestFailed
from searchcrawl.http.visit_end import PUBLIC_ONLY, VisitEnded, build_visit_end, find_claim, find_redirects, join_lines
from searchcrawl.items import Claim, Outcome
from searchcrawl.kind import Kind
from searchcrawl.rules.boundary import Boundary, refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.redirects import TargetRules, write_target
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.forgotten_list import read_list
from searchcrawl.sources.loading import build_forgotten
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)


class ForgottenWatch:
    """Keeps the boundary of a run as the list of the project in the folder ``root`` has it now."""

    def __init__(self, root: Path, source: Source, boundary: Boundary) -> None:
        self._root = root
        self._source = source
        self._boundary = boundary
        self._lines: Sequence[str] = source.forgotten
        self._said = ""

    def look(self) -> None:
        """Takes over what was added to the list, or taken out of it. While it cannot be read, what it said before holds."""
        try:
            lines = read_list(self._root)
            # As long as the file is the same these are the same lines: a list may be long, and this is asked for each request.
            if lines is self._lines:
                return
            if lines != self._lines:
                self._boundary.replace_forgotten(build_forgotten(self._source, lines))
            self._lines = lines
        except ConfigurationError as error:
            if str(error) != self._said:
                self._said = str(error)
                logger.warning("%s: what it said before holds", error)


class BoundaryMiddleware:
    """Ends visits outside the boundary (955, 1004, 961; ``rule`` is ``KEY: RULE``).

    The target of a followed redirect may be on any host (C6) that no exclude rule names, but must be a URL of the
    source's kind. It may have waited long for its turn: it ends if it was forgotten meanwhile, also that of a side request.
    """

    def __init__(
        self, boundary: Boundary, forgotten: ForgottenWatch, traps: TrapWatch, targets: TargetRules, kind: Kind
    ) -> None:
        self._boundary = boundary
        self._kind, self._begins = kind, kind.begins
        self._forgotten = forgotten
        self._traps = traps
        self._targets = targets

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BoundaryMiddleware:
        stages = stages_of(crawler)
        run = stages.get(Run)
        forgotten = ForgottenWatch(run.project.root, run.source, run.boundary)
        return cls(run.boundary, forgotten, stages.get(TrapWatch), stages.get(TargetRules), run.source.kind)

    def process_request(self, request: Request) -> None:
        claim = find_claim(request)
        if claim is None:
            self._check_side_target(request)
            return
        if not request.url.startswith(self._begins):
            raise build_visit_end(request, claim, Code.MALFORMED_URL, error=f"not {self._kind.url}")
        self._forgotten.look()
        if find_redirects(request):
            self._check_target(request, claim)
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

    def _check_target(self, request: Request, claim: Claim) -> None:
        for url, error in ((claim.url, None), (request.url, write_target(request.url))):
            decision = self._targets.find_forgotten(url)
            if decision is not None:
                outcome = end_refused(claim, decision)
                raise VisitEnded(replace(outcome, redirects=find_redirects(request), error=error or outcome.error))

    def _check_side_target(self, request: Request) -> None:
        first_url = request.meta.get(ASKED_FOR, request.url)
        if first_url == request.url:
            return
        self._forgotten.look()
        refusal = self._targets.refuse(request.url, first_url)
        if refusal is not None:
            raise SideRequestFailed(
                f"a redirect leads to what is excluded ({refusal.text})", code=Code.OUTSIDE_BOUNDARY
            )


def end_refused(claim: Claim, decision: Decision) -> Outcome:
    """The end of a visit that the boundary, or a limit on traps, refuses."""
    rule = f"{decision.key}: {decision.rule}"
    error = f"{join_lines(f'outside the boundary ({rule})')}: {join_lines(claim.url)}"
    return Outcome(claim=claim, code=int(refusal_code(decision)), rule=rule, error=error)

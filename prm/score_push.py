"""Scores that a training cluster pushes in bulk, as NDJSON: one line a trace.

    {"trace": 17, "scores": [0.98, 0.4]}     or     {"digest": "3a…", "scores": [0.98, 0.4]}

A null stands for a step that is context. Lines that cannot be used are reported by their number and leave the others
alone; a line that came before is known and adds nothing.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec
import numpy as np
from django.db import transaction

from accounts.models import User
from events import audit_log
from labeling.models import Project, Trace
from prm import score_encoding, scores, trace_texts
from prm.backends import base
from prm.backends.base import BackendError
from prm.models import PRM, Score
from prm.models.prm import BackendKind
from prm.trace_texts import TraceText
from stats.arrays import Floats

MAX_REPORTED_LINES = 50
_AT_ONCE = 500  # lines in a transaction


class NotPushable(Exception):
    """Scores are pushed to a PRM that is registered for that."""


class PushedLine(msgspec.Struct):
    scores: list[float | None]
    trace: int | None = None
    digest: str | None = None


@dataclass
class ScorePushReport:
    added: int = 0
    known: int = 0
    steps: int = 0
    bad: int = 0
    bad_lines: list[tuple[int, str]] = field(default_factory=list)

    def refuse(self, number: int, reason: str) -> None:
        self.bad += 1
        if len(self.bad_lines) < MAX_REPORTED_LINES:
            self.bad_lines.append((number, reason))


_decoder = msgspec.json.Decoder(PushedLine)
_NumberedLine = tuple[int, PushedLine]


def push_scores(*, prm: PRM, lines: Iterable[bytes], by: User | None, now: dt.datetime) -> ScorePushReport:
    """All lines, a few hundred a transaction: what broke off is pushed again and adds the rest."""
    if prm.backend != BackendKind.PUSHED:
        raise NotPushable("Register a PRM with the backend “pushed” and push its scores to that version.")
    report, numbered = ScorePushReport(), enumerate(lines, start=1)
    while part := list(islice(numbered, _AT_ONCE)):
        _push_part(prm, _parse_lines(part, report), report, now)
    report.bad_lines.sort()
    audit_log.log_event(
        what="scores.pushed",
        by=by,
        now=now,
        project=prm.project_id,
        subject=f"prm:{prm.pk}",
        detail={"added": report.added, "known": report.known, "bad": report.bad},
    )
    return report


def _parse_lines(part: Sequence[tuple[int, bytes]], report: ScorePushReport) -> Iterator[_NumberedLine]:
    for number, raw in part:
        if not raw.strip():
            continue
        try:
            line = _decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            report.refuse(number, str(error))
            continue
        if (line.trace is None) == (line.digest is None):
            report.refuse(number, "name the trace by “trace” or by “digest”, one of them")
            continue
        yield number, line


def _push_part(prm: PRM, lines: Iterable[_NumberedLine], report: ScorePushReport, now: dt.datetime) -> None:
    named = list(lines)
    ids = _resolve_trace_ids(prm.project, [line for _, line in named])
    known = {text.trace: text for text in trace_texts.load_trace_texts(sorted(set(ids.values())))}
    there = dict(Score.objects.filter(prm=prm, trace__in=known).values_list("trace_id", "numbers"))
    new: dict[int, tuple[TraceText, Floats]] = {}
    for number, line in named:
        trace = ids.get(line.trace if line.trace is not None else line.digest or "")
        if trace is None:
            report.refuse(number, "no such trace in this project")
        else:
            _accept_line(prm, number, line, known[trace], there, new, report)
    with transaction.atomic():
        report.added += scores.save_scores(
            prm=prm, texts=[text for text, _ in new.values()], scores=[each for _, each in new.values()], now=now
        )


def _accept_line(
    prm: PRM,
    number: int,
    line: PushedLine,
    text: TraceText,
    there: dict[int, bytes | memoryview],
    new: dict[int, tuple[TraceText, Floats]],
    report: ScorePushReport,
) -> None:
    try:
        numbers = _validate_line(prm, line, text)
    except BackendError as error:
        report.refuse(number, str(error))
        return
    packed = score_encoding.encode_scores(numbers, text.steps, text.is_rateable)
    before = bytes(there[text.trace]) if text.trace in there else None
    if before is None and text.trace in new:
        before = score_encoding.encode_scores(new[text.trace][1], text.steps, text.is_rateable)
    if before is None:
        new[text.trace] = (text, numbers)
        report.steps += len(text.steps)
    elif before == packed:
        report.known += 1
    else:
        report.refuse(number, "this version has said something else of the trace: push to a new version")


def _validate_line(prm: PRM, line: PushedLine, text: TraceText) -> Floats:
    numbers = np.array([np.nan if each is None else each for each in line.scores], dtype=np.float64)
    if len(numbers) == len(text.steps):
        numbers[~np.array(text.is_rateable, dtype=np.bool_)] = 0.5  # what is said of context is not kept
    return base.validate_scores([numbers], [text.asked], prm.semantics)[0]


def _resolve_trace_ids(project: Project, lines: Sequence[PushedLine]) -> dict[int | str, int]:
    """What the lines call a trace, to its id; only traces of this project."""
    found: dict[int | str, int] = {}
    mine = Trace.objects.filter(project=project)
    numbers = [line.trace for line in lines if line.trace is not None]
    digests = [line.digest for line in lines if line.digest is not None]
    found.update((pk, pk) for pk in mine.filter(pk__in=numbers).values_list("pk", flat=True))
    found.update(mine.filter(digest__in=digests).values_list("digest", "pk"))
    return found

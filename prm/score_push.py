"""Save scores that a training cluster pushes in bulk, as NDJSON with one line per trace.

    {"trace": 17, "scores": [0.98, 0.4]}     or     {"digest": "3a…", "scores": [0.98, 0.4]}

A null marks a context step. Invalid lines are reported by number and do not affect the others; a repeated line changes
nothing.
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
_LINES_PER_TRANSACTION = 500


class NotPushable(Exception):
    """The PRM was not registered for pushed scores."""


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
    """Save all valid lines. After an interruption, push the same file again: the rest is added."""
    if prm.backend != BackendKind.PUSHED:
        raise NotPushable(
            "This PRM takes no pushed scores. Register one with the backend “pushed”, and push to its version."
        )
    report, numbered = ScorePushReport(), enumerate(lines, start=1)
    while part := list(islice(numbered, _LINES_PER_TRANSACTION)):
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
            report.refuse(number, "set either “trace” or “digest”")
            continue
        yield number, line


def _push_part(prm: PRM, lines: Iterable[_NumberedLine], report: ScorePushReport, now: dt.datetime) -> None:
    numbered = list(lines)
    ids = _resolve_trace_ids(prm.project, [line for _, line in numbered])
    texts = {text.trace: text for text in trace_texts.load_trace_texts(sorted(set(ids.values())))}
    rows = Score.objects.filter(prm=prm, trace__in=texts).values_list("trace_id", "numbers")
    known = {trace: bytes(encoded) for trace, encoded in rows}
    new: dict[int, Floats] = {}
    for number, line in numbered:
        trace = ids.get(line.trace if line.trace is not None else line.digest or "")
        if trace is None:
            report.refuse(number, "no such trace in this project")
            continue
        text = texts[trace]
        try:
            numbers = _validate_line(prm, line, text)
        except BackendError as error:
            report.refuse(number, str(error))
            continue
        encoded = score_encoding.encode_scores(numbers, text.steps, text.is_rateable)
        if trace not in known:
            known[trace], new[trace] = encoded, numbers
            report.steps += len(text.steps)
        elif known[trace] == encoded:
            report.known += 1
        else:
            report.refuse(number, "this version already has other scores for the trace: push to a new version")
    with transaction.atomic():
        new_texts = [texts[trace] for trace in new]
        report.added += scores.save_scores(prm=prm, texts=new_texts, scores=list(new.values()), now=now)


def _validate_line(prm: PRM, line: PushedLine, text: TraceText) -> Floats:
    numbers = np.array([np.nan if each is None else each for each in line.scores], dtype=np.float64)
    if len(numbers) == len(text.steps):
        numbers[~np.array(text.is_rateable, dtype=np.bool_)] = 0.5  # scores of context are not stored
    return base.validate_scores([numbers], [text.scorer_input], prm.semantics)[0]


def _resolve_trace_ids(project: Project, lines: Sequence[PushedLine]) -> dict[int | str, int]:
    """Map the ids and digests of the lines to traces of this project."""
    ids: dict[int | str, int] = {}
    traces = Trace.objects.filter(project=project)
    numbers = [line.trace for line in lines if line.trace is not None]
    digests = [line.digest for line in lines if line.digest is not None]
    ids.update((pk, pk) for pk in traces.filter(pk__in=numbers).values_list("pk", flat=True))
    ids.update(traces.filter(digest__in=digests).values_list("digest", "pk"))
    return ids

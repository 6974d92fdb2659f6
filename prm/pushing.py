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
from events import log
from labeling.agreement.arrays import Floats
from labeling.models import Project, Trace
from prm import packing, scores, texts
from prm.backends import asked
from prm.backends.asked import BackendError
from prm.models import PRM, Score
from prm.models.prm import BackendKind
from prm.texts import Text

MOST_TOLD = 50
_AT_ONCE = 500  # lines in a transaction


class NotPushable(Exception):
    """Scores are pushed to a PRM that is registered for that."""


class Line(msgspec.Struct):
    scores: list[float | None]
    trace: int | None = None
    digest: str | None = None


@dataclass
class Report:
    added: int = 0
    known: int = 0
    steps: int = 0
    bad: int = 0
    bad_lines: list[tuple[int, str]] = field(default_factory=list)

    def refuse(self, number: int, reason: str) -> None:
        self.bad += 1
        if len(self.bad_lines) < MOST_TOLD:
            self.bad_lines.append((number, reason))


_decoder = msgspec.json.Decoder(Line)
_Numbered = tuple[int, Line]


def push(*, prm: PRM, lines: Iterable[bytes], by: User | None, now: dt.datetime) -> Report:
    """All lines, a few hundred a transaction: what broke off is pushed again and adds the rest."""
    if prm.backend != BackendKind.PUSHED:
        raise NotPushable("Register a PRM with the backend “pushed” and push its scores to that version.")
    report, numbered = Report(), enumerate(lines, start=1)
    while part := list(islice(numbered, _AT_ONCE)):
        _push_part(prm, _read(part, report), report, now)
    report.bad_lines.sort()
    log.append(
        what="scores.pushed",
        by=by,
        now=now,
        project=prm.project_id,
        subject=f"prm:{prm.pk}",
        detail={"added": report.added, "known": report.known, "bad": report.bad},
    )
    return report


def _read(part: Sequence[tuple[int, bytes]], report: Report) -> Iterator[_Numbered]:
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


def _push_part(prm: PRM, lines: Iterable[_Numbered], report: Report, now: dt.datetime) -> None:
    named = list(lines)
    ids = _ids(prm.project, [line for _, line in named])
    known = {text.trace: text for text in texts.of(sorted(set(ids.values())))}
    there = dict(Score.objects.filter(prm=prm, trace__in=known).values_list("trace_id", "numbers"))
    new: dict[int, tuple[Text, Floats]] = {}
    for number, line in named:
        trace = ids.get(line.trace if line.trace is not None else line.digest or "")
        if trace is None:
            report.refuse(number, "no such trace in this project")
        else:
            _take(prm, number, line, known[trace], there, new, report)
    with transaction.atomic():
        report.added += scores.write(
            prm=prm, texts=[text for text, _ in new.values()], scores=[each for _, each in new.values()], now=now
        )


def _take(
    prm: PRM,
    number: int,
    line: Line,
    text: Text,
    there: dict[int, bytes | memoryview],
    new: dict[int, tuple[Text, Floats]],
    report: Report,
) -> None:
    try:
        numbers = _checked(prm, line, text)
    except BackendError as error:
        report.refuse(number, str(error))
        return
    packed = packing.pack(numbers, text.steps, text.is_rateable)
    before = bytes(there[text.trace]) if text.trace in there else None
    if before is None and text.trace in new:
        before = packing.pack(new[text.trace][1], text.steps, text.is_rateable)
    if before is None:
        new[text.trace] = (text, numbers)
        report.steps += len(text.steps)
    elif before == packed:
        report.known += 1
    else:
        report.refuse(number, "this version has said something else of the trace: push to a new version")


def _checked(prm: PRM, line: Line, text: Text) -> Floats:
    numbers = np.array([np.nan if each is None else each for each in line.scores], dtype=np.float64)
    if len(numbers) == len(text.steps):
        numbers[~np.array(text.is_rateable, dtype=np.bool_)] = 0.5  # what is said of context is not kept
    return asked.checked([numbers], [text.asked], prm.semantics)[0]


def _ids(project: Project, lines: Sequence[Line]) -> dict[int | str, int]:
    """What the lines call a trace, to its id; only traces of this project."""
    found: dict[int | str, int] = {}
    mine = Trace.objects.filter(project=project)
    numbers = [line.trace for line in lines if line.trace is not None]
    digests = [line.digest for line in lines if line.digest is not None]
    found.update((pk, pk) for pk in mine.filter(pk__in=numbers).values_list("pk", flat=True))
    found.update(mine.filter(digest__in=digests).values_list("digest", "pk"))
    return found

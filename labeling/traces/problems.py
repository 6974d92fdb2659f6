"""Add problems without traces, for projects whose steps are generated while raters label."""

import datetime as dt
import hashlib
from collections.abc import Sequence
from typing import Annotated

import msgspec
from django.db import transaction
from msgspec import UNSET, Meta, Struct, UnsetType

from accounts.models import User
from events import audit_log
from formats import near_duplicates, strict_json
from formats.records import ProblemRecord, RecordName
from labeling.models import Problem, Project, Source
from labeling.traces import trace_rows

MAX_PROBLEMS = 10_000
MAX_BYTES = 8 << 20


class InvalidProblems(Exception):
    """The text cannot be read. The message names the line."""


class _ProblemLine(Struct, gc=False, forbid_unknown_fields=True):
    problem: Annotated[str, Meta(min_length=1)]
    answer: str | UnsetType | None = UNSET
    solution: str | UnsetType | None = UNSET
    ref: RecordName = ""
    domain: Annotated[str, Meta(max_length=100)] = ""


_decoder = msgspec.json.Decoder(_ProblemLine)


def parse_problems(text: str) -> list[ProblemRecord]:
    """Read one problem per line: a JSON object with `problem` and optionally `answer`, or the plain text."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise InvalidProblems(f"The text is larger than {MAX_BYTES >> 20} MB.")
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > MAX_PROBLEMS:
        raise InvalidProblems(f"There are {len(lines):,} problems. Add at most {MAX_PROBLEMS:,} at a time.")
    return [_parse_line(line, number) for number, line in lines]


def _parse_line(line: str, number: int) -> ProblemRecord:
    if "\0" in line:
        raise InvalidProblems(f"Line {number} contains a null character.")
    if not line.startswith("{"):
        return ProblemRecord(line)
    try:
        found = strict_json.decode(line.encode(), _decoder)
    except (strict_json.JsonRefused, UnicodeEncodeError) as error:
        raise InvalidProblems(f"Line {number}: {error}") from None
    return ProblemRecord(found.problem, found.answer, found.solution, ref=found.ref, domain=found.domain)


def add_problems(
    *, project: Project, records: Sequence[ProblemRecord], name: str, by: User | None, now: dt.datetime
) -> int:
    """Add the problems that the project does not have yet, and return how many."""
    with transaction.atomic():
        trace_rows.lock_project_import(project.pk)
        by_digest = {trace_rows.digest_problem(record): record for record in records}
        known = Problem.objects.filter(project=project, digest__in=by_digest).values_list("digest", flat=True)
        new = {digest: by_digest[digest] for digest in by_digest.keys() - set(known)}
        if not new:
            return 0
        digest = hashlib.sha256("\n".join(sorted(new)).encode()).hexdigest()
        source = Source.objects.create(project=project, name=name, format="problems", sha256=digest, added_at=now)
        ordered = [(digest, record) for digest, record in by_digest.items() if digest in new]
        Problem.objects.bulk_create(_make_problem(project, source, *each) for each in ordered)
        audit_log.log_event(
            what="problems.added",
            by=by,
            now=now,
            project=project.pk,
            subject=f"source:{source.pk}",
            detail={"problems": len(new)},
        )
    return len(new)


def _make_problem(project: Project, source: Source, digest: str, record: ProblemRecord) -> Problem:
    normal = near_duplicates.digest_normalized(record.text)
    return Problem(
        project=project,
        digest=digest,
        normal_digest=normal,
        ref=record.ref,
        domain=record.domain,
        text=record.text,
        reference_answer=None if record.answer is UNSET else record.answer,
        reference_solution=None if record.solution is UNSET else record.solution,
        has_reference_answer=record.answer is not UNSET,
        has_reference_solution=record.solution is not UNSET,
        is_reserve=trace_rows.is_in_reserve(normal, project.reserve_problem_share),
        source=source,
    )

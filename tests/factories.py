"""Functions that create rows for tests, each with only the rows it depends on."""

import datetime as dt
import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

from accounts.models import User
from formats import images
from labeling.models import (
    Assignment,
    Judgment,
    Lane,
    Option,
    OptionPart,
    Problem,
    Project,
    QueueEntry,
    Rater,
    Source,
    Step,
    StepReview,
    StoredImage,
    Submission,
    Trace,
)

NOW = dt.datetime(2026, 11, 18, 9, 0, tzinfo=dt.UTC)
_numbers = itertools.count(1)


def _digest(*parts: object) -> str:
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()


def make_user(username: str = "", **fields: Any) -> User:
    return User.objects.create_user(
        username or f"user{next(_numbers)}", password=fields.pop("password", None), **fields
    )


def make_project(slug: str = "", **fields: Any) -> Project:
    slug = slug or f"project-{next(_numbers)}"
    return Project.objects.create(slug=slug, name=fields.pop("name", slug), created_at=NOW, **fields)


def make_problem(project: Project, text: str = "", **fields: Any) -> Problem:
    text = text or f"What is {next(_numbers)} + 1?"
    return Problem.objects.create(
        project=project, text=text, digest=_digest(text, fields), normal_digest=_digest(text.lower()), **fields
    )


def make_source(project: Project, name: str = "traces.jsonl", **fields: Any) -> Source:
    return Source.objects.create(project=project, name=name, added_at=NOW, **{"format": "prm800k", **fields})


def make_trace(
    project: Project, steps: Sequence[str | Sequence[str]] = ("One.", "Two.", "Three."), **fields: Any
) -> Trace:
    """Create a trace with a step for each item. A list item has the texts of the step's options."""
    problem = fields.pop("problem", None) or make_problem(project)
    trace = Trace.objects.create(
        project=project, problem=problem, digest=_digest(next(_numbers)), n_steps=len(steps), added_at=NOW, **fields
    )
    rows = Step.objects.bulk_create(Step(trace=trace, position=position) for position in range(len(steps)))
    Option.objects.bulk_create(
        Option(step=step, position=position, text=text)
        for step, item in zip(rows, steps, strict=True)
        for position, text in enumerate([item] if isinstance(item, str) else item)
    )
    return trace


def make_rater(project: Project, user: User | None = None, **fields: Any) -> Rater:
    number = next(_numbers)
    return Rater.objects.create(
        project=project,
        user=user or make_user(f"rater{number}"),
        labeler=f"00000000-0000-4000-8000-{number:012d}",
        added_at=NOW,
        **fields,
    )


def make_machine_rater(project: Project, machine: str = "judge: x") -> Rater:
    labeler = f"00000000-0000-4000-8000-{next(_numbers):012d}"
    return Rater.objects.create(project=project, kind="machine", machine=machine, labeler=labeler, added_at=NOW)


def make_lane(project: Project, arm: str = "uniform", **fields: Any) -> Lane:
    return Lane.objects.create(project=project, arm=arm, **fields)


def make_entry(lane: Lane, trace: Trace, *, slots: int = 1, key: int | None = None) -> QueueEntry:
    return QueueEntry.objects.create(lane=lane, trace=trace, slots=slots, slots_left=slots, key=key or next(_numbers))


def make_assignment(rater: Rater, trace: Trace, **fields: Any) -> Assignment:
    """Create an assignment, opened by default."""
    state = {"state": "opened", "holds_slot": True, "opened_at": NOW, "lease_ends_at": NOW + dt.timedelta(minutes=30)}
    return Assignment.objects.create(project=rater.project, rater=rater, trace=trace, **{**state, **fields})


def make_submitted(rater: Rater, trace: Trace, *, ms: int | None = None, **fields: Any) -> Assignment:
    """Create an assignment with its first submission."""
    state = {"state": "submitted", "submitted_at": NOW, "finish_reason": "solution", "submitted_revision": 1}
    assignment = make_assignment(rater, trace, lease_ends_at=None, **{**state, **fields})
    Submission.objects.create(
        project=rater.project,
        assignment=assignment,
        submitted_at=assignment.submitted_at,
        finish_reason=assignment.finish_reason,
        total_ms=ms,
    )
    return assignment


def make_judgment(assignment: Assignment, *, comment: str = "", **fields: Any) -> Judgment:
    """Create a judgment of the first option of the trace, in its step review."""
    step = Step.objects.filter(trace=assignment.trace).earliest("position")
    turn = StepReview.objects.create(assignment=assignment, step=step, shown="0", chosen=0, comment=comment)
    return Judgment.objects.create(turn=turn, option=step.options.earliest("position"), **fields)


def make_image_part(option: Option, *, position: int = 0, description: str = "Plot", **fields: Any) -> OptionPart:
    """Add an image to an option. Its content is not decoded by anyone on the server."""
    image = StoredImage.objects.create(
        project=option.step.trace.project,
        **{"digest": _digest(next(_numbers)), "original_sha256": "", "width": 8, "height": 6, "data": b"png", **fields},
    )
    text = images.write_placeholder(description)
    return OptionPart.objects.create(option=option, position=position, kind="image", text=text, image=image)

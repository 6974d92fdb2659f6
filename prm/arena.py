"""The arena: raters make the current PRM believe a wrong step. Only this module changes its tables.

An author gets the first wrong step of a settled trace that the PRM recognizes as wrong, and writes the smallest edit
that keeps it wrong and makes the PRM believe it. The PRM scores each attempt. One that fools it is checked blind by
others: they judge single steps without knowing which of them were edited, and half of what they get are controls, steps
with a known answer. Two checks that find the step wrong make it a hard negative; two that do not reject it.

Traces of held-out problems and gold are never used, so hard negatives may be trained on. Halves of pairs are not used
either, because no one may read both. No one checks their own edit, or one of a trace that they labeled.
"""

import datetime as dt
import hashlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import Assignment, Consensus, Gold, Option, Project, Rater, Trace
from labeling.models.assignment import AssignmentState
from labeling.models.trace import TraceKind
from labeling.quality import consensus
from outbound.sealed_secrets import SecretUnreadable
from prm import labeled_traces, registry
from prm.backends import base
from prm.backends.base import BackendError, ScorerInput
from prm.backends.remote import RetryPolicy
from prm.evaluation import word_distance
from prm.models import PRM, Arena, ArenaCheck, ArenaEdit
from prm.models.arena import ArenaAnswer, ArenaEditState
from prm.models.prm import BackendKind
from prm.registry import NotRegistrable
from prm.selection import hazards

MAX_CHARACTERS = 4000
MAX_ATTEMPTS_PER_DAY = 200
N_CHECKS = 2  # equal ones that decide
_LEAST_CHANGES, _MOST_CHANGED_SHARE = 5, 0.5
_POLICY = RetryPolicy(timeout=5.0, tries=1)  # a person waits
_OPEN_STATES = (AssignmentState.HELD, AssignmentState.OPENED)
_CANDIDATES, _MAX_LOOKED_AT = 1000, 8


class ArenaRefused(Exception):
    """The arena cannot do this now. The message is for the person who asked."""


@dataclass(frozen=True)
class ArenaStep:
    """A step with what precedes it."""

    trace: int
    position: int
    problem: str
    steps: list[str]  # up to and including this one

    @property
    def text(self) -> str:
        return self.steps[-1]


@dataclass(frozen=True)
class ArenaTask:
    step: ArenaStep
    p_right: float
    most_changed: int  # words


@dataclass(frozen=True)
class CheckerAccuracy:
    """How often a rater is right on controls."""

    rater: Rater
    n_controls: int
    n_right: int
    n_checks: int


# Open and close


def open_arena(*, project: Project, by: User | None, now: dt.datetime) -> Arena:
    find_scorer(project.pk)
    with transaction.atomic():
        row, _is_new = Arena.objects.update_or_create(project=project, defaults={"opened_at": now, "closed_at": None})
        _log_event("arena.opened", project.pk, by, now)
    return row


def close_arena(*, project: Project, by: User | None, now: dt.datetime) -> None:
    """Close the arena. Attempts and checks are kept."""
    with transaction.atomic():
        if Arena.objects.filter(project=project, closed_at=None).update(closed_at=now):
            _log_event("arena.closed", project.pk, by, now)


def list_open_projects(projects: QuerySet[Project], user: User) -> list[Project]:
    """Return those of these projects with an open arena in which this user is a rater."""
    rows = projects.filter(arena__closed_at=None, arena__isnull=False, raters__user=user)
    return list(rows.order_by("name"))


def is_open(project_id: int) -> bool:
    return Arena.objects.filter(project=project_id, closed_at=None).exists()


def find_scorer(project_id: int) -> PRM:
    """Return the current PRM, or raise ArenaRefused if it cannot score new steps."""
    prm = registry.current_prm(project_id)
    if prm is None:
        raise ArenaRefused(_("The arena needs a current PRM."))
    if prm.backend == BackendKind.PUSHED:
        raise ArenaRefused(_("Scores for the current PRM can only be pushed, so it cannot score edits."))
    return prm


def _refuse_closed(rater: Rater) -> None:
    if not is_open(rater.project_id):
        raise ArenaRefused(_("The arena is closed."))
    if reason := queue.ineligibility_reason(rater, rater.project):
        raise ArenaRefused(reason)


# Attempts


def find_task(*, rater: Rater, n_skipped: int = 0) -> ArenaTask | None:
    """Return a wrong step for this author that the PRM recognizes, or None. It stays the same until the author fools
    the PRM with it, or skips it."""
    _refuse_closed(rater)
    prm = find_scorer(rater.project_id)
    done = ArenaEdit.objects.filter(rater=rater).exclude(state=ArenaEditState.FAILED)
    rows = _select_for_author(rater).exclude(trace__in=done.values("trace"))
    found = rows.order_by("trace").values_list("trace", "first_error")[:_CANDIDATES]
    ids = [(trace, position) for trace, position in found if position is not None]
    dice = random.Random(_digest(f"arena {rater.pk} {done.count()}"))  # noqa: S311  a choice that can be repeated
    dice.shuffle(ids)
    ids = ids[n_skipped % len(ids) :] + ids[: n_skipped % len(ids)] if ids else []
    for trace, position in ids[:_MAX_LOOKED_AT]:
        step = load_step(trace, position)
        p_right = score_step(prm, step)
        if 1 - p_right >= prm.threshold:
            return ArenaTask(step, p_right, count_most_changed(step.text))
    return None


def select_wrong_steps(project_id: int) -> QuerySet[Consensus]:
    """Return the consensus of the settled traces with an error that the arena may use."""
    rows = consensus.current_revisions(project_id=project_id).filter(
        trace__kind=TraceKind.PREGENERATED,
        trace__problem__is_reserve=False,
        trace__pairing__isnull=True,
        first_error__isnull=False,
    )
    return rows.filter(~Exists(Gold.objects.filter(trace=OuterRef("trace"))), first_error__lt=F("trace__n_steps"))


def _select_for_author(rater: Rater) -> QuerySet[Consensus]:
    """Leave out traces that this rater is still labeling: the arena would tell them where the error is."""
    open_work = Assignment.objects.filter(rater=rater, trace=OuterRef("trace"), state__in=_OPEN_STATES)
    return select_wrong_steps(rater.project_id).filter(~Exists(open_work))


def load_step(trace: int, position: int) -> ArenaStep:
    options = Option.objects.filter(step__trace=trace, step__position__lte=position, position=0)
    texts = list(options.order_by("step__position").values_list("text", flat=True))
    return ArenaStep(trace, position, Trace.objects.values_list("problem__text", flat=True).get(pk=trace), texts)


def count_most_changed(text: str) -> int:
    return max(_LEAST_CHANGES, int(_MOST_CHANGED_SHARE * len(word_distance.split_words(text))))


def score_step(prm: PRM, step: ArenaStep) -> float:
    """Return P(step right | earlier steps right), after calibration."""
    (whole,) = labeled_traces.load_trace_texts([step.trace])
    text = ScorerInput(step.problem, step.steps)
    try:
        (scores,) = base.validate_scores(registry.load_backend(prm, limit=_POLICY).score([text]), [text], prm.semantics)
    except (BackendError, NotRegistrable, SecretUnreadable):
        raise ArenaRefused(_("The PRM is not responding. Try again later.")) from None
    masked = np.where(np.array(whole.is_rateable[: len(scores)]), scores, np.nan)
    p_wrong = hazards.calibrated_hazards(masked, np.array([len(masked)]), prm.semantics, prm.calibration)
    return 1 - float(p_wrong[-1])


def try_edit(*, rater: Rater, trace: int, text: str, reason: str, now: dt.datetime) -> ArenaEdit:
    """Score an author's edit of the first wrong step of a trace, and store it."""
    _refuse_closed(rater)
    prm, text, reason = find_scorer(rater.project_id), text.replace("\r\n", "\n").strip(), reason.strip()
    row = _select_for_author(rater).filter(trace=trace).first()
    if row is None or row.first_error is None:
        raise ArenaRefused(_("This step is no longer in the arena. Reload the page for another one."))
    step = load_step(trace, row.first_error)
    n_changed = _check_text(step, text, reason)
    since = ArenaEdit.objects.filter(rater=rater, made_at__gt=now - dt.timedelta(days=1))
    if since.count() >= MAX_ATTEMPTS_PER_DAY:
        raise ArenaRefused(_("You have reached the limit of %(n)s attempts in 24 hours.") % {"n": MAX_ATTEMPTS_PER_DAY})
    before = score_step(prm, step)
    after = score_step(prm, ArenaStep(trace, step.position, step.problem, [*step.steps[:-1], text]))
    fools = 1 - before >= prm.threshold > 1 - after
    return ArenaEdit.objects.create(
        project_id=rater.project_id,
        trace_id=trace,
        position=step.position,
        rater=rater,
        prm=prm,
        text=text,
        reason=reason,
        n_changed=n_changed,
        p_right_before=before,
        p_right_after=after,
        state=ArenaEditState.WAITING if fools else ArenaEditState.FAILED,
        made_at=now,
    )


def _check_text(step: ArenaStep, text: str, reason: str) -> int:
    """Return the number of changed words, or raise ArenaRefused."""
    if not text or not reason:
        raise ArenaRefused(_("Enter the edited step, and why it is still wrong."))
    if len(text) > MAX_CHARACTERS or len(reason) > MAX_CHARACTERS or len(step.text) > MAX_CHARACTERS:
        raise ArenaRefused(_("Enter at most %(n)s characters.") % {"n": MAX_CHARACTERS})
    n_changed, most = word_distance.count_changed_words(step.text, text), count_most_changed(step.text)
    if not n_changed:
        raise ArenaRefused(_("Change at least one word."))
    if n_changed > most:
        raise ArenaRefused(
            _("You changed %(n)s words, and %(most)s are allowed. Make a smaller edit.")
            % {"n": n_changed, "most": most}
        )
    return n_changed


# Blind checks


def find_open_check(rater: Rater) -> ArenaCheck | None:
    return ArenaCheck.objects.filter(rater=rater, answer="").select_related("edit").first()


def load_checked_step(check: ArenaCheck) -> ArenaStep:
    """Return the step as the checker sees it: with the edit, if it was edited."""
    step = load_step(check.trace_id, check.position)
    if check.edit is None:
        return step
    return ArenaStep(step.trace, step.position, step.problem, [*step.steps[:-1], check.edit.text])


def serve_check(*, rater: Rater, now: dt.datetime) -> ArenaCheck | None:
    """Give a rater a step to check, or return None if there is nothing to check."""
    _refuse_closed(rater)
    if (known := find_open_check(rater)) is not None:
        return known
    edit = _select_unchecked(rater).order_by("pk").first()
    if edit is None:
        return None
    dice = random.Random(_digest(f"check {rater.pk} {ArenaCheck.objects.filter(rater=rater).count()}"))  # noqa: S311  a choice that can be repeated
    control = _choose_control(rater, dice) if dice.random() < 0.5 else None
    values = control or {"edit": edit, "trace_id": edit.trace_id, "position": edit.position}
    try:
        with transaction.atomic():
            return ArenaCheck.objects.create(project_id=rater.project_id, rater=rater, served_at=now, **values)
    except IntegrityError:  # another tab was faster
        return find_open_check(rater)


def _select_unchecked(rater: Rater) -> QuerySet[ArenaEdit]:
    rows = ArenaEdit.objects.filter(project=rater.project_id, state=ArenaEditState.WAITING).exclude(rater=rater)
    return rows.filter(
        ~Exists(ArenaCheck.objects.filter(rater=rater, edit=OuterRef("pk"))),
        ~Exists(Assignment.objects.filter(rater=rater, trace=OuterRef("trace"))),
    )


def _choose_control(rater: Rater, dice: random.Random) -> dict[str, Any] | None:
    """Choose a step of a settled trace that this rater has not labeled: its first error, or a correct step before."""
    seen = ArenaCheck.objects.filter(rater=rater, edit=None, trace=OuterRef("trace"))
    rows = select_wrong_steps(rater.project_id).filter(
        ~Exists(seen), ~Exists(Assignment.objects.filter(rater=rater, trace=OuterRef("trace")))
    )
    found = list(rows.order_by("trace").values_list("trace", "first_error", "labels")[:_CANDIDATES])
    if not found:
        return None
    trace, first_error, labels = dice.choice(found)
    right = [step for step, option, rating, *_ in labels if not option and rating == 1 and step < first_error]
    is_wrong = not right or dice.random() < 0.5
    position = first_error if is_wrong else dice.choice(right)
    return {"trace_id": trace, "position": position, "is_wrong": is_wrong}


def answer_check(*, check: ArenaCheck, answer: str, now: dt.datetime) -> None:
    """Store an answer. Enough equal answers decide about the edit."""
    with transaction.atomic():
        edit = ArenaEdit.objects.select_for_update().filter(pk=check.edit_id or 0).first()
        open_check = ArenaCheck.objects.filter(pk=check.pk, answer="")
        if not open_check.update(answer=ArenaAnswer(answer), answered_at=now):
            raise ArenaRefused(_("This step has already been answered."))
        if edit is not None and edit.state == ArenaEditState.WAITING:
            _decide(edit, now)


def _decide(edit: ArenaEdit, now: dt.datetime) -> None:
    answered = edit.checks.exclude(answer="")
    n_wrong = answered.filter(answer=ArenaAnswer.WRONG).count()
    n_other = answered.count() - n_wrong
    if n_wrong < N_CHECKS and n_other < N_CHECKS:
        return
    edit.state = ArenaEditState.CONFIRMED if n_wrong >= N_CHECKS else ArenaEditState.REJECTED
    edit.save(update_fields=["state"])
    detail = {"edit": edit.pk, "wrong": n_wrong, "other": n_other}
    _log_event(f"arena.{edit.state}", edit.project_id, None, now, **detail)


# Results


def count_edits(project_id: int) -> dict[str, int]:
    counts = ArenaEdit.objects.filter(project=project_id).values_list("state").annotate(n=Count("pk")).order_by("state")
    return dict.fromkeys(ArenaEditState.values, 0) | dict(counts)


def list_edits(project_id: int) -> QuerySet[ArenaEdit]:
    """Return the edits that fooled a PRM, newest first."""
    rows = ArenaEdit.objects.filter(project=project_id).exclude(state=ArenaEditState.FAILED)
    return rows.select_related("rater__user", "prm").defer("prm__weights", "prm__trained").order_by("-pk")


def count_checks(edit_ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return for each checked edit how many checks found its step wrong, and how many were answered."""
    answered = ArenaCheck.objects.filter(edit__in=list(edit_ids)).exclude(answer="").order_by("edit").values("edit")
    rows = answered.annotate(n_wrong=Count("pk", filter=Q(answer=ArenaAnswer.WRONG)), n=Count("pk"))
    return {row["edit"]: (row["n_wrong"], row["n"]) for row in rows}


def list_checkers(project_id: int) -> list[CheckerAccuracy]:
    """Return how often each checker is right on controls."""
    control, answered = Q(arena_checks__edit=None), ~Q(arena_checks__answer="")
    right = Q(arena_checks__is_wrong=True, arena_checks__answer=ArenaAnswer.WRONG)
    right |= Q(arena_checks__is_wrong=False, arena_checks__answer=ArenaAnswer.RIGHT)
    raters = Rater.objects.filter(project=project_id, arena_checks__isnull=False)
    counts = raters.annotate(
        n_controls=Count("arena_checks", filter=control & answered),
        n_right=Count("arena_checks", filter=control & right),
        n_checks=Count("arena_checks", filter=answered),
    ).values_list("pk", "n_controls", "n_right", "n_checks")
    rows = raters.select_related("user").in_bulk()
    return [CheckerAccuracy(rows[pk], *numbers) for pk, *numbers in counts.order_by("pk")]


def export_hard_negatives(project_id: int, *, after: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the confirmed edits, oldest first, in the format of ProcessBench with more keys. The steps end with the
    edited one, which is the first error."""
    rows = list_edits(project_id).filter(state=ArenaEditState.CONFIRMED, pk__gt=after)
    checks = count_checks(rows.values_list("pk", flat=True))
    for row in rows.order_by("pk").iterator(chunk_size=200):
        step = load_step(row.trace_id, row.position)
        n_wrong, n_checks = checks.get(row.pk, (0, 0))
        yield {
            "id": f"arena-{row.pk}",
            "problem": step.problem,
            "steps": [*step.steps[:-1], row.text],
            "label": row.position,
            "original_step": step.text,
            "words_changed": row.n_changed,
            "why_wrong": row.reason,
            "prm": row.prm.label,
            "p_right_before": row.p_right_before,
            "p_right_after": row.p_right_after,
            "author": str(row.rater.pseudonym),
            "n_checks": n_checks,
            "n_wrong": n_wrong,
            "made_at": row.made_at.isoformat(),
        }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _log_event(what: str, project_id: int, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=project_id, subject=f"project:{project_id}", detail=detail)

"""Live sessions: begin one, rate options, choose or write a step, put it aside, and end it. Only this module changes
LiveSession and LiveTurn rows and the ratings of options.

Each function locks its session. A message that arrives twice changes nothing the second time, so that a page can repeat
what was not confirmed.
"""

import datetime as dt
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

import rawsql
from accounts.models import User
from labeling import queue
from labeling.assignments import live_submissions
from labeling.assignments.live_submissions import LiveStepRecord, LiveWork, RatedOption
from labeling.models import BenchmarkProblem, Problem, Project, Rater
from labeling.models.assignment import FinishReason
from labeling.queue.eligibility import check_eligibility
from live import completions, option_requests, policies, prompts
from live.models import (
    LiveOption,
    LivePolicy,
    LiveRatingEdit,
    LiveSession,
    LiveSessionState,
    LiveTurn,
    OptionRequest,
    OptionRequestState,
)

MAX_STEP_CHARACTERS = 20_000
MAX_NOTE_CHARACTERS = 2_000
MAX_WAITING = 501  # problems that are counted for a rater
MAX_ACTIVE_MS = 10 * 60 * 1000  # that one message can add
ENDED_BY_RATER = (FinishReason.SOLUTION, FinishReason.FOUND_ERROR, FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM)


class LiveRefusal(Exception):
    """The session cannot be changed like this. `code` is for scripts; the message is for the rater."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class NoProblemLeft(Exception):
    """There is no problem for this rater. The message can be shown to people."""


@dataclass(frozen=True)
class LiveRating:
    index: int
    rating: int | None
    is_flagged: bool = False


@dataclass(frozen=True)
class TurnNotes:
    """What the page has not told yet about a turn. `draft` is None if the rater's own step did not change."""

    position: int
    ratings: Sequence[LiveRating] = field(default_factory=tuple)
    draft: str | None = None
    active_ms: int = 0


def find_current(rater: Rater) -> LiveSession | None:
    rows = LiveSession.objects.select_related("policy", "problem", "project", "rater")
    return rows.filter(rater=rater, state=LiveSessionState.OPEN).first()


def list_aside(rater: Rater) -> QuerySet[LiveSession]:
    rows = LiveSession.objects.filter(rater=rater, state=LiveSessionState.ASIDE)
    return rows.select_related("problem").annotate(n_turns=Count("turns")).order_by("started_at")


def list_free_problems(rater: Rater, policy: LivePolicy) -> QuerySet[Problem]:
    """Return the problems that this rater can begin, those with the fewest sessions first. Held-out problems and those
    of benchmarks are left out."""
    sessions = Q(live_sessions__rater__isnull=False)
    rows = Problem.objects.filter(project=policy.project_id, is_reserve=False)
    rows = rows.filter(~Exists(BenchmarkProblem.objects.filter(normal_digest=OuterRef("normal_digest"))))
    rows = rows.filter(~Exists(LiveSession.objects.filter(problem=OuterRef("pk"), rater=rater)))
    rows = rows.annotate(n_sessions=Count("live_sessions", filter=sessions))
    return rows.filter(n_sessions__lt=policy.sessions_per_problem).order_by("n_sessions", "pk")


def count_waiting(rater_ids: Sequence[int]) -> dict[int, int]:
    """Return how many problems each of these raters can begin or continue, by rater. Others are left out."""
    if not rater_ids:
        return {}
    return dict(rawsql.fetch_rows(_COUNT_WAITING, {"raters": list(rater_ids), "limit": MAX_WAITING}))


_COUNT_WAITING = """
SELECT r.id, (
    SELECT COUNT(*) FROM (
      SELECT 1 FROM labeling_problem q WHERE q.project_id = r.project_id AND NOT q.is_reserve
        AND NOT EXISTS (SELECT 1 FROM live_livesession s WHERE s.problem_id = q.id AND s.rater_id = r.id)
        AND (SELECT COUNT(*) FROM live_livesession s WHERE s.problem_id = q.id AND s.rater_id IS NOT NULL)
          < p.sessions_per_problem
      LIMIT %(limit)s) counted)
  + (SELECT COUNT(*) FROM live_livesession s WHERE s.rater_id = r.id AND s.state <> 'ended')
FROM labeling_rater r
JOIN labeling_project j ON j.id = r.project_id AND j.protocol = 'live'
LEFT JOIN live_livepolicy p ON p.project_id = j.id AND p.opened_at IS NOT NULL AND p.closed_at IS NULL
WHERE r.id = ANY (%(raters)s::bigint[])"""


def begin_session(*, rater: Rater, project: Project, by: User | None, now: dt.datetime) -> LiveSession:
    """Begin the next problem, or return the session that is open. Raises a QueueRefusal or NoProblemLeft."""
    check_eligibility(rater, project)
    if queue.is_budget_reached(project_id=project.pk):
        raise queue.BudgetReached
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(
            pk=project.pk
        )  # so that two raters count one after the other
        current = find_current(rater)
        if current is not None:
            return current
        policy = policies.find_open_policy(project)
        if policy is None:
            raise NoProblemLeft(_("A lead has not opened this project for live labeling yet."))
        problem = list_free_problems(rater, policy).first()
        if problem is None:
            raise NoProblemLeft(_("You have worked on every problem that you can. New problems appear here."))
        return _create_session(policy, problem, rater, now)


def begin_trial(*, policy: LivePolicy, problem: Problem, now: dt.datetime) -> LiveSession:
    """Begin a session without a rater, for a lead who tries a policy."""
    with transaction.atomic():
        return _create_session(policy, problem, None, now)


def _create_session(policy: LivePolicy, problem: Problem, rater: Rater | None, now: dt.datetime) -> LiveSession:
    session = LiveSession.objects.create(
        project=policy.project,
        policy=policy,
        problem=problem,
        rater=rater,
        guideline=policy.project.guideline,
        saw_reference_answer=policy.project.shows_reference_answer,
        seed=secrets.randbits(48),
        started_at=now,
        changed_at=now,
    )
    _add_turn(session, [], now)
    return session


def _add_turn(session: LiveSession, path: Sequence[int | str], now: dt.datetime) -> LiveTurn:
    request = option_requests.ensure_request(session=session, path=path, is_prefetched=False, now=now)
    return LiveTurn.objects.create(
        session=session,
        position=len(path),
        request=request,
        order_seed=prompts.derive_seed(session.seed, "order", len(path)),
    )


def load_turn(session: LiveSession) -> LiveTurn:
    """Return the turn that the rater works on, or the last one."""
    return LiveTurn.objects.select_related("request").filter(session=session).latest("position")


def show_options(*, session: LiveSession, now: dt.datetime) -> LiveTurn:
    """Return the current turn. If its options have arrived, fix the order in which they are shown: random, with
    duplicates directly after the first of them."""
    with transaction.atomic():
        row = _lock(session)
        turn = load_turn(row)
        is_read = row.state == LiveSessionState.OPEN and turn.ended_at is None
        if is_read and turn.shown is None and turn.request.state == OptionRequestState.ANSWERED:
            turn.shown = order_options(turn.request, turn.order_seed)
            turn.shown_at = now
            turn.save(update_fields=["shown", "shown_at"])
    return turn


def order_options(request: OptionRequest, seed: int) -> list[int]:
    rows = list(LiveOption.objects.filter(request=request).order_by("index").values_list("index", "same_as"))
    first = [index for index, same_as in rows if same_as is None]
    random.Random(seed).shuffle(first)  # noqa: S311  an order that can be repeated, not a secret
    return [index for each in first for index, same_as in rows if each in (index, same_as)]


def record_notes(*, session: LiveSession, notes: TurnNotes, now: dt.datetime) -> None:
    """Store ratings and the draft of the current turn, and ask for the options after likely choices."""
    with transaction.atomic():
        row = _lock(session)
        turn = load_turn(row)
        if row.state == LiveSessionState.ENDED or turn.position != notes.position or turn.ended_at is not None:
            _log_late_ratings(row, notes, now)  # the step was chosen before
            return
        _apply_notes(row, turn, notes, now)
        _prefetch(row, turn, now)


def _apply_notes(session: LiveSession, turn: LiveTurn, notes: TurnNotes, now: dt.datetime) -> None:
    options = {option.index: option for option in LiveOption.objects.filter(request=turn.request_id)}
    for each in notes.ratings if turn.shown is not None else ():
        same = [option for option in options.values() if each.index in (option.index, option.same_as)]
        for option in same:
            if (option.rating, option.flagged) != (each.rating, each.is_flagged):
                option.rating, option.flagged, option.rated_at = each.rating, each.is_flagged, now
                option.save(update_fields=["rating", "flagged", "rated_at"])
                _log_edit(option, each, now, was_applied=True)
    if notes.draft is not None:
        turn.draft = _check_text(notes.draft)
    turn.active_ms += min(max(notes.active_ms, 0), MAX_ACTIVE_MS)
    turn.save(update_fields=["draft", "active_ms"])
    LiveSession.objects.filter(pk=session.pk).update(changed_at=now)


def _log_edit(option: LiveOption, rating: LiveRating, now: dt.datetime, *, was_applied: bool) -> None:
    LiveRatingEdit.objects.create(
        option=option, rating=rating.rating, flagged=rating.is_flagged, arrived_at=now, was_applied=was_applied
    )


def _log_late_ratings(session: LiveSession, notes: TurnNotes, now: dt.datetime) -> None:
    """Keep ratings that arrive after their step was decided, and change nothing. A repetition is kept once."""
    turn = LiveTurn.objects.filter(session=session, position=notes.position, shown__isnull=False).first()
    if turn is None:
        return
    options = LiveOption.objects.filter(request=turn.request_id).prefetch_related("edits")
    by_index = {option.index: option for option in options}
    for each in notes.ratings:
        option, wanted = by_index.get(each.index), (each.rating, each.is_flagged)
        if option is None or wanted == (option.rating, option.flagged):
            continue
        if wanted not in {(edit.rating, edit.flagged) for edit in option.edits.all() if not edit.was_applied}:
            _log_edit(option, each, now, was_applied=False)


def _prefetch(session: LiveSession, turn: LiveTurn, now: dt.datetime) -> None:
    if turn.shown is None or session.rater_id is None or turn.position + 1 >= session.policy.most_steps:
        return
    path = load_path(session)
    options = {option.index: option for option in LiveOption.objects.filter(request=turn.request_id)}
    likely = [index for index in turn.shown if options[index].rating == 1 and options[index].same_as is None]
    likely = [index for index in likely if options[index].is_whole and not options[index].ends_solution]
    for index in likely[: session.policy.n_prefetched]:
        option_requests.ensure_request(session=session, path=[*path, options[index].pk], is_prefetched=True, now=now)


def load_path(session: LiveSession) -> list[int | str]:
    """Return the steps so far: ids of options, and texts that the rater wrote."""
    rows = LiveTurn.objects.filter(session=session, ended_at__isnull=False).order_by("position")
    return [turn.chosen_id if turn.chosen_id is not None else turn.written_text or "" for turn in rows]


def choose_option(
    *, session: LiveSession, notes: TurnNotes, index: int, by: User | None, now: dt.datetime
) -> LiveSession:
    """Continue with an option. A final one ends the session as a solution. Raises LiveRefusal; notes are kept."""
    with transaction.atomic():
        row = _lock(session)
        turn = load_turn(row)
        if _is_repeated(row, turn, notes.position):
            return row
        _apply_notes(row, turn, notes, now)
        refusal = _refuse_choice(turn, index)
        if refusal is None:
            chosen = LiveOption.objects.get(request=turn.request_id, index=index)
            LiveTurn.objects.filter(pk=turn.pk).update(
                chosen=chosen, ended_at=now, is_final=chosen.ends_solution, draft=""
            )
            _continue_session(row, chosen.ends_solution, by, now)
    if refusal is not None:
        raise refusal
    return row


def write_step(
    *, session: LiveSession, notes: TurnNotes, text: str, ends_solution: bool, by: User | None, now: dt.datetime
) -> LiveSession:
    """Continue with a step that the rater wrote. Raises LiveRefusal; notes are kept."""
    with transaction.atomic():
        row = _lock(session)
        turn = load_turn(row)
        if _is_repeated(row, turn, notes.position):
            return row
        _apply_notes(row, turn, notes, now)
        refusal = _refuse_unrated(turn) if turn.shown else None
        if not text.strip():
            refusal = LiveRefusal("empty", _("Write the step first."))
        if refusal is None:
            LiveTurn.objects.filter(pk=turn.pk).update(
                written_text=_check_text(text), ended_at=now, is_final=ends_solution, draft=""
            )
            _continue_session(row, ends_solution, by, now)
    if refusal is not None:
        raise refusal
    return row


def _is_repeated(session: LiveSession, turn: LiveTurn, position: int) -> bool:
    """Return whether the step was decided before, so that the message is a repetition. Raises LiveRefusal if the
    session cannot be continued."""
    if session.state == LiveSessionState.ENDED or position < turn.position:
        return True
    if session.state == LiveSessionState.ASIDE:
        raise LiveRefusal("aside", _("This problem is put aside. Continue it on the list of problems."))
    if position > turn.position or turn.ended_at is not None:
        raise LiveRefusal("unknown_turn", _("This step is not known here. Reload the page."))
    return False


def _refuse_choice(turn: LiveTurn, index: int) -> LiveRefusal | None:
    refusal = _refuse_unrated(turn)
    option = LiveOption.objects.filter(request=turn.request_id, index=index).first()
    if option is None or turn.shown is None or index not in turn.shown:
        return LiveRefusal("unknown_option", _("This option is not known here. Reload the page."))
    if not option.is_whole:
        return LiveRefusal("truncated", _("This option was cut off. Choose another one or write your own step."))
    if refusal is None and option.rating != 1:
        return LiveRefusal("not_positive", _("Only an option that you rated positive can be chosen."))
    return refusal


def _refuse_unrated(turn: LiveTurn) -> LiveRefusal | None:
    rows = LiveOption.objects.filter(request=turn.request_id, rating=None).exclude(ending=completions.TRUNCATED)
    n = rows.filter(same_as=None).count()
    return LiveRefusal("unrated", _("Rate every option first. %(n)d are missing.") % {"n": n}) if n else None


def _continue_session(session: LiveSession, is_final: bool, by: User | None, now: dt.datetime) -> None:
    LiveSession.objects.filter(pk=session.pk).update(changed_at=now)
    path = load_path(session)
    if is_final:
        _end_session(session, FinishReason.SOLUTION, "", by, now)
    elif len(path) < session.policy.most_steps:
        _add_turn(session, path, now)


def end_session(
    *,
    session: LiveSession,
    notes: TurnNotes | None,
    reason: FinishReason,
    note: str,
    by: User | None,
    now: dt.datetime,
) -> LiveSession:
    """End a session: the solution is complete, it contains an error, the rater gives up, or the problem is bad."""
    with transaction.atomic():
        row = _lock(session)
        if row.state == LiveSessionState.ENDED:
            return row
        turn = load_turn(row)
        if notes is not None and notes.position == turn.position and turn.ended_at is None:
            _apply_notes(row, turn, notes, now)
        refusal = _refuse_end(row, reason, note)
        if refusal is None:
            _end_session(row, reason, note.replace("\0", "")[:MAX_NOTE_CHARACTERS], by, now)
    if refusal is not None:
        raise refusal
    return row


def _refuse_end(session: LiveSession, reason: FinishReason, note: str) -> LiveRefusal | None:
    if reason in (FinishReason.SOLUTION, FinishReason.FOUND_ERROR) and not load_path(session):
        return LiveRefusal("no_step", _("Choose or write a step first."))
    if reason in (FinishReason.GIVE_UP, FinishReason.BAD_PROBLEM) and not note.strip():
        return LiveRefusal("no_reason", _("Write why, in a few words."))
    return None


def _end_session(session: LiveSession, reason: FinishReason, note: str, by: User | None, now: dt.datetime) -> None:
    session.state, session.ended_at, session.changed_at = LiveSessionState.ENDED, now, now
    session.finish_reason, session.finish_note = reason.value, note
    if session.rater is not None:
        work = build_work(session, reason, note)
        session.submission = live_submissions.save_live_submission(rater=session.rater, work=work, by=by, now=now)
    session.save(update_fields=["state", "ended_at", "changed_at", "finish_reason", "finish_note", "submission"])
    stopped = OptionRequest.objects.filter(session=session, state=OptionRequestState.WAITING)
    stopped.filter(is_prefetched=True).delete()


def build_work(session: LiveSession, reason: FinishReason, note: str) -> LiveWork:
    """Return the session as the submission that it becomes."""
    policy = session.policy
    turns = list(LiveTurn.objects.filter(session=session).select_related("chosen").order_by("position"))
    by_request: dict[int, list[LiveOption]] = {turn.request_id: [] for turn in turns}
    for option in LiveOption.objects.filter(request__in=by_request).order_by("index"):
        by_request[option.request_id].append(option)
    if reason == FinishReason.SOLUTION and turns[-1].ended_at is None:
        turns = turns[:-1]  # nothing of it belongs to the solution
    steps = [_record_turn(turn, by_request[turn.request_id]) for turn in turns]
    last = next((turn for turn in reversed(turns) if turn.ended_at is not None), None)
    final = "" if last is None else last.written_text or (last.chosen.text if last.chosen else "")
    return LiveWork(
        key=f"{session.project_id} {session.pk} {session.seed}",
        problem=session.problem,
        steps=steps,
        finish_reason=reason,
        finish_note=note,
        started_at=session.started_at,
        separator=policy.step_end,
        answer=completions.find_final_answer(final) if reason == FinishReason.SOLUTION else None,
        guideline=session.guideline,
        saw_reference_answer=session.saw_reference_answer,
        provenance=_describe_provenance(policy),
        metadata={"live_session": session.pk, "live_mode": policy.mode, "live_policy": policy.version},
    )


def _describe_provenance(policy: LivePolicy) -> Mapping[str, Any]:
    return {
        "base_model": "",
        "policy": policy.model,
        "sampler": policies.describe_sampler(policy) | {"template_sha256": policy.template_digest},
        "scaffold": f"live, {policy.mode}",
        "segmenter": "live",
        "reasoning": "",
    }


def _record_turn(turn: LiveTurn, options: Sequence[LiveOption]) -> LiveStepRecord:
    return LiveStepRecord(
        options=[RatedOption(each.index, each.text, each.rating, each.flagged) for each in options]
        if turn.shown is not None
        else [],
        shown=turn.shown if turn.shown is not None or turn.ended_at is None else [],
        chosen=turn.chosen.index if turn.chosen else None,
        written=turn.written_text,
        active_ms=turn.active_ms,
    )


def put_aside(*, session: LiveSession, notes: TurnNotes | None, now: dt.datetime) -> None:
    """Put a session aside, so that the rater can begin another problem."""
    with transaction.atomic():
        row = _lock(session)
        turn = load_turn(row)
        if row.state != LiveSessionState.OPEN:
            return
        if notes is not None and notes.position == turn.position and turn.ended_at is None:
            _apply_notes(row, turn, notes, now)
        LiveSession.objects.filter(pk=row.pk).update(state=LiveSessionState.ASIDE, changed_at=now)


def resume_session(*, session: LiveSession, now: dt.datetime) -> None:
    """Continue a session that was put aside. Another open one is put aside instead."""
    with transaction.atomic():
        row = _lock(session)
        if row.state != LiveSessionState.ASIDE:
            return
        others = LiveSession.objects.filter(rater=row.rater_id, state=LiveSessionState.OPEN)
        others.update(state=LiveSessionState.ASIDE, changed_at=now)
        LiveSession.objects.filter(pk=row.pk).update(state=LiveSessionState.OPEN, changed_at=now)


def _lock(session: LiveSession) -> LiveSession:
    rows = LiveSession.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("policy", "problem", "project", "rater", "guideline").get(pk=session.pk)


def _check_text(text: str) -> str:
    if len(text) > MAX_STEP_CHARACTERS:
        raise LiveRefusal(
            "too_long", _("The step is too long. Write at most %(n)d characters.") % {"n": MAX_STEP_CHARACTERS}
        )
    return text.replace("\0", "")

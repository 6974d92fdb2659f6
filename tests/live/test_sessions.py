"""Sessions from the first options to the submission, with a server that speaks the real protocol."""

import datetime as dt
from collections.abc import Iterator

import pytest

from labeling.models import BenchmarkProblem, Judgment, Option, Problem, Rater, StepReview, Submission, Trace
from labeling.models.assignment import FinishReason
from labeling.quality import resolve
from live import option_requests, policies, request_log, sessions
from live.models import LiveOption, LiveSession, LiveTurn, OptionRequest
from live.sessions import LiveRating, LiveRefusal, NoProblemLeft, TurnNotes
from prm import registry
from tests import factories
from tests.live import live_project
from tests.live.step_servers import ScriptedStep, StepServer, running_steps
from tests.prm import canary_project

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def server() -> StepServer:
    return StepServer()


@pytest.fixture
def address(server: StepServer) -> Iterator[str]:
    with running_steps(server) as address:
        yield address


@pytest.fixture
def rater() -> Rater:
    return factories.make_rater(live_project.make_live_project(reserve_problem_share=0))


def begin(rater: Rater, address: str, **fields: object) -> LiveSession:
    live_project.make_policy(rater.project, address, **fields)
    return live_project.begin(rater)


def write(session: LiveSession, position: int, text: str = "So 5.", *, ends: bool = False) -> LiveSession:
    notes = TurnNotes(position)
    return sessions.write_step(session=session, notes=notes, text=text, ends_solution=ends, by=None, now=NOW)


def test_solution_becomes_a_live_trace_with_its_submission(rater: Rater, address: str) -> None:
    session = live_project.solve(begin(rater, address))
    trace = Trace.objects.get()
    assert trace.provenance is not None
    assert (trace.kind, trace.n_steps, trace.provenance.scaffold) == ("live", 4, "live, completions")
    assert trace.answer is not None
    assert session.submission is not None
    assert (session.submission.finish_reason, session.submission.protocol) == ("solution", "live")
    assert StepReview.objects.filter(chosen__isnull=False).count() == 4
    assert Judgment.objects.filter(rating=1).count() == 12
    assert resolve.resolve_due_traces(now=NOW) == 1
    trace.settlement.refresh_from_db()
    assert (trace.settlement.state, trace.settlement.reason) == ("live", "live")


def test_request_records_what_a_replay_needs(rater: Rater, address: str, server: StepServer) -> None:
    live_project.show(begin(rater, address, top_k=20))
    request = OptionRequest.objects.get()
    sent = {key: value for key, value in server.requests[0].items() if key != "prompt"}
    assert (request.sent, request.server_version, request.served_model) == (sent, "0.11.2", "scripted")
    assert {"seed", "stop", "n", "top_k", "temperature", "request_id", "return_token_ids"} <= sent.keys()
    option = LiveOption.objects.get(index=0)
    assert (option.finish_reason, option.stop_reason, option.mean_logprob) == ("stop", '"\\n\\n"', -0.5)
    assert option.token_ids
    assert request.has_human_steps is False


def test_request_names_the_current_prm_and_that_no_scores_were_shown(rater: Rater, address: str) -> None:
    prm = canary_project.register_scorer(rater.project, "http://127.0.0.1:1")
    registry.make_current(prm=prm, by=None, now=NOW)
    live_project.show(begin(rater, address))
    (record,) = request_log.describe_requests(rater.project)
    assert (record["prm"]["version"], record["prm"]["backend"]) == (prm.version, prm.backend)
    assert record["has_shown_scores"] is False


def test_every_change_of_a_rating_is_logged(rater: Rater, address: str) -> None:
    session = begin(rater, address)
    turn = live_project.show(session)

    def record(*ratings: LiveRating) -> None:
        sessions.record_notes(session=session, notes=TurnNotes(0, ratings), now=NOW)

    for rating in (1, -1, -1, None):  # a repeated message changes nothing
        record(LiveRating(0, rating))
    live_project.choose(session, turn)
    for _ in range(2):  # too late, and repeated
        record(LiveRating(0, -1, is_flagged=True), LiveRating(1, 1))
    edits = LiveOption.objects.get(request=turn.request, index=0).edits.order_by("pk")
    assert list(edits.values_list("rating", "flagged", "was_applied")) == [
        (1, False, True),
        (-1, False, True),
        (None, False, True),
        (1, False, True),
        (-1, True, False),
    ]
    assert LiveOption.objects.get(request=turn.request, index=0).rating == 1
    logged = [each["edits"] for each in next(request_log.describe_requests(rater.project))["options"]]
    assert [len(each) for each in logged] == [5, 1, 1]


def test_only_a_whole_positive_option_of_rated_ones_is_chosen(rater: Rater, address: str, server: StepServer) -> None:
    server.script = lambda prompt, seed, index: ScriptedStep(f"Step {index}", "length" if index == 2 else "step")
    session = begin(rater, address)
    turn = live_project.show(session)

    def choose(index: int, *ratings: tuple[int, int]) -> str:
        notes = TurnNotes(0, [LiveRating(*each) for each in ratings])
        with pytest.raises(LiveRefusal) as refusal:
            sessions.choose_option(session=session, notes=notes, index=index, by=None, now=NOW)
        return refusal.value.code

    assert choose(0, (0, 1)) == "unrated"
    assert choose(1, (1, -1)) == "not_positive"
    assert choose(2, (2, 1)) == "truncated"
    assert choose(9) == "unknown_option"
    assert LiveOption.objects.filter(request=turn.request, rating__isnull=False).count() == 3  # kept all the same
    sessions.choose_option(session=session, notes=TurnNotes(0), index=0, by=None, now=NOW)
    sessions.choose_option(session=session, notes=TurnNotes(0), index=0, by=None, now=NOW)  # the page repeats it
    assert LiveTurn.objects.filter(session=session).count() == 2


def test_duplicates_are_shown_once_and_stored_by_index(rater: Rater, address: str, server: StepServer) -> None:
    server.script = lambda prompt, seed, index: ScriptedStep(["Same.", "Other.", "Same.", " "][index], "step")
    session = begin(rater, address, n_options=4)
    turn = live_project.show(session)
    assert sorted(turn.shown or ()) == [0, 1, 2]
    assert abs((turn.shown or []).index(0) - (turn.shown or []).index(2)) == 1
    assert OptionRequest.objects.get().dropped == {"empty": 1}
    live_project.choose(session, turn)
    live_project.give_up(session)
    assert list(Option.objects.filter(step__position=0).values_list("text", flat=True)) == ["Same.", "Other.", "Same."]
    review = StepReview.objects.get(step__position=0)
    assert (review.shown or "").split()[review.chosen or 0] == "0"
    assert Judgment.objects.filter(turn=review, rating=1).count() == 3


def test_options_of_likely_choices_are_prefetched(rater: Rater, address: str, server: StepServer) -> None:
    session = begin(rater, address, n_prefetched=2)
    turn = live_project.show(session)
    sessions.record_notes(session=session, notes=live_project.note_ratings(turn), now=NOW)
    assert OptionRequest.objects.filter(is_prefetched=True).count() == 2
    live_project.answer_all(session)
    n_asked = len(server.requests)
    live_project.choose(session, turn, (turn.shown or [])[0])
    following = sessions.show_options(session=session, now=NOW)
    assert following.shown is not None
    assert len(server.requests) == n_asked


@pytest.mark.fault
def test_dead_server_leaves_the_rater_an_own_step(rater: Rater, address: str, server: StepServer) -> None:
    server.is_up = False
    session = begin(rater, address)
    turn = live_project.show(session)
    assert (turn.shown, turn.request.state) == (None, "failed")
    write(session, 0, "First, 1 + 2 = 3.")
    server.is_up = True
    later = NOW + dt.timedelta(seconds=10)
    live_project.answer_all(session, later)
    turn = sessions.show_options(session=session, now=later)
    assert turn.request.has_human_steps
    assert "First, 1 + 2 = 3.\n\n" in server.requests[-1]["prompt"]
    live_project.solve(session, later)
    first = StepReview.objects.get(step__position=0)
    assert (first.shown, first.written_text, first.chosen) == ("", "First, 1 + 2 = 3.", None)


@pytest.mark.fault
def test_failed_options_are_asked_again_with_the_same_seed(rater: Rater, address: str, server: StepServer) -> None:
    server.is_up = False
    session = begin(rater, address)
    live_project.show(session)
    server.is_up = True
    assert live_project.show(session).shown is None  # not yet
    turn = live_project.show(session, NOW + dt.timedelta(seconds=5))
    assert turn.shown is not None
    assert len({body["seed"] for body in server.requests}) == 1


def test_lost_process_loses_no_request(rater: Rater, address: str) -> None:
    session = begin(rater, address)
    request = OptionRequest.objects.get()
    assert option_requests._take_request(request_id=request.pk, now=NOW) is not None  # and dies
    assert option_requests.list_unasked(session=session, now=NOW) == []
    later = NOW + dt.timedelta(minutes=1)
    assert live_project.show(session, later).shown is not None


def test_limits_stop_requests_and_steps(rater: Rater, address: str) -> None:
    session = begin(rater, address, most_session_tokens=1, most_steps=2)
    live_project.choose(session, live_project.show(session))
    turn = live_project.show(session)
    assert (turn.request.state, turn.shown) == ("capped", None)
    write(session, 1)
    assert LiveTurn.objects.filter(session=session).count() == 2
    ended = sessions.end_session(session=session, notes=None, reason=FinishReason.SOLUTION, note="", by=None, now=NOW)
    assert ended.finish_reason == "solution"


def test_endings_need_a_step_or_a_reason(rater: Rater, address: str) -> None:
    session = begin(rater, address)
    for reason, note, code in (
        (FinishReason.SOLUTION, "", "no_step"),
        (FinishReason.FOUND_ERROR, "x", "no_step"),
        (FinishReason.GIVE_UP, " ", "no_reason"),
    ):
        with pytest.raises(LiveRefusal) as refusal:
            sessions.end_session(
                session=session, notes=TurnNotes(0, draft="Half a step"), reason=reason, note=note, by=None, now=NOW
            )
        assert refusal.value.code == code
    assert LiveTurn.objects.get().draft == "Half a step"
    live_project.give_up(session)
    assert Submission.objects.get().finish_note == "Too long."


def test_written_step_can_end_the_solution(rater: Rater, address: str) -> None:
    session = begin(rater, address)
    write(session, 0, "The answer is 7.", ends=True)
    session.refresh_from_db()
    assert (session.state, session.finish_reason) == ("ended", "solution")
    assert Trace.objects.get().answer == "7."


def test_session_is_put_aside_and_resumed(rater: Rater, address: str) -> None:
    first = begin(rater, address)
    sessions.put_aside(session=first, notes=TurnNotes(0, draft="Typed"), now=NOW)
    second = live_project.begin(rater)
    assert second.problem != first.problem
    sessions.resume_session(session=first, now=NOW)
    current = sessions.find_current(rater)
    assert current == first
    assert sessions.load_turn(first).draft == "Typed"
    assert list(sessions.list_aside(rater)) == [second]


def test_problems_are_shared_out_and_held_out_ones_kept(rater: Rater, address: str) -> None:
    project = rater.project
    held, listed, free = *Problem.objects.filter(project=project).order_by("pk"), factories.make_problem(project)
    Problem.objects.filter(pk=held.pk).update(is_reserve=True)
    source = factories.make_source(factories.make_project(), purpose="benchmark")
    BenchmarkProblem.objects.create(source=source, normal_digest=listed.normal_digest, listed_at=NOW)
    session = begin(rater, address)
    assert session.problem == free
    with pytest.raises(NoProblemLeft):
        live_project.begin(factories.make_rater(project))
    live_project.give_up(session)
    with pytest.raises(NoProblemLeft):
        live_project.begin(rater)


def test_closed_policy_begins_nothing(rater: Rater, address: str) -> None:
    session = begin(rater, address)
    policies.close_policy(policy=session.policy, by=None, now=NOW)
    assert live_project.begin(rater) == session
    with pytest.raises(NoProblemLeft):
        live_project.begin(factories.make_rater(rater.project))


def test_waiting_problems_are_counted_by_rater(rater: Rater, address: str) -> None:
    session = begin(rater, address)
    other = factories.make_rater(factories.make_project())
    assert sessions.count_waiting([rater.pk, other.pk]) == {rater.pk: 2}
    live_project.give_up(session)
    assert sessions.count_waiting([rater.pk]) == {rater.pk: 1}

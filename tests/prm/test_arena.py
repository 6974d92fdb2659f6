"""The arena: attempts, blind checks with controls, and hard negatives."""

from collections.abc import Iterator
from functools import partial

import pytest

from events.models import Event
from labeling.models import Project, Rater, Trace
from labeling.models.gold import GoldUse
from labeling.quality import gold
from prm import arena
from prm.arena import ArenaRefused
from prm.models import ArenaCheck, ArenaEdit
from prm.models.arena import ArenaAnswer, ArenaEditState
from tests import factories
from tests.machines import judged_project
from tests.prm import arena_project
from tests.prm.backends import scorer_servers

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def project() -> Iterator[Project]:
    project = factories.make_project(overlap=2)
    arena_project.make_settled(project)
    with scorer_servers.running_scorer(scorer_servers.FakeVllmServer(rows=arena_project.score_by_words)) as address:
        arena_project.open_arena(project, address)
        yield project


def fool(author: Rater) -> ArenaEdit:
    task = arena.find_task(rater=author)
    assert task is not None
    text = task.step.text.replace("Each", "clearly Each")
    return arena.try_edit(rater=author, trace=task.step.trace, text=text, reason="Still wrong.", now=NOW)


def test_attempt_is_scored_and_only_a_believed_one_waits_for_checks(project: Project) -> None:
    author = factories.make_rater(project)
    task = arena.find_task(rater=author)
    assert task is not None
    assert (task.step.position, len(task.step.steps), round(task.p_right, 2)) == (1, 2, 0.1)
    assert arena.find_task(rater=author) == task
    other = arena.find_task(rater=author, n_skipped=1)
    assert other is not None
    assert other.step.trace != task.step.trace
    text = task.step.text
    attempt = partial(arena.try_edit, rater=author, trace=task.step.trace, now=NOW)
    failed = attempt(text=text.replace("total", "sum"), reason="x")
    assert (failed.state, failed.n_changed) == (ArenaEditState.FAILED, 1)
    fooled = fool(author)
    assert (fooled.state, round(fooled.p_right_after, 2)) == (ArenaEditState.WAITING, 0.9)
    for wrong, reason in ((text, "x"), ("clearly " * 30, "x"), (f"{text} now", " "), ("", "x")):
        with pytest.raises(ArenaRefused):
            attempt(text=wrong, reason=reason)
    following = arena.find_task(rater=author)
    assert following is not None
    assert following.step.trace != task.step.trace


@pytest.mark.fault
def test_two_blind_checks_make_a_hard_negative(project: Project) -> None:
    author, *checkers = [factories.make_rater(project) for _ in range(3)]
    edit = fool(author)
    assert arena.serve_check(rater=author, now=NOW) is None
    for checker in checkers:
        while not ArenaCheck.objects.filter(rater=checker, edit=edit).exclude(answer="").exists():
            check = arena.serve_check(rater=checker, now=NOW)
            assert check is not None
            assert arena.serve_check(rater=checker, now=NOW) == check
            step = arena.load_checked_step(check)
            assert ("clearly" in step.text) == (check.edit_id is not None)
            is_wrong = check.edit_id is not None or check.is_wrong
            arena.answer_check(check=check, answer=ArenaAnswer.WRONG if is_wrong else ArenaAnswer.RIGHT, now=NOW)
    edit.refresh_from_db()
    assert edit.state == ArenaEditState.CONFIRMED
    (row,) = arena.export_hard_negatives(project.pk)
    assert (row["label"], row["steps"][-1], row["n_wrong"], len(row["steps"])) == (1, edit.text, 2, 2)
    assert row["author"] == str(author.pseudonym)
    assert list(arena.export_hard_negatives(project.pk, after=edit.pk)) == []
    assert arena.count_edits(project.pk)["confirmed"] == 1
    assert all(each.n_controls == each.n_right for each in arena.list_checkers(project.pk))
    assert Event.objects.filter(what="arena.confirmed").count() == 1
    with pytest.raises(ArenaRefused):
        arena.answer_check(check=edit.checks.latest("pk"), answer=ArenaAnswer.WRONG, now=NOW)


def test_checks_that_find_no_error_reject_the_edit(project: Project) -> None:
    edit = fool(factories.make_rater(project))
    for answer in (ArenaAnswer.RIGHT, ArenaAnswer.UNCLEAR):
        check = ArenaCheck.objects.create(
            project=project,
            rater=factories.make_rater(project),
            edit=edit,
            trace=edit.trace,
            position=1,
            served_at=NOW,
        )
        arena.answer_check(check=check, answer=answer, now=NOW)
    edit.refresh_from_db()
    assert edit.state == ArenaEditState.REJECTED
    assert list(arena.export_hard_negatives(project.pk)) == []


def test_no_one_checks_a_trace_that_they_labeled(project: Project) -> None:
    edit = fool(factories.make_rater(project))
    for labeler in Rater.objects.filter(project=project, assignments__trace=edit.trace):
        assert arena.serve_check(rater=labeler, now=NOW) is None


def test_author_is_not_told_about_a_trace_that_they_still_label(project: Project) -> None:
    author = factories.make_rater(project)
    task = arena.find_task(rater=author)
    assert task is not None
    factories.make_assignment(author, Trace.objects.get(pk=task.step.trace))
    other = arena.find_task(rater=author)
    assert other is not None
    assert other.step.trace != task.step.trace
    with pytest.raises(ArenaRefused):
        arena.try_edit(rater=author, trace=task.step.trace, text="Other.", reason="x", now=NOW)


def test_gold_and_held_out_traces_stay_out(project: Project) -> None:
    first, second, _third = [row.trace for row in arena.select_wrong_steps(project.pk)]
    gold.make_gold(trace=first, use=GoldUse.HIDDEN, accepted_first_errors=[1], by=None, now=NOW)
    second.problem.is_reserve = True
    second.problem.save()
    assert not arena.select_wrong_steps(project.pk).filter(trace__in=[first, second]).exists()


def test_closed_arena_and_paused_raters_get_nothing(project: Project) -> None:
    author = factories.make_rater(project)
    fool(author)
    arena.close_arena(project=project, by=None, now=NOW)
    for refused in (arena.find_task, lambda rater: arena.serve_check(rater=rater, now=NOW)):
        with pytest.raises(ArenaRefused):
            refused(rater=author)
    arena.open_arena(project=project, by=None, now=NOW)
    author.paused_at, author.paused_reason = NOW, "pause"
    author.save()
    with pytest.raises(ArenaRefused):
        arena.find_task(rater=author)


def test_pushed_prm_opens_no_arena() -> None:
    project = factories.make_project()
    with pytest.raises(ArenaRefused):
        arena.open_arena(project=project, by=None, now=NOW)
    prm = judged_project.make_prm(project)
    prm.is_current, prm.made_current_at = True, NOW
    prm.save()
    with pytest.raises(ArenaRefused):
        arena.open_arena(project=project, by=None, now=NOW)


def test_silent_prm_refuses_attempts() -> None:
    project = factories.make_project(overlap=2)
    (trace,) = arena_project.make_settled(project, 1)
    arena_project.open_arena(project)
    with pytest.raises(ArenaRefused):
        arena.find_task(rater=factories.make_rater(project))
    with pytest.raises(ArenaRefused):
        arena.try_edit(rater=factories.make_rater(project), trace=trace.pk, text="Other.", reason="x", now=NOW)

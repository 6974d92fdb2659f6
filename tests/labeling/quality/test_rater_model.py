"""The rater model: fits, posteriors, and settling by probability."""

import random

import pytest

from events.models import Event
from jobs import runner
from labeling.models import (
    Assignment,
    Consensus,
    FirstErrorReport,
    Gold,
    GoldAnswer,
    Project,
    Rater,
    RaterModelFit,
    ReportCount,
    Settlement,
    Step,
    Trace,
)
from labeling.models.consensus import FitBasis
from labeling.models.gold import GoldUse
from labeling.quality import posteriors, rater_model, resolve
from labeling.quality.posteriors import TraceShape
from labeling.quality.submitted_reports import RevisionReport
from stats.estimates import Reason
from tests import factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW
SHAPE = TraceShape([0, 1, 2], 3, "", 1)
GOOD, CARELESS = 0.95, 0.5


class Crowd:
    """Three raters of known quality, with reports but no ratings, which a fit does not use."""

    def __init__(self, project: Project, seed: int = 0) -> None:
        self.project, self.random = project, random.Random(seed)
        self.raters = submitted_work.make_raters(project, 3)
        self.quality = dict(zip(self.raters, (GOOD, GOOD, CARELESS), strict=True))
        self.blind: list[Rater] = []  # they see no errors
        self.problem = factories.make_problem(project)

    def says(self, rater: Rater, truth: int | None) -> int | None:
        if rater in self.blind:
            return None
        if self.random.random() < self.quality[rater]:
            return truth
        return self.random.choice([each for each in (0, 1, 2, None) if each != truth])

    def read(self, n: int) -> None:
        assignments, reports = [], []
        for trace in self._traces(n):
            truth = self.random.choice([0, 1, None])
            for rater in self.raters:
                place = self.says(rater, truth)
                assignments.append(self._assignment(rater, trace, "work"))
                told = {"first_error": place, "n_passed": 3 if place is None else place, "revision": 1}
                reports.append(
                    FirstErrorReport(trace=trace, project=self.project, rater=rater, is_censored=False, **told)
                )
        for report, assignment in zip(reports, Assignment.objects.bulk_create(assignments), strict=True):
            report.assignment = assignment
        FirstErrorReport.objects.bulk_create(reports)

    def meet_gold(self, n: int) -> None:
        traces = self._traces(n)
        truths = [self.random.choice([0, 1, None]) for _ in traces]
        golds = Gold.objects.bulk_create(
            Gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[truth], made_at=NOW)
            for trace, truth in zip(traces, truths, strict=True)
        )
        known = [(gold, truth, rater) for gold, truth in zip(golds, truths, strict=True) for rater in self.raters]
        made = Assignment.objects.bulk_create(self._assignment(rater, gold.trace, "gold") for gold, _, rater in known)
        GoldAnswer.objects.bulk_create(
            GoldAnswer(
                assignment=assignment,
                gold=gold,
                project=self.project,
                rater=rater,
                use=GoldUse.HIDDEN,
                first_error=self.says(rater, truth),
                verdict="right",
                answered_at=NOW,
            )
            for assignment, (gold, truth, rater) in zip(made, known, strict=True)
        )

    def _traces(self, n: int) -> list[Trace]:
        before = Trace.objects.count()
        made = Trace.objects.bulk_create(
            Trace(project=self.project, problem=self.problem, digest=f"{before + k}", n_steps=3, added_at=NOW)
            for k in range(n)
        )
        Step.objects.bulk_create(Step(trace=trace, position=at) for trace in made for at in range(3))
        return made

    def _assignment(self, rater: Rater, trace: Trace, purpose: str) -> Assignment:
        return Assignment(
            project=self.project,
            rater=rater,
            trace=trace,
            purpose=purpose,
            state="submitted",
            submitted_at=NOW,
            finish_reason="solution",
            submitted_revision=1,
        )


@pytest.fixture
def crowd() -> Crowd:
    return Crowd(factories.make_project(overlap=2, overlap_limit=3))


def test_fit_needs_enough_data(crowd: Crowd) -> None:
    crowd.read(rater_model.MIN_TRACES - 1)
    assert rater_model.fit_raters(project_id=crowd.project.pk, now=NOW) is None
    crowd.read(1)
    made = rater_model.fit_raters(project_id=crowd.project.pk, now=NOW)
    assert made is not None
    assert (made.number, made.n_gold, made.temperature, made.threshold) == (1, 0, 1.0, None)
    assert made.temperature_reason == made.threshold_reason == Reason.FEW_GOLD
    detail = {"basis": "blind", "fit": 1, "gold": 0, "threshold": None}
    assert Event.objects.get(what="raters.fitted").detail == detail


@pytest.mark.fault
def test_fit_separates_careful_and_careless_raters_and_calibrates_on_gold(crowd: Crowd) -> None:
    crowd.read(120)
    crowd.meet_gold(110)
    made = rater_model.fit_raters(project_id=crowd.project.pk, now=NOW)
    assert made is not None
    careful, careless = crowd.raters[0], crowd.raters[2]
    assert made.rates[str(careful.pk)][0] < made.rates[str(careless.pk)][0]  # false alarms
    assert made.rates[str(careful.pk)][1] > made.rates[str(careless.pk)][1]  # detections
    assert (made.n_gold, made.temperature_reason) == (110, "")
    assert made.gap_before is not None
    assert made.gap_after is not None
    assert made.threshold is not None
    assert made.lower_bound is not None
    assert made.lower_bound >= rater_model.PROMISED_ACCURACY
    assert rater_model.load_current_fit(crowd.project.pk) == made


def test_posterior_follows_the_better_rater(crowd: Crowd) -> None:
    crowd.read(150)
    made = rater_model.fit_raters(project_id=crowd.project.pk, now=NOW)
    assert made is not None
    careful, _, careless = crowd.raters
    seen = [RevisionReport(1, 1, 7, careful.pk, 1, 1), RevisionReport(2, 1, 7, careless.pk, None, 3)]
    found = posteriors.compute_posteriors(made, {7: SHAPE}, seen)[7]
    assert found.leading == 1
    assert found.probability_at(1) > 0.5
    assert sum(found.as_list()) == pytest.approx(1)
    assert found.probability_after(0) == pytest.approx(1 - found.probability_at(0))
    assert found.as_list() == [round(found.probability_at(place), 6) for place in (0, 1, 2, None)]
    stranger = posteriors.compute_posteriors(made, {7: SHAPE}, [RevisionReport(1, 1, 7, 10**9, 1, 1)])
    assert stranger[7].leading == 1


def test_consensus_stores_its_probability(crowd: Crowd) -> None:
    """Traces settled before the first fit are resolved again once."""
    crowd.read(60)
    trace = factories.make_trace(crowd.project)
    for rater in crowd.raters[:2]:
        submitted_work.submit_trace(rater, trace, [1, -1])
    resolve.resolve_due_traces(now=NOW)
    assert Consensus.objects.get().fit is None
    job = rater_model.enqueue_fit(project_id=crowd.project.pk, now=NOW)
    assert job is not None
    assert rater_model.enqueue_fit(project_id=crowd.project.pk, now=NOW) is None
    assert runner.run_job(job.pk, rater_model.chunks) == "done"
    resolve.resolve_due_traces(now=NOW)
    row = Consensus.objects.get(revision=2)
    assert row.fit == RaterModelFit.objects.get()
    assert row.posterior is not None
    assert row.probability == row.posterior[1] > 0.9
    assert sum(row.posterior) == pytest.approx(1, abs=1e-5)
    # P(E > 0) for the step before, P(E = 1) at it: not the shares of votes, which are 1.
    assert [label[3] for label in row.labels] == [
        pytest.approx(1 - row.posterior[0], abs=1e-5),
        pytest.approx(row.probability, abs=1e-5),
    ]
    rater_model.fit_raters(project_id=crowd.project.pk, now=NOW)
    Settlement.objects.update(is_due=True)
    resolve.resolve_due_traces(now=NOW)
    assert Consensus.objects.count() == 2  # another fit makes no revision by itself


def test_assisted_submissions_have_their_own_fit(crowd: Crowd) -> None:
    """Assisted submissions change neither the blind fit nor the settlement."""
    crowd.read(60)
    judge = factories.make_machine_rater(crowd.project)
    trace = factories.make_trace(crowd.project)
    for rater in crowd.raters[:2]:
        submitted_work.submit_trace(rater, trace, [1, -1])
    resolve.resolve_due_traces(now=NOW)
    blind = rater_model.fit_raters(project_id=crowd.project.pk, now=NOW)
    assert blind is not None
    assert (
        rater_model.fit_raters(project_id=crowd.project.pk, now=NOW, basis=FitBasis.ASSISTED) is None
    )  # no assisted submissions
    Settlement.objects.update(is_due=True)
    resolve.resolve_due_traces(now=NOW)
    machine = submitted_work.submit_trace(judge, trace, [-1])
    shown = submitted_work.submit_trace(factories.make_rater(crowd.project), trace, [-1], is_assisted=True)
    again, assisted = (rater_model.fit_raters(project_id=crowd.project.pk, now=NOW, basis=basis) for basis in FitBasis)
    assert again is not None
    assert assisted is not None
    assert (again.number, assisted.number, again.rates) == (2, 1, blind.rates)
    assert {str(judge.pk), str(-shown.rater_id)} <= set(assisted.rates)
    assert not {str(judge.pk), str(-shown.rater_id)} & set(again.rates)
    Settlement.objects.update(is_due=True)
    resolve.resolve_due_traces(now=NOW)
    _votes_alone, before, row = Consensus.objects.order_by("revision")
    assert (before.assisted_votes, before.assisted_posterior) == ([], None)
    assert (row.first_error, row.n_votes, row.labels, row.posterior) == (1, 2, before.labels, before.posterior)
    assert (row.assisted_votes, row.assisted_fit) == ([1, 1, 0, 0], assisted)
    assert row.assisted_posterior is not None
    assert row.posterior is not None
    assert row.assisted_posterior[0] > row.posterior[0]
    assert FirstErrorReport.objects.filter(assignment=machine).count() == 0
    Settlement.objects.update(is_due=True)
    rater_model.fit_raters(project_id=crowd.project.pk, now=NOW, basis=FitBasis.ASSISTED)
    resolve.resolve_due_traces(now=NOW)
    assert Consensus.objects.count() == 3  # another fit makes no revision by itself


def make_fit(project: Project, threshold: float | None) -> RaterModelFit:
    """Make a fit in which all raters detect nine of ten errors and raise few false alarms."""
    return RaterModelFit.objects.create(
        project=project,
        number=1,
        made_at=NOW,
        n_traces=1,
        n_readings=1,
        rates={"others": [0.02, 0.9, 0.5]},
        hazards={"domains": {}, "all": [0.2] * 25},
        n_gold=100,
        threshold=threshold,
    )


@pytest.mark.parametrize("accepts", [True, False])
def test_settle_by_probability_if_enabled(accepts: bool) -> None:
    project = factories.make_project(overlap=2, overlap_limit=3, uses_probability=accepts)
    make_fit(project, 0.6)
    trace = factories.make_trace(project)
    first, second = submitted_work.make_raters(project, 2)
    submitted_work.submit_trace(first, trace, [1, 1, -1])
    submitted_work.submit_trace(second, trace, [1, -1])
    resolve.resolve_due_traces(now=NOW)
    row = Settlement.objects.get()
    # A false alarm is rare, a missed error is not: the earlier place is the likelier one.
    assert (row.state, row.reason) == (("settled", "accepted") if accepts else ("asked", "differ"))
    if accepts:
        assert (Consensus.objects.get().first_error, Consensus.objects.get().confidence) == (1, 0.5)


def test_settle_by_probability_requests_more_if_agreement_is_too_uncertain() -> None:
    project = factories.make_project(overlap=2, overlap_limit=3, uses_probability=True)
    make_fit(project, 0.9999999)
    trace = factories.make_trace(project)
    lane = factories.make_lane(project)
    factories.make_entry(lane, trace, slots=2)
    readers = submitted_work.make_raters(project, 3)
    states = []
    for rater in readers:
        submitted_work.submit_trace(rater, trace, [1, 1, 1])
        resolve.resolve_due_traces(now=NOW)
        row = Settlement.objects.get()
        states.append((row.state, row.reason))
    assert states == [
        ("reading", "first_readings"),
        ("asked", "doubtful"),
        ("contested", "doubtful_at_limit"),
    ]


def test_settle_by_votes_without_a_threshold() -> None:
    project = factories.make_project(overlap=1, uses_probability=True)
    make_fit(project, None)
    submitted_work.submit_trace(factories.make_rater(project), factories.make_trace(project), [1, 1, 1])
    resolve.resolve_due_traces(now=NOW)
    assert Settlement.objects.get().reason == "all_agree"


@pytest.mark.fault
def test_model_settles_traces_once_gold_shows_that_it_is_calibrated(crowd: Crowd) -> None:
    """Two careless raters outvote a careful one, until the model knows them."""
    other = factories.make_rater(crowd.project)
    crowd.raters.append(other)
    crowd.quality |= {crowd.raters[1]: 0.3, crowd.raters[2]: 0.3, other: GOOD}
    careful, *careless, _ = crowd.raters
    crowd.read(150)
    trace = factories.make_trace(crowd.project)
    for rater, ratings in zip((careful, *careless), ([1, -1], [1, 1, 1], [1, 1, 1]), strict=True):
        submitted_work.submit_trace(rater, trace, ratings)
    resolve.resolve_due_traces(now=NOW)
    assert (Settlement.objects.get().reason, Consensus.objects.get().first_error) == ("most_agree", None)
    made = rater_model.fit_raters(project_id=crowd.project.pk, now=NOW)
    assert made is not None
    assert not made.settles_traces  # no gold
    Settlement.objects.update(is_due=True)
    resolve.resolve_due_traces(now=NOW)
    assert Settlement.objects.get().reason == "most_agree"
    crowd.meet_gold(60)
    job = rater_model.enqueue_fit(project_id=crowd.project.pk, now=NOW)
    assert job is not None
    assert runner.run_job(job.pk, rater_model.chunks) == "done"
    fit = rater_model.load_current_fit(crowd.project.pk)
    assert fit is not None
    assert (fit.n_compared >= 30, fit.model_right > fit.votes_right, fit.settles_traces) == (True, True, True)
    assert fit.checked_right <= fit.n_checked >= fit.n_compared
    resolve.resolve_due_traces(now=NOW)
    assert Settlement.objects.get().reason == "most_likely"
    assert Consensus.objects.latest("revision").first_error == 1


def test_gold_tells_the_model_whom_to_believe(crowd: Crowd) -> None:
    """Two raters who never see an error outvote the careful one on every trace."""
    careful, *blind = crowd.raters
    crowd.blind = blind
    crowd.read(60)
    crowd.meet_gold(60)
    fit = rater_model.fit_raters(project_id=crowd.project.pk, now=NOW)
    assert fit is not None
    assert fit.rates[str(careful.pk)][1] > 0.7
    assert max(fit.rates[str(rater.pk)][1] for rater in blind) < 0.3


def test_all_answers_of_gold_inform_the_model_and_few_groups_of_each_trace_check_it() -> None:
    project = Project(overlap=2, overlap_limit=3)
    answers = [RevisionReport(n, 1, 7, n, place, 0) for n, place in enumerate([1, 1, 1, None, 1, 2, 2, 1, 1, 0])]
    labeled = rater_model.group_gold_answers([1], answers, project)
    assert [len(group) for group in labeled.groups] == [2, 3, 2, 2, 1]
    assert labeled.is_enough
    assert labeled.answers == answers
    work = [RevisionReport(n, 1, trace, n, 1, 0) for trace in (8, 9) for n in range(3)]
    shapes = dict.fromkeys((7, 8, 9), SHAPE)
    fit = rater_model.build_fit(
        project, [*work, *answers], gold={7: labeled}, shapes=shapes, basis=FitBasis.BLIND, now=NOW
    )
    assert (fit.n_traces, fit.n_readings, len(fit.rates)) == (3, 16, 11)
    assert (fit.n_gold, fit.n_checked, fit.n_compared) == (1, rater_model.MAX_GROUPS, 1)
    few = rater_model.group_gold_answers([1], answers[:1], project)
    assert (few.groups, few.is_enough) == ([answers[:1]], False)


@pytest.mark.fault
def test_new_fit_marks_the_settled_traces_that_it_doubts(crowd: Crowd) -> None:
    other = factories.make_rater(crowd.project)
    crowd.raters.append(other)
    crowd.quality |= {crowd.raters[1]: 0.3, crowd.raters[2]: 0.3, other: GOOD}
    careful, *careless, _ = crowd.raters
    sure, doubtful = factories.make_trace(crowd.project), factories.make_trace(crowd.project)
    for readers, trace in (((careful, other), sure), (careless, doubtful)):
        for rater in readers:
            submitted_work.submit_trace(rater, trace, [1, -1])
    resolve.resolve_due_traces(now=NOW)
    assert Settlement.objects.filter(state="settled", reason="all_agree").count() == 2
    crowd.read(150)
    crowd.meet_gold(60)

    def fit_again() -> set[int]:
        Settlement.objects.update(is_due=False)
        job = rater_model.enqueue_fit(project_id=crowd.project.pk, now=NOW)
        assert job is not None
        assert runner.run_job(job.pk, rater_model.chunks) == "done"
        return set(Settlement.objects.filter(is_due=True).values_list("trace", flat=True))

    fit_again()  # the first fit marks all
    assert fit_again() == {doubtful.pk}
    decided = Consensus.objects.get(trace=sure)
    decided.pk, decided.revision, decided.first_error = None, 2, 7  # no step that can be rated
    decided.save()
    Settlement.objects.filter(trace=sure).update(consensus_revision=2)
    assert fit_again() == {sure.pk, doubtful.pk}


def test_fit_is_made_by_day_when_the_work_has_grown(crowd: Crowd) -> None:
    def grow(n: int) -> bool:
        ReportCount.objects.update_or_create(
            project=crowd.project,
            rater=crowd.raters[0],
            defaults={"readings": n, "steps": n, "compared": 0, "same": 0, "missed": 0},
        )
        job = rater_model.enqueue_fit_if_grown(project_id=crowd.project.pk, now=NOW)
        if job is not None:
            runner.run_job(job.pk, rater_model.chunks)
        return job is not None

    assert [grow(n) for n in (99, 100, 110, 125, 150, 157)] == [False, True, False, True, False, True]

"""Labels of machines and of people beside them, without an endpoint."""

import datetime as dt
from collections.abc import Mapping, Sequence

from labeling.assignments.machine_submissions import MachineRating, MachineSubmission, save_machine_submissions
from labeling.models import Rater, Trace
from labeling.models.gold import GoldUse
from labeling.quality import gold, resolve
from machines import passports
from machines.models import MachinePassport
from machines.passport_models import PassportEnd
from tests import factories
from tests.labeling.quality import submitted_work


def label_by_machine(rater: Rater, labels: Mapping[Trace, int | None], *, now: dt.datetime = factories.NOW) -> None:
    """Store the first errors that a machine names, None for no error."""
    submitted = [
        MachineSubmission(trace.pk, [MachineRating(*each) for each in list_ratings(trace, first_error)])
        for trace, first_error in labels.items()
    ]
    save_machine_submissions(rater=rater, submitted=submitted, now=now)


def list_ratings(trace: Trace, first_error: int | None) -> list[tuple[int, int]]:
    end = trace.n_steps if first_error is None else first_error + 1
    return [(position, -1 if position == first_error else 1) for position in range(end)]


def label_by_person(rater: Rater, trace: Trace, first_error: int | None, *, now: dt.datetime = factories.NOW) -> None:
    ratings = [rating for _, rating in list_ratings(trace, first_error)]
    submitted_work.submit_trace(rater, trace, ratings, now=now)


def settle(people: Sequence[Rater], trace: Trace, first_error: int | None, *, now: dt.datetime = factories.NOW) -> None:
    """Let these people agree on a trace."""
    for person in people:
        label_by_person(person, trace, first_error, now=now)
    resolve.resolve_due_traces(now=now)


def make_hidden_gold(trace: Trace, first_error: int | None) -> None:
    gold.make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[first_error], by=None, now=factories.NOW)


def issue_passport(rater: Rater, *, now: dt.datetime = factories.NOW) -> MachinePassport:
    content = passports.build_passport(rater, epsilon=passports.DEFAULT_EPSILON)
    return passports.issue_passport(rater=rater, content=content, by=None, now=now)


def make_passport(rater: Rater, *, bound: float | None = 0.93, passes_test: bool = True) -> MachinePassport:
    """Create a passport with evidence for traces of 1 to 4 steps, without computing it."""
    strata = [
        {
            "stratum": {"domain": "", "shortest": 1, "longest": 4, "says_error": says_error},
            "n_judged": 500,
            "n_people": 300,
            "n_gold": 100,
            "agreement": 0.97,
            "shared": 0.0,
            "bounds": [
                {"promised": each, "bound": bound, "keeps": (bound or 0) >= each, "reason": None}
                for each in (0.8, 0.85, 0.9, 0.95)
            ],
        }
        for says_error in (False, True)
    ]
    content = passports.build_passport(rater, epsilon=passports.DEFAULT_EPSILON)
    content["strata"] = strata
    passport = passports.issue_passport(rater=rater, content=content, by=None, now=factories.NOW)
    passport.accuracy, passport.passes_test = 0.97, passes_test
    passport.save()
    return passport


def expire(passport: MachinePassport) -> None:
    MachinePassport.objects.filter(pk=passport.pk).update(
        expired_at=factories.NOW, expired_because=PassportEnd.GUIDELINE
    )

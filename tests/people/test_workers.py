"""Workers of a crowd platform come in by the invitation and their id, and come back to the same account."""

import datetime as dt
from functools import partial

import pytest
from django.http import QueryDict

from accounts.models import User
from events.models import Event
from labeling.models import Project
from people import invitations, members, workers
from people.models import Invitation, Membership, Role, WorkerId
from people.workers import Arrival
from tests.people.cast import Cast, make_cast
from tests.together import at_once

ANN = Arrival("5f3a91d2c4", "study-1", "session-1")


def invite(cast: Cast, now: dt.datetime, uses_allowed: int = 1, days: int = 14) -> str:
    Project.objects.filter(pk=cast.project.pk).update(takes_worker_ids=True)
    _, token = invitations.invite(
        project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=now, uses_allowed=uses_allowed, days=days
    )
    return token


@pytest.fixture
def cast() -> Cast:
    return make_cast()


@pytest.mark.django_db
def test_enter_makes_one_account_and_leads_back_to_it(cast: Cast, now: dt.datetime) -> None:
    token = invite(cast, now)
    first = workers.enter(token=token, arrival=ANN, now=now)
    again = workers.enter(token=token, arrival=ANN._replace(session="session-2"), now=now + dt.timedelta(days=1))
    assert first.user == again.user
    assert (first.role, Invitation.objects.get().uses) == (Role.ANNOTATOR, 1)
    known = WorkerId.objects.get()
    assert (known.worker, known.study, known.session) == (ANN.worker, "study-1", "session-2")
    assert not first.user.has_usable_password()
    assert ANN.worker not in f"{first.user.username} {first.user.name} {list(Event.objects.values())}"


@pytest.mark.django_db
def test_enter_takes_the_invitation_as_the_secret(cast: Cast, now: dt.datetime) -> None:
    token = invite(cast, now, days=1)
    workers.enter(token=token, arrival=ANN, now=now)
    with pytest.raises(invitations.InvitationIsOver):  # used up: it lets nobody else in
        workers.enter(token=token, arrival=Arrival("other"), now=now)
    with pytest.raises(invitations.InvitationIsOver):  # guessed
        workers.enter(token="guess", arrival=ANN, now=now)
    with pytest.raises(invitations.InvitationIsOver):  # too old, for who came by it too
        workers.enter(token=token, arrival=ANN, now=now + dt.timedelta(days=2))
    Project.objects.update(takes_worker_ids=False)
    with pytest.raises(invitations.InvitationIsOver):
        workers.enter(token=token, arrival=ANN, now=now)
    assert WorkerId.objects.count() == 1


@pytest.mark.django_db
def test_enter_takes_no_invitation_of_another_role(cast: Cast, now: dt.datetime) -> None:
    Project.objects.update(takes_worker_ids=True)
    _, token = invitations.invite(project=cast.project, role=Role.LEAD, by=cast.owner, now=now)
    with pytest.raises(invitations.InvitationIsOver):
        workers.enter(token=token, arrival=ANN, now=now)


@pytest.mark.django_db
@pytest.mark.parametrize("what", ["left", "promoted", "staff", "lead elsewhere"])
def test_enter_opens_no_account_that_may_do_more(what: str, cast: Cast, now: dt.datetime) -> None:
    token = invite(cast, now, uses_allowed=5)
    user = workers.enter(token=token, arrival=ANN, now=now).user
    if what == "left":
        members.leave(membership=cast.membership(user), now=now)
    elif what == "promoted":
        members.change_role(membership=cast.membership(user), role=Role.REVIEWER, by=cast.lead, now=now)
    elif what == "staff":
        User.objects.filter(pk=user.pk).update(is_staff=True)
    else:
        elsewhere = Membership.objects.get(user=cast.neighbour).project
        members.join(project=elsewhere, user=user, role=Role.LEAD, now=now)
    with pytest.raises(workers.CannotComeBack):
        workers.enter(token=token, arrival=ANN, now=now)


@pytest.mark.django_db
def test_erasing_somebody_takes_the_worker_id_away(cast: Cast, now: dt.datetime) -> None:
    user = workers.enter(token=invite(cast, now), arrival=ANN, now=now).user
    members.erase(user=user, by=cast.owner, now=now)
    assert not WorkerId.objects.exists()


@pytest.mark.django_db
def test_arrival_reads_the_parameters_that_the_project_names(cast: Cast) -> None:
    project = cast.project
    values = QueryDict("PROLIFIC_PID=abc&STUDY_ID=s&SESSION_ID=t&workerId=def").getlist
    assert workers.arrival(project=project, values_of=values) is None
    project.takes_worker_ids = True
    assert workers.arrival(project=project, values_of=values) == Arrival("abc", "s", "t")
    project.worker_parameter, project.study_parameter, project.session_parameter = "workerId", "", "assignmentId"
    assert workers.arrival(project=project, values_of=values) == Arrival("def")
    assert workers.arrival(project=project, values_of=QueryDict("PROLIFIC_PID=abc").getlist) is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    [
        "PROLIFIC_PID=",
        "PROLIFIC_PID={{%25PROLIFIC_PID%25}}",
        "PROLIFIC_PID=a&PROLIFIC_PID=b",
        "PROLIFIC_PID=" + "a" * 65,
        "PROLIFIC_PID=a%00b",
        "PROLIFIC_PID=%3Cscript%3E",
        "PROLIFIC_PID=a%20b",
        "PROLIFIC_PID=abc%0A",
        "PROLIFIC_PID=%D0%B0bc",
        "PROLIFIC_PID=abc&STUDY_ID='; DROP TABLE",
        "PROLIFIC_PID=abc&SESSION_ID=../..",
    ],
)
def test_arrival_refuses_what_is_no_id(query: str, cast: Cast) -> None:
    cast.project.takes_worker_ids = True
    with pytest.raises(workers.NotAWorkerId):
        workers.arrival(project=cast.project, values_of=QueryDict(query).getlist)


@pytest.mark.django_db(transaction=True)
def test_two_visits_at_once_make_one_account(now: dt.datetime) -> None:
    cast = make_cast()
    token = invite(cast, now, uses_allowed=5)
    come = partial(workers.enter, token=token, arrival=ANN, now=now)
    came = at_once(come, come, come)
    assert len({one.user_id for one in came if isinstance(one, Membership)}) == 1
    assert (WorkerId.objects.count(), Invitation.objects.get().uses) == (1, 1)

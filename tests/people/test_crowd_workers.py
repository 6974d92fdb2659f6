"""Crowd workers join with the invitation and their ID, and return to the same account."""

import datetime as dt
import hmac
from functools import partial

import pytest
from django.http import QueryDict

from accounts.models import User
from events.models import Event
from labeling.models import Project
from people import crowd_workers, invitations, members, roles
from people.crowd_workers import CrowdVisit
from people.models import Invitation, Membership, Role, WorkerDevice, WorkerId
from tests.concurrency import run_at_once
from tests.people.personas import Personas, make_personas

ANN = CrowdVisit("5f3a91d2c4", "study-1", "session-1")
HERE, ELSEWHERE = "a browser", "another browser"


def enter(token: str, now: dt.datetime, visit: CrowdVisit = ANN, device: str = HERE) -> Membership:
    return crowd_workers.admit_worker(token=token, visit=visit, device=device, now=now)


def invite(cast: Personas, now: dt.datetime, uses_allowed: int = 1, days: int = 14) -> str:
    Project.objects.filter(pk=cast.project.pk).update(takes_worker_ids=True)
    _, token = invitations.create_invitation(
        project=cast.project, role=Role.ANNOTATOR, by=cast.lead, now=now, uses_allowed=uses_allowed, days=days
    )
    return token


@pytest.fixture
def cast() -> Personas:
    return make_personas()


@pytest.mark.django_db
def test_worker_gets_one_account_and_returns_to_it(cast: Personas, now: dt.datetime) -> None:
    token = invite(cast, now)
    first = enter(token, now)
    again = enter(token, now + dt.timedelta(days=1), ANN._replace(session="session-2"))
    assert first.user == again.user
    assert (first.role, Invitation.objects.get().uses) == (Role.ANNOTATOR, 1)
    known = WorkerId.objects.get()
    assert (known.worker, known.study, known.session) == (ANN.worker, "study-1", "session-2")
    assert not first.user.has_usable_password()
    assert ANN.worker not in f"{first.user.username} {first.user.name} {list(Event.objects.values())}"


@pytest.mark.django_db
def test_worker_id_needs_a_valid_invitation(cast: Personas, now: dt.datetime) -> None:
    token = invite(cast, now, days=1)
    enter(token, now)
    with pytest.raises(invitations.InvitationInvalid):  # used up, so no one else can join
        enter(token, now, CrowdVisit("other"))
    with pytest.raises(invitations.InvitationInvalid):  # guessed
        enter("guess", now)
    with pytest.raises(invitations.InvitationInvalid):  # expired, for earlier workers too
        enter(token, now + dt.timedelta(days=2))
    Project.objects.update(takes_worker_ids=False)
    with pytest.raises(invitations.InvitationInvalid):
        enter(token, now)
    assert WorkerId.objects.count() == 1


@pytest.mark.django_db
def test_worker_id_needs_an_invitation_for_annotators(cast: Personas, now: dt.datetime) -> None:
    Project.objects.update(takes_worker_ids=True)
    _, token = invitations.create_invitation(project=cast.project, role=Role.LEAD, by=cast.owner, now=now)
    with pytest.raises(invitations.InvitationInvalid):
        enter(token, now)


@pytest.mark.django_db
@pytest.mark.parametrize("what", ["left", "promoted", "staff", "lead elsewhere"])
def test_worker_id_opens_no_account_with_more_rights(what: str, cast: Personas, now: dt.datetime) -> None:
    token = invite(cast, now, uses_allowed=5)
    user = enter(token, now).user
    if what == "left":
        members.leave_project(membership=cast.membership(user), now=now)
    elif what == "promoted":
        members.change_role(membership=cast.membership(user), role=Role.REVIEWER, by=cast.lead, now=now)
    elif what == "staff":
        User.objects.filter(pk=user.pk).update(is_staff=True)
    else:
        elsewhere = Membership.objects.get(user=cast.neighbour).project
        members.add_member(project=elsewhere, user=user, role=Role.LEAD, now=now)
    with pytest.raises(crowd_workers.WorkerCannotReturn):
        enter(token, now)


@pytest.mark.django_db
def test_visit_reads_the_parameters_that_the_project_names(cast: Personas) -> None:
    project = cast.project
    values = QueryDict("PROLIFIC_PID=abc&STUDY_ID=s&SESSION_ID=t&workerId=def").getlist
    assert crowd_workers.read_visit(project=project, values_of=values) is None
    project.takes_worker_ids = True
    assert crowd_workers.read_visit(project=project, values_of=values) == CrowdVisit("abc", "s", "t")
    project.worker_parameter, project.study_parameter, project.session_parameter = "workerId", "", "assignmentId"
    assert crowd_workers.read_visit(project=project, values_of=values) == CrowdVisit("def")
    assert crowd_workers.read_visit(project=project, values_of=QueryDict("PROLIFIC_PID=abc").getlist) is None


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
def test_visit_refuses_invalid_ids(query: str, cast: Personas) -> None:
    cast.project.takes_worker_ids = True
    with pytest.raises(crowd_workers.InvalidWorkerId):
        crowd_workers.read_visit(project=cast.project, values_of=QueryDict(query).getlist)


@pytest.mark.django_db
def test_another_browser_waits_for_a_lead(cast: Personas, now: dt.datetime) -> None:
    token = invite(cast, now)
    user = enter(token, now).user
    for _ in range(2):
        with pytest.raises(crowd_workers.DeviceNotReleased):
            enter(token, now, ANN._replace(session="forged"), ELSEWHERE)
    assert WorkerId.objects.get().session == "session-1"
    waiting = WorkerDevice.objects.get(released_at=None)
    with pytest.raises(roles.NotAllowed):
        crowd_workers.release_device(device=waiting, by=cast.reviewer, now=now)
    crowd_workers.release_device(device=waiting, by=cast.lead, now=now)
    assert enter(token, now, device=ELSEWHERE).user == enter(token, now).user == user
    events = Event.objects.filter(what__startswith="member.device").order_by("pk")
    assert list(events.values_list("what", "by", "subject")) == [
        ("member.device_waiting", user.pk, f"user:{user.pk}"),
        ("member.device_released", cast.lead.pk, f"user:{user.pk}"),
    ]


@pytest.mark.django_db
def test_waiting_browsers_are_limited(cast: Personas, now: dt.datetime) -> None:
    token = invite(cast, now)
    enter(token, now)
    for n in range(crowd_workers.MAX_WAITING_DEVICES + 3):
        with pytest.raises(crowd_workers.DeviceNotReleased):
            enter(token, now, device=f"browser {n}")
    assert WorkerDevice.objects.filter(released_at=None).count() == crowd_workers.MAX_WAITING_DEVICES
    assert enter(token, now)


@pytest.mark.django_db
def test_a_second_id_of_one_browser_is_reported(cast: Personas, now: dt.datetime) -> None:
    token = invite(cast, now, uses_allowed=2)
    enter(token, now)
    second = enter(token, now, CrowdVisit("invented"))
    assert Event.objects.get(what="member.device_shared").subject == f"user:{second.user_id}"


@pytest.mark.django_db
def test_signed_links_need_no_release_and_unsigned_ones_are_refused(cast: Personas, now: dt.datetime) -> None:
    token = invite(cast, now)
    project = Project.objects.get(pk=cast.project.pk)
    project.signature_parameter = "sig"
    key = crowd_workers.compute_signing_key(project)
    signature = hmac.new(key.encode(), b"abc|s|t", "sha256").hexdigest()
    query = "PROLIFIC_PID={}&STUDY_ID=s&SESSION_ID=t&sig={}"
    visit = crowd_workers.read_visit(project=project, values_of=QueryDict(query.format("abc", signature)).getlist)
    assert visit
    assert enter(token, now, visit).user == enter(token, now, visit, ELSEWHERE).user
    for other in (query.format("abd", signature), query.format("abc", ""), "PROLIFIC_PID=abc&STUDY_ID=s&SESSION_ID=t"):
        with pytest.raises(crowd_workers.InvalidWorkerId):
            crowd_workers.read_visit(project=project, values_of=QueryDict(other).getlist)
    assert crowd_workers.compute_signing_key(Project(pk=project.pk + 1)) != key


@pytest.mark.django_db(transaction=True)
def test_concurrent_visits_create_one_account(now: dt.datetime) -> None:
    cast = make_personas()
    token = invite(cast, now, uses_allowed=5)
    come = partial(enter, token, now)
    came = run_at_once(come, come, come)
    assert len({one.user_id for one in came if isinstance(one, Membership)}) == 1
    assert (WorkerId.objects.count(), Invitation.objects.get().uses) == (1, 1)

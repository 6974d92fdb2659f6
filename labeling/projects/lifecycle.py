"""Projects, what raters are told and agree to, and whether work goes on. Alone writes Project, Guideline and
ConsentText rows."""

import datetime as dt
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import Assignment, ConsentText, Guideline, Project
from labeling.models.project import ProjectState
from labeling.projects import guidelines

# From which states a project may come into which. What is archived comes back as closed, to be looked at first.
_ALLOWED_FROM: dict[ProjectState, tuple[ProjectState, ...]] = {
    ProjectState.OPEN: (ProjectState.PAUSED, ProjectState.CLOSED),
    ProjectState.PAUSED: (ProjectState.OPEN,),
    ProjectState.CLOSED: (ProjectState.OPEN, ProjectState.PAUSED, ProjectState.ARCHIVED),
    ProjectState.ARCHIVED: (ProjectState.CLOSED,),
}


class ProjectSlugTaken(Exception):
    """Another project has this address."""


class ProjectTransitionRefused(Exception):
    """The project is in a state from which it cannot go where it was asked to."""


def create_project(*, name: str, slug: str, by: User | None, now: dt.datetime, **settings: Any) -> Project:
    """Create a project without members. Raises AddressIsTaken.

    `people.owned_projects.create_owned_project` also adds an owner.
    """
    with transaction.atomic():
        project = _insert_project(name=name, slug=slug, created_by=by, created_at=now, **settings)
        audit_log.log_event(what="project.created", by=by, now=now, project=project.pk, subject=f"project:{project.pk}")
    return project


def _insert_project(*, slug: str, **fields: Any) -> Project:
    try:
        with transaction.atomic():
            return Project.objects.create(slug=slug, **fields)
    except IntegrityError:
        if Project.objects.filter(slug=slug).exists():
            raise ProjectSlugTaken from None
        raise


class SettingNotChangeable(Exception):
    """What was asked for cannot be changed any more. `str()` of it may be shown to people."""


# What may be changed while people work. The address stays, and the overlap is `labeling.overlap_change`'s to change.
CHANGEABLE_SETTINGS = frozenset(
    {"name", "description", "protocol", "overlap_limit", "lease_seconds", "skip_limit_per_day", "correction_days"}
    | {"gold_share", "proven_gold_share", "reserve_share", "uniform_share", "reserve_problem_share"}
    | {"screening_pass_share", "uses_probability"}
    | {"screening_attempts", "gold_bar", "pay_per_hour", "currency", "shows_reference_answer", "shows_final_verdict"}
    | {"reveals_one_step_at_a_time", "asks_error_category", "asks_reason", "asks_corrected_step"}
    | {"shows_weekly_gold"}
    | {"takes_worker_ids", "worker_parameter", "study_parameter", "session_parameter"}
    | {"completion_url", "completion_code", "screened_out_url", "screened_out_code"}
)


def change_settings(*, project: Project, by: User | None, now: dt.datetime, **options: Any) -> None:
    """Other options from now on. What was opened before keeps what was in force then."""
    strange = options.keys() - CHANGEABLE_SETTINGS - {"overlap"}
    if strange:
        raise ValueError(f"not an option: {min(strange)}")
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        changed = {name: value for name, value in options.items() if getattr(locked, name) != value}
        if "protocol" in changed and Assignment.objects.filter(project=project).exists():
            raise SettingNotChangeable(
                _("Traces have been given out under this protocol: it stays. Clone the project instead.")
            )
        if not changed:
            return
        Project.objects.filter(pk=project.pk).update(**changed)
        detail = {name: [_as_json(getattr(locked, name)), _as_json(value)] for name, value in changed.items()}
        _log_project_event("project.changed", project, by, now, **detail)
    for name, value in changed.items():
        setattr(project, name, value)


def _as_json(value: Any) -> Any:
    return str(value) if isinstance(value, Decimal) else value


def clone_project(*, project: Project, name: str, slug: str, by: User | None, now: dt.datetime) -> Project:
    """A new project with the options and the guideline of this one, and nothing else: no people, no traces."""
    options = {each: getattr(project, each) for each in sorted(CHANGEABLE_SETTINGS - {"name", "gold_bar"})}
    with transaction.atomic():
        made = create_project(name=name, slug=slug, by=by, now=now, overlap=project.overlap, **options)
        if project.guideline is not None:
            publish_guideline(project=made, body=project.guideline.body, by=by, now=now)
        if project.consent_text is not None:
            publish_consent_text(project=made, body=project.consent_text.body, by=by, now=now)
        _log_project_event("project.cloned", made, by, now, of=project.pk)
    return made


def publish_guideline(
    *, project: Project, body: str, by: User | None, now: dt.datetime, changes: str = ""
) -> Guideline:
    """The next version of what raters are told. Traces that nobody has opened yet go back: before the next one it must
    be read. `changes` says in a line or two what is new."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        last = project.guidelines.aggregate(version=Max("version"))["version"] or 0
        guideline = Guideline.objects.create(
            project=project, version=last + 1, body=body, changes=changes, published_at=now, published_by=by
        )
        project.guideline = guideline
        project.save(update_fields=["guideline"])
        queue.release_held(project_id=project.pk, now=now, reason="guideline changed", by=by)
        _log_project_event("guideline.published", project, by, now, version=guideline.version)
    return guideline


def publish_guideline_template(*, project: Project, template: str, by: User | None, now: dt.datetime) -> Guideline:
    """A guideline that comes with the program becomes the project's own: the next version, changed at will later."""
    return publish_guideline(project=project, body=guidelines.load_guideline_template(template), by=by, now=now)


def publish_consent_text(*, project: Project, body: str, by: User | None, now: dt.datetime) -> ConsentText | None:
    """The next version of what raters agree to before their next trace. An empty one: nothing is asked any more."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        last = project.consent_texts.aggregate(version=Max("version"))["version"] or 0
        text = (
            ConsentText.objects.create(project=project, version=last + 1, body=body, published_at=now, published_by=by)
            if body.strip()
            else None
        )
        project.consent_text = text
        project.save(update_fields=["consent_text"])
        queue.release_held(project_id=project.pk, now=now, reason="consent text changed", by=by)
        _log_project_event("consent_text.published", project, by, now, version=text.version if text else None)
    return text


def pause_project(*, project: Project, by: User | None, now: dt.datetime) -> None:
    """Nothing is handed out until it goes on. What is opened may be finished."""
    _change_state(project, ProjectState.PAUSED, "project.paused", by, now)


def resume_project(*, project: Project, by: User | None, now: dt.datetime) -> None:
    _change_state(project, ProjectState.OPEN, "project.resumed", by, now)


def close_project(*, project: Project, by: User | None, now: dt.datetime) -> None:
    """Work has ended; corrections too."""
    _change_state(project, ProjectState.CLOSED, "project.closed", by, now)


def archive_project(*, project: Project, by: User | None, now: dt.datetime) -> None:
    """Out of everybody's lists; nothing is deleted."""
    _change_state(project, ProjectState.ARCHIVED, "project.archived", by, now)


def set_gold_threshold(*, project: Project, bar: float, by: User | None, now: dt.datetime) -> None:
    """What share of hidden gold is right of a rater who may go on. Set by a lead, or once from the project's own."""
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(gold_bar=bar)
        _log_project_event("project.gold_bar_set", project, by, now, bar=bar)
    project.gold_bar = bar


def _change_state(project: Project, to: ProjectState, what: str, by: User | None, now: dt.datetime) -> None:
    with transaction.atomic():
        # The condition stands in the statement that writes: of two leads who press at once, one is told.
        moved = Project.objects.filter(pk=project.pk, state__in=_ALLOWED_FROM[to]).update(state=to)
        if not moved:
            raise ProjectTransitionRefused(f"The project cannot become {to.label} from where it is. Reload the page.")
        project.state = to
        if to is not ProjectState.OPEN:
            queue.release_held(project_id=project.pk, now=now, reason=what, by=by)
        _log_project_event(what, project, by, now)


def _log_project_event(what: str, project: Project, by: User | None, now: dt.datetime, **detail: Any) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=project.pk, subject=f"project:{project.pk}", detail=detail)

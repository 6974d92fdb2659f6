"""Projects: settings, guideline and consent versions, and the state (open, paused, closed, archived).

Only this module writes Project, Guideline and ConsentText rows.
"""

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
from labeling.projects import budgets, pay_rates, taxonomies

# The event of each state, and the states before it. An archived project becomes closed first, so that a lead checks it.
_TRANSITIONS: dict[ProjectState, tuple[str, tuple[ProjectState, ...]]] = {
    ProjectState.OPEN: ("project.resumed", (ProjectState.PAUSED, ProjectState.CLOSED)),
    ProjectState.PAUSED: ("project.paused", (ProjectState.OPEN,)),
    ProjectState.CLOSED: ("project.closed", (ProjectState.OPEN, ProjectState.PAUSED, ProjectState.ARCHIVED)),
    ProjectState.ARCHIVED: ("project.archived", (ProjectState.CLOSED,)),
}


class ProjectSlugTaken(Exception):
    """Another project has this slug."""


class ProjectTransitionRefused(Exception):
    """The project cannot change from its state to the requested one, `to`."""

    def __init__(self, to: ProjectState) -> None:
        message = _("The project cannot become “%(state)s” from its current state. Reload the page.")
        super().__init__(message % {"state": to.label})
        self.to = to


def create_project(*, name: str, slug: str, by: User | None, now: dt.datetime, **settings: Any) -> Project:
    """Create a project without members. Raises ProjectSlugTaken.

    `people.members.create_owned_project` also adds an owner.
    """
    try:
        with transaction.atomic():
            project = Project.objects.create(name=name, slug=slug, created_by=by, created_at=now, **settings)
            _log_project_event("project.created", project, by, now)
    except IntegrityError:
        if Project.objects.filter(slug=slug).exists():
            raise ProjectSlugTaken from None
        raise
    return project


class SettingNotChangeable(Exception):
    """The setting can no longer be changed. The message can be shown to people."""


# Settings that can change while people work. `labeling.overlap_change` changes the overlap; the slug never changes.
CHANGEABLE_SETTINGS = frozenset(
    {"name", "description", "protocol", "overlap_limit", "lease_seconds", "skip_limit_per_day", "correction_days"}
    | {"open_limit", "traces_per_day"}
    | {"gold_share", "proven_gold_share", "reserve_share", "uniform_share", "reserve_problem_share"}
    | {"screening_pass_share", "uses_probability", "uses_protection"}
    | {"screening_attempts", "gold_bar", "pay_per_hour", "currency", "shows_reference_answer", "shows_final_verdict"}
    | {"reveals_one_step_at_a_time", "asks_error_category", "needs_error_category", "takes_several_kinds"}
    | {"asks_severity", "asks_reason", "asks_corrected_step", "asks_evidence", "asks_omissions", "asks_clauses"}
    | {"shows_weekly_gold", "shows_retired_gold", "rating_rules", "trace_questions"}
    | {"takes_worker_ids", "worker_parameter", "study_parameter", "session_parameter"}
    | {"signature_parameter", "completion_traces", "completion_url", "completion_code"}
    | {"screened_out_url", "screened_out_code", "no_consent_url", "no_consent_code"}
    | {"failed_checks_url", "failed_checks_code"}
)


def change_settings(*, project: Project, by: User | None, now: dt.datetime, **options: Any) -> None:
    """Change settings. Open traces keep the settings they were opened with. Raises SettingNotChangeable.

    If raters are asked other kinds of errors or questions, the guideline gets a new version."""
    unknown = options.keys() - CHANGEABLE_SETTINGS - {"overlap"}
    if unknown:
        raise ValueError(f"not a changeable setting: {min(unknown)}")
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        changed = {name: value for name, value in options.items() if getattr(locked, name) != value}
        if "protocol" in changed and Assignment.objects.filter(project=project).exists():
            raise SettingNotChangeable(
                _("The protocol cannot be changed after traces have been assigned. Clone the project instead.")
            )
        if not changed:
            return
        rates = {"past_pay_rates": pay_rates.keep_past_rate(locked, now)} if "pay_per_hour" in changed else {}
        Project.objects.filter(pk=project.pk).update(**changed, **rates)
        detail = {name: [_as_json(getattr(locked, name)), _as_json(value)] for name, value in changed.items()}
        _log_project_event("project.changed", project, by, now, **detail)
        for name, value in {**changed, **rates}.items():
            setattr(project, name, value)
        if changed.keys() & taxonomies.TAXONOMY_SETTINGS:
            _publish_taxonomy(project, by, now)
    if rates:
        budgets.recount_spending(project=project, now=now)


def set_first_rating_rules(*, project: Project, rules: dict[str, Any], by: User | None, now: dt.datetime) -> None:
    """Set the rules of a project that has none. Rules that a lead has saved in the meantime stay."""
    with transaction.atomic():
        if Project.objects.filter(pk=project.pk, rating_rules={}).update(rating_rules=rules):
            _log_project_event("project.changed", project, by, now, rating_rules=[{}, rules])
        project.refresh_from_db(fields=["rating_rules"])
        _publish_taxonomy(project, by, now)


def _publish_taxonomy(project: Project, by: User | None, now: dt.datetime) -> None:
    """Publish the next version of the guideline, with the same text, if what raters are asked has changed."""
    guideline, taxonomy = project.guideline, taxonomies.load_taxonomy(project)
    if guideline is None or guideline.taxonomy == taxonomies.store_taxonomy(taxonomy):
        return
    changes = taxonomies.describe_changes(taxonomies.parse_taxonomy(guideline.taxonomy), taxonomy)
    publish_guideline(project=project, body=guideline.body, changes=changes, by=by, now=now)


def _as_json(value: Any) -> Any:
    return str(value) if isinstance(value, Decimal) else value


def clone_project(*, project: Project, name: str, slug: str, by: User | None, now: dt.datetime) -> Project:
    """Create a project with the settings, guideline and consent text of this one, without people and traces."""
    options = {each: getattr(project, each) for each in sorted(CHANGEABLE_SETTINGS - {"name", "gold_bar"})}
    with transaction.atomic():
        clone = create_project(name=name, slug=slug, by=by, now=now, overlap=project.overlap, **options)
        if project.guideline is not None:
            publish_guideline(project=clone, body=project.guideline.body, by=by, now=now)
        if project.consent_text is not None:
            publish_consent_text(project=clone, body=project.consent_text.body, by=by, now=now)
        _log_project_event("project.cloned", clone, by, now, of=project.pk)
    return clone


def publish_guideline(
    *, project: Project, body: str, by: User | None, now: dt.datetime, changes: str = ""
) -> Guideline:
    """Publish the next version of the guideline. Raters must read it before their next trace, so held traces are
    released. `changes` summarizes the differences for raters."""
    with transaction.atomic():
        # With a key lock, a submit that opens a held trace would wait for this, and this for the trace.
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        last = project.guidelines.aggregate(version=Max("version"))["version"] or 0
        guideline = Guideline.objects.create(
            project=project,
            version=last + 1,
            body=body,
            changes=changes,
            taxonomy=taxonomies.store_taxonomy(taxonomies.load_taxonomy(locked, body)),
            published_at=now,
            published_by=by,
        )
        project.guideline = guideline
        project.save(update_fields=["guideline"])
        queue.release_held(project_id=project.pk, now=now, reason="guideline changed", by=by)
        _log_project_event("guideline.published", project, by, now, version=guideline.version)
    return guideline


def publish_consent_text(*, project: Project, body: str, by: User | None, now: dt.datetime) -> ConsentText | None:
    """Publish the next version of the consent text. With an empty text, no consent is needed."""
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
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


def change_project_state(*, project: Project, to: ProjectState, by: User | None, now: dt.datetime) -> None:
    """Resume, pause, close or archive a project. Raises ProjectTransitionRefused.

    A paused project assigns no traces until it is resumed; open traces can be finished. A closed one ends the work and
    corrections. An archived one is in no list; nothing is deleted.
    """
    what, allowed_from = _TRANSITIONS[to]
    with transaction.atomic():
        # The update checks the state itself, so of two concurrent changes one is refused.
        if not Project.objects.filter(pk=project.pk, state__in=allowed_from).update(state=to):
            raise ProjectTransitionRefused(to)
        project.state = to
        if to is not ProjectState.OPEN:
            queue.release_held(project_id=project.pk, now=now, reason=what, by=by)
        _log_project_event(what, project, by, now)


def set_gold_threshold(*, project: Project, bar: float, by: User | None, now: dt.datetime) -> None:
    """Set the share of hidden gold that a rater must get right. Set by a lead, or once from the project's own data."""
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(gold_bar=bar)
        _log_project_event("project.gold_bar_set", project, by, now, bar=bar)
    project.gold_bar = bar


def _log_project_event(what: str, project: Project, by: User | None, now: dt.datetime, **detail: Any) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=project.pk, subject=f"project:{project.pk}", detail=detail)

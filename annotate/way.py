"""The way into a project as its rater sees it: which stations there are, and where they stand. Reads only."""

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling import admission, stations
from labeling.admission import Progress
from labeling.models import Project, Rater
from labeling.models.assignment import Purpose
from labeling.stations import Station

_STEPS = {
    Station.CONSENT: "reading",
    Station.GUIDELINE: "reading",
    Station.TRAINING: "training",
    Station.LESSON: "training",
    Station.SCREENING: "screening",
    Station.RETRY: "screening",
    Station.FAILED: "screening",
    Station.WORK: "work",
}


@dataclass(frozen=True)
class Step:
    """One line of the list beside the page."""

    key: str
    title: str
    says: str
    state: str  # done, here, ahead


@dataclass(frozen=True)
class Way:
    station: Station
    training: Progress
    screening: Progress
    steps: list[Step]

    @property
    def is_at_work(self) -> bool:
        return self.station == Station.WORK


def of(rater: Rater, project: Project) -> Way:
    station = stations.next_of(rater=rater, project=project)
    training = admission.progress(rater=rater, purpose=Purpose.TRAINING)
    screening = admission.progress(rater=rater, purpose=Purpose.SCREENING)
    found = [
        ("reading", _reading(project), ""),
        ("training", _("Training"), _training(training, station)),
        ("screening", _("Screening"), _screening(screening, station, rater, project)),
        ("work", _("Work"), ""),
    ]
    exists = {
        "reading": bool(project.consent_text_id or project.guideline_id),
        "training": bool(training.total),
        "screening": bool(screening.total),
        "work": True,
    }
    keys = [key for key, _title, _says in found]
    here = keys.index(_STEPS[station])
    behind = max(here, keys.index(_STEPS[stations.of_stage(rater)]))  # a new guideline takes nothing back
    steps = [
        Step(key, title, says, "here" if number == here else "done" if number < behind else "ahead")
        for number, (key, title, says) in enumerate(found)
        if exists[key]
    ]
    return Way(station, training, screening, steps)


def _reading(project: Project) -> str:
    if project.guideline is None:
        return _("Consent")
    told = {"version": project.guideline.version}
    if project.consent_text_id is None:
        return _("Guideline, version %(version)d") % told
    return _("Consent and guideline, version %(version)d") % told


def _training(progress: Progress, station: Station) -> str:
    if station in (Station.TRAINING, Station.LESSON):
        done = progress.done if station == Station.LESSON else progress.number
        told = {"number": done, "total": progress.total}
        return _("trace %(number)d of %(total)d. Explained after each trace; does not count.") % told
    return ngettext(
        "%(total)d trace, explained after each. Does not count.",
        "%(total)d traces, explained after each. Do not count.",
        progress.total,
    ) % {"total": progress.total}


def _screening(progress: Progress, station: Station, rater: Rater, project: Project) -> str:
    traces = ngettext(
        "%(total)d trace without explanations.", "%(total)d traces without explanations.", progress.total
    ) % {"total": progress.total}
    mark = _("Passed with %(mark)d or more right.") % {
        "mark": admission.needed(progress.total, project.screening_pass_share)
    }
    is_over = station in (Station.RETRY, Station.FAILED)  # the attempt that counts was the last one
    left = project.screening_attempts - rater.screening_attempt + (not is_over)
    attempts = ngettext("You have %(left)d attempt.", "You have %(left)d attempts.", left) % {"left": left}
    return f"{traces} {mark} {attempts}" if left > 0 and station != Station.FAILED else f"{traces} {mark}"

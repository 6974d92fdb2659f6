"""The demo projects of the forms of labeling, as pages in the middle of the work. For walks and pictures."""

from collections.abc import Iterator

from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from demo import make_projects, plans, records
from demo.visual import pictures
from labeling import queue
from labeling.models import Project, Rater, Submission, Trace
from labeling.models.rater import RaterStage
from live import example_program, option_requests
from live.models import LiveOption, LiveSession

POLICY, RECOVERY, MONITORS, LIVE = "demo-policy", "demo-recovery", "demo-monitors", "demo-live"
VISUAL = "demo-visual"
KEYS = {-1: "1", 0: "2", 1: "3"}
RECOVERING_STEPS = 6  # the others have fewer


def pass_onboarding(user: User) -> None:
    """Let the user work in all of their projects."""
    for rater in Rater.objects.filter(user=user).select_related("project"):
        project = rater.project
        Rater.objects.filter(pk=rater.pk).update(
            stage=RaterStage.WORKING, read_guideline=project.guideline_id, agreed_text=project.consent_text_id
        )


def put_recovering_traces_first() -> None:
    project = Project.objects.get(slug=RECOVERY)
    traces = project.traces.filter(n_steps=RECOVERING_STEPS).values_list("pk", flat=True)
    queue.choose_traces(project_id=project.pk, trace_ids=list(traces), group=None, by=None, now=timezone.now())


def put_errors_first(slug: str, number: int) -> None:
    """Put the traces first whose first error is at this step."""
    [plan] = [plan for plan in plans.PLANS if plan.slug == slug]
    digests = [
        records.record_digest(records.build_record(trace, policy=plan.policy, scaffold=plan.scaffold))
        for trace in (plan.generate(seed=make_projects.SEED) if plan.generate else ())
        if trace.first_error is not None
        and trace.steps[trace.first_error].is_rateable
        and sum(step.is_rateable for step in trace.steps[: trace.first_error]) == number - 1
    ]
    traces = Trace.objects.filter(project__slug=slug, digest__in=digests, gold=None)
    project = Project.objects.get(slug=slug)
    pks = list(traces.values_list("pk", flat=True))
    queue.choose_traces(project_id=project.pk, trace_ids=pks, group=None, by=None, now=timezone.now())


def rate_recovery(page: Page) -> None:
    """Rate a trace whose second step is wrong, and mark the later ones."""
    for key in "313mm33m":
        page.keyboard.press(key)


def search_clause(page: Page) -> None:
    for key in "3l":
        page.keyboard.press(key)
    expect(page.locator(".clausepick input")).to_be_focused()


def answer_about_hint(page: Page) -> None:
    """Rate all steps, and go to the question on the whole trace."""
    for _ in range(page.locator(".step[data-number]").count()):
        page.keyboard.press("3")


def find_misread_step(page: Page) -> None:
    """Rate a trace whose third step misreads the picture."""
    expect(page.locator("[data-slot=problem] img")).to_have_js_property("naturalWidth", pictures.SIZE[0])
    for key in "331":
        page.keyboard.press(key)


# What happens on the work page.
WORK = {
    RECOVERY: rate_recovery,
    POLICY: search_clause,
    MONITORS: answer_about_hint,
    VISUAL: find_misread_step,
}


def begin_live(page: Page) -> None:
    page.goto(reverse("annotate:live", args=[LIVE]))
    page.locator("#begin-live").press("Enter")
    expect(page.locator("#stage[data-state=options]")).to_be_visible()


def rate_options(page: Page) -> None:
    """Rate the first two options by their truth."""
    expect(page.locator(".katex").first).to_be_visible()
    session = LiveSession.objects.get(project__slug=LIVE, rater__user__username="annotator")
    truths = example_program.rate_steps(option_requests.render_path(session, []))
    texts = dict(LiveOption.objects.filter(request__session=session, request__position=0).values_list("index", "text"))
    shown = [texts[int(each.get_attribute("data-option") or 0)] for each in page.locator("[data-option]").all()]
    keys = [KEYS[truths[text]] for text in shown if text in truths]  # an option that was cut off needs no rating
    for key in keys[:2]:
        page.keyboard.press(key)
    expect(page.locator("[data-option] input:checked")).to_have_count(len(keys[:2]))
    expect(page.locator("#save[data-save=saved]")).to_be_visible()


def list_lead_pages() -> Iterator[str]:
    """Return the addresses of the pages on which leads see the results of the forms."""
    yield reverse("dashboard:monitors", args=[MONITORS])
    yield reverse("dashboard:clauses", args=[POLICY])
    yield reverse("dashboard:trace", args=[VISUAL, Trace.objects.filter(project__slug=VISUAL).earliest("pk").pk])
    yield reverse("dashboard:live", args=[LIVE])
    trial = LiveSession.objects.get(project__slug=LIVE, rater=None)
    yield reverse("dashboard:live_trial", args=[LIVE, trial.pk])
    read = Submission.objects.filter(project__slug=RECOVERY).earliest("pk")
    yield reverse("dashboard:submission", args=[RECOVERY, read.assignment_id])

"""Adjudication by keyboard, with the decision sent by htmx."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from labeling import assignments
from labeling.models import Consensus, Gold, Option, OptionPart, Rater, Settlement
from labeling.models.project import Guideline
from labeling.quality import new_submissions
from people import members
from people.models import Role
from tests import factories
from tests.factories import NOW
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.example_project import ExampleProject, make_example_project
from tests.labeling.assignments.clients import WorkPageClient

pytestmark = pytest.mark.django_db(transaction=True)
FOCUSED = """(() => {
  const node = document.activeElement;
  if (!node.matches("a, button, summary, input, textarea, select")) return "";
  return node.innerText || node.labels?.[0]?.innerText || "";
})()"""
STEPS: list[str | list[str]] = [
    "Place the square $ABCD$ with side $2$ so that $A = (0,0)$, $B = (2,0)$, $C = (2,2)$, $D = (0,2)$.",
    "The midpoint of $BC$ is $M = (2,1)$, and the midpoint of $CD$ is $N = (1,2)$.",
    "The triangle is isosceles, because reflecting in the diagonal $AC$ swaps $M$ and $N$.",
    r"This height is $\tfrac34$ of the diagonal: $h = \tfrac34 \cdot 2\sqrt2 = \tfrac{3\sqrt2}{2}$.",
    r"The area of the triangle $AMN$ is $\boxed{\tfrac32}$.",
]


@pytest.fixture
def scene() -> ExampleProject:
    return make_example_project()


def contest(scene: ExampleProject, name: str = "AMN", steps: list[str | list[str]] = STEPS) -> int:
    """Create a trace with three submissions: first error at step 3, at step 4, and none."""
    problem = factories.make_problem(
        scene.project,
        f"In a square $ABCD$ with side $2$, $M$ and $N$ are the midpoints of $BC$ and $CD$. Find the area of ${name}$.",
        domain="Geometry",
    )
    trace = factories.make_trace(scene.project, steps, problem=problem)
    for ratings, comment in (
        ([1, 1, -1], "Height on AC is claimed, not shown."),
        ([1, 1, 1, -1], "Where does 3/4 come from?"),
        ([1, 1, 0, *[1] * (len(steps) - 3)], "Symmetry about AC is enough."),
    ):
        client = WorkPageClient(factories.make_assignment(factories.make_rater(scene.project), trace))
        client.rate(ratings)
        client.send(client.comment(2, comment))
        assignments.submit(**client.place, now=NOW, by=None)
    new_submissions.process_new_submissions(now=NOW)
    Settlement.objects.filter(trace=trace).update(state="contested", reason="differ_at_limit", differs_at=2)
    return trace.pk


def test_reviewer_decides_by_keyboard(scene: ExampleProject, visit: Visit) -> None:
    first, second = contest(scene), contest(scene, "MNC")
    page = visit(scene.lead)
    page.goto(reverse("dashboard:adjudication", args=[scene.project.slug]))
    expect(page.locator("form[data-adjudication][data-ready]")).to_be_visible()
    expect(page.locator("tr.is-now .no")).to_have_text("3")
    page.keyboard.press("3")
    expect(page.locator("tr.is-now .no")).to_have_text("4")
    page.keyboard.press("1")
    expect(page.locator("input[name=first_error][value='3']")).to_be_checked()
    page.keyboard.press("a")
    expect(page.locator("input[name=first_error][value='2']")).to_be_checked()
    page.evaluate("window.isSamePage = true")
    page.keyboard.press("Enter")
    expect(page.locator(f"form[data-adjudication='{second}'][data-ready]")).to_be_visible()
    expect(page.get_by_role("status")).to_be_visible()
    assert page.evaluate("window.isSamePage")  # htmx replaced the case without a page load
    assert Consensus.objects.get().first_error == 2
    page.keyboard.press("x")
    expect(page.locator("[data-empty=adjudication]")).to_be_visible()
    assert Settlement.objects.get(trace=first).state == "decided"
    assert Settlement.objects.get(trace=second).state == "asked"


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the element with this name has a visible focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        text = str(page.evaluate(FOCUSED)).strip()
        if name == text or (len(name) > 3 and name in text):
            style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert style != "none", name
            return
    raise AssertionError(f"Tab does not reach {name}")


def follow(page: Page, name: str) -> None:
    tab_to(page, name)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_incomplete_decision_stays_on_the_case(scene: ExampleProject, visit: Visit) -> None:
    trace = contest(scene)
    page = visit(scene.lead)
    address = reverse("dashboard:adjudication_case", args=[scene.project.slug, trace])
    page.goto(address)
    form = page.locator("form[data-adjudication][data-ready]")
    expect(form).to_be_visible()
    page.evaluate("window.isSamePage = true; document.querySelector('form[data-adjudication]').noValidate = true")
    page.keyboard.press("Enter")
    expect(page.locator(".field__error")).to_be_visible()
    assert page.evaluate("window.isSamePage")
    assert page.url.endswith(address)  # a reload shows the same case
    page.keyboard.press("0")
    page.keyboard.press("Enter")
    expect(page.locator("[data-empty=adjudication]")).to_be_visible()
    assert Consensus.objects.get().first_error is None


def test_reviewer_reaches_every_page_by_keyboard(scene: ExampleProject, visit: Visit) -> None:
    trace = contest(scene)
    reviewer = factories.make_user("reviewer")
    members.add_member(project=scene.project, user=reviewer, role=Role.REVIEWER, now=NOW)
    page = visit(reviewer)
    page.goto(reverse("annotate:home"))
    follow(page, scene.project.name)
    follow(page, "Traces")
    follow(page, str(trace))
    expect(page.get_by_role("heading", name=f"Trace {trace}")).to_be_visible()
    follow(page, str(Rater.objects.filter(assignments__trace=trace).earliest("pk"))[:8])
    tab_to(page, "Note for the annotator")
    page.keyboard.type("Is 3/4 not shown in step 3?")
    follow(page, "Request correction")
    expect(page.locator("[data-correction=open]")).to_be_visible()
    follow(page, "Adjudication")
    expect(page.locator("form[data-adjudication][data-ready]")).to_be_visible()
    page.keyboard.press("3")
    page.keyboard.press("3")  # only one annotator rated the remaining steps, all positive: they are skipped
    expect(page.locator("tr.is-now[data-result]")).to_be_visible()
    page.keyboard.press("n")
    page.keyboard.type("g 1 a")  # no shortcuts while typing a note
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("b")
    expect(page.locator("input[name=becomes_gold]")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.locator("[data-empty=adjudication]")).to_be_visible()
    consensus = Consensus.objects.get()
    assert consensus.first_error == 3
    assert consensus.note == "g 1 a"
    assert Gold.objects.get().trace_id == trace


@pytest.mark.parametrize("width", [1440, 390])
def test_ratings_and_decision_stay_visible_beside_a_long_line(width: int, scene: ExampleProject, visit: Visit) -> None:
    contest(scene)
    for option in Option.objects.filter(position=0):
        OptionPart.objects.create(option=option, position=0, kind="call", name="grep", text="a very long line | " * 40)
    page = visit(scene.lead, width=width)
    page.goto(reverse("dashboard:adjudication", args=[scene.project.slug]))
    expect(page.locator("form[data-adjudication][data-ready]")).to_be_visible()
    last = page.locator("input[name=first_error][value='4']")
    seen = [*page.locator("tr[data-step]:has(input[value='4']) .c").all(), last]
    assert len(seen) == 4
    table = page.locator(".adjmain .tablewrap").bounding_box()
    assert table
    for each in seen:
        box = each.bounding_box()
        assert box
        assert table["x"] <= box["x"] <= table["x"] + table["width"] - box["width"]


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_page_is_accessible(width: int, dark: bool, scene: ExampleProject, visit: Visit) -> None:
    contest(scene)
    body = "## What counts\n\nA claim that a reader can confirm in about 30 seconds counts as checkable: $2 + 2 = 4$."
    scene.project.guideline = Guideline.objects.create(
        project=scene.project, version=7, body=body, published_at=NOW, published_by=scene.lead
    )
    scene.project.save()
    page = visit(scene.lead, width=width, dark=dark)
    page.goto(reverse("dashboard:adjudication", args=[scene.project.slug]))
    expect(page.locator("form[data-adjudication][data-ready]")).to_be_visible()
    expect(page.locator(".katex").first).to_be_visible()
    assert not accessibility_violations(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_current_step_of_a_long_trace_stays_centered(scene: ExampleProject, visit: Visit) -> None:
    contest(scene, steps=[*STEPS, *["More."] * 60])
    page = visit(scene.lead)
    page.goto(reverse("dashboard:adjudication", args=[scene.project.slug]))
    expect(page.locator("form[data-adjudication][data-ready]")).to_be_visible()
    for _ in range(40):
        page.keyboard.press("j")
    expect(page.locator("tr.is-now .no")).to_have_text("43")
    expect(page.get_by_role("columnheader", name="B", exact=True)).to_be_in_viewport()
    box = page.locator("tr.is-now").bounding_box()
    assert box
    assert 300 < box["y"] < 600


@pytest.mark.parametrize("width", [1440, 390])
def test_long_words_do_not_widen_the_page(width: int, scene: ExampleProject, visit: Visit) -> None:
    word = "w" * 900
    trace = factories.make_trace(
        scene.project, [word, f"```\n{word}\n```", "Done."], problem=factories.make_problem(scene.project, word)
    )
    user = factories.make_user("long", name="W" * 150)
    members.add_member(project=scene.project, user=user, role=Role.ANNOTATOR, now=NOW)
    client = WorkPageClient(factories.make_assignment(scene.project.raters.get(user=user), trace))
    client.rate([1, 1, -1])
    client.send(client.comment(0, word), client.comment(2, "\u202eturned"))
    assignments.submit(**client.place, now=NOW, by=user)
    page = visit(scene.lead, width=width)
    slug = scene.project.slug
    pages = (
        ("annotators", slug),
        ("members", slug),
        ("trace", slug, trace.pk),
        ("submission", slug, client.assignment.pk),
    )
    for name, *where in pages:
        page.goto(reverse(f"dashboard:{name}", args=where))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        for body in page.locator(".rung__body").all():
            assert body.evaluate("node => node.scrollWidth <= node.clientWidth"), name

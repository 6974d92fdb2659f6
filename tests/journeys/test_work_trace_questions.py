"""The questions on the whole trace: by keyboard, offline, after a reload, in two tabs."""

from playwright.sync_api import Page, expect

from labeling.models import Judgment, StepReview, Submission, TraceAnswer
from labeling.projects import trace_questions
from labeling.projects.trace_questions import QuestionKind, TraceQuestion
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.test_closed_page import KEPT
from tests.journeys.test_work import RaterDay, eventually, press, pytestmark, saved  # noqa: F401  the mark
from tests.journeys.test_work_clauses import publish_policy
from tests.journeys.test_work_error_questions import RULES

AGENTS = trace_questions.QUESTION_TEMPLATES["agents"].questions
TWO = trace_questions.store_questions(AGENTS[:2])
NOTE = TraceQuestion("note", "What is remarkable?", QuestionKind.TEXT, is_required=False, help="One sentence.")
WITH_NOTE = trace_questions.store_questions([*AGENTS[:1], NOTE])


def answers() -> dict[str, str]:
    return dict(TraceAnswer.objects.values_list("question", "value"))


def submit(page: Page) -> None:
    def is_submitted() -> bool:
        page.keyboard.press("Enter")  # keys pressed just after a trace has appeared are ignored
        return Submission.objects.exists()

    eventually(page, is_submitted)


def test_kinds_clauses_and_questions_by_keyboard_with_few_keys(visit: Visit) -> None:
    traces: list[list[str | list[str]]] = [[f"Step {number} of {n}." for number in range(12)] for n in range(2)]
    asks = {"asks_error_category": True, "needs_error_category": True, "asks_clauses": "negatives"}
    day = RaterDay(*traces, protocol="every_step", rating_rules=RULES, trace_questions=TWO, **asks)
    publish_policy(day)
    page = day.begin(visit(day.user))
    plain = ["3" * 12, "3" * 4 + "1" + "3" * 7]
    asked = ["3" * 12 + "14", "3" * 4 + "1" + "3" * 7 + "b2" + "23"]
    for number, keys in enumerate(asked, 1):
        expect(page.locator("#step-0")).to_contain_text(f"of {number - 1}")  # the next trace has appeared
        expect(page.locator(".questions .question")).to_have_count(2)
        press(page, keys)
        expect(page.locator("#submit")).to_be_focused()
        page.keyboard.press("Enter")
        eventually(page, lambda number=number: Submission.objects.count() == number)  # type: ignore[misc]  # bound now
    given = TraceAnswer.objects.order_by("assignment", "question").values_list("question", "value")
    assert list(given) == [("final_label", "1"), ("optimality", "4"), ("final_label", "-1"), ("optimality", "3")]
    negative = Judgment.objects.get(rating=-1)
    assert (negative.category, [each["clause"] for each in negative.citations or []]) == ("kind-12", ["2"])
    assert sum(map(len, asked)) + 2 <= 1.25 * (sum(map(len, plain)) + 2)  # with Enter


def test_held_and_doubled_keys_answer_nothing(visit: Visit) -> None:
    asks = {"asks_error_category": True, "needs_error_category": True, "asks_clauses": "negatives"}
    day = RaterDay(["One.", "Two."], protocol="every_step", rating_rules=RULES, trace_questions=TWO, **asks)
    publish_policy(day)
    page = day.begin(visit(day.user))
    press(page, "1")
    page.keyboard.press("3", delay=50)
    for _ in range(3):
        page.keyboard.down("3")  # pressed once more, and held
    page.keyboard.up("3")
    expect(page.locator(".errorbox .chips input").first).to_be_focused()
    press(page, "k")
    expect(page.locator("#step-1")).to_be_focused()
    press(page, "2")  # rates the step
    expect(page.locator(".errorbox .chips input").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#step-1")).to_be_focused()
    press(page, "3")
    assert page.locator(".chips :checked").count() == 0
    press(page, "4")
    expect(page.locator("#step-0 .clausepick input")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".clausepick")).to_have_count(0)
    for _ in range(3):
        page.keyboard.press("Enter")  # goes to the missing clause, and does not choose one
    expect(page.locator("#step-0 .clausepick input")).to_be_focused()
    assert page.locator(".clauses li").count() == 0


def test_unsent_answers_and_omissions_of_a_closed_tab_are_shown(visit: Visit) -> None:
    day = RaterDay(["One.", "Two."], trace_questions=TWO, asks_omissions=True)
    page = day.begin(visit(day.user))
    expect(page.locator(".questions")).to_be_visible()
    context = page.context
    context.set_offline(True)
    press(page, "3i")
    page.keyboard.type("A case.")
    page.keyboard.press("Enter")
    press(page, "314")
    expect(page.locator("#submit")).to_be_focused()
    eventually(page, lambda: page.evaluate(KEPT).count("answer") == 2)  # the last one is on the disk
    page.close()
    context.set_offline(False)
    page = context.new_page()
    page.route("**/record", lambda route: route.abort("internetdisconnected"))
    day.begin(page)
    expect(page.locator("[data-question=optimality] [value='4']")).to_be_checked()
    expect(page.locator("#step-0 [data-slot=missing]")).to_be_visible()
    expect(page.locator("#submit")).to_have_attribute("data-state", "no_error")
    assert not TraceAnswer.objects.exists()
    page.unroute("**/record")
    submit(page)
    assert answers() == {"final_label": "1", "optimality": "4"}
    assert StepReview.objects.get(step__position=0).missing == "A case."


def begin_with_note(visit: Visit) -> Page:
    day = RaterDay(["One.", "Two."], trace_questions=WITH_NOTE)
    page = day.begin(visit(day.user))
    expect(page.locator(".questions")).to_be_visible()
    return page


def test_submit_leads_to_the_question_and_undo_takes_the_answer_back(visit: Visit) -> None:
    page = begin_with_note(visit)
    press(page, "3")
    page.locator("[data-stop='1.0'] .rate__opt--pos").click()  # the pointer does not move the focus
    expect(page.locator("#submit")).to_have_attribute("data-state", "answer_questions")
    page.keyboard.press("Enter")
    expect(page.locator("[data-question=final_label] input").first).to_be_focused()
    press(page, "1")
    expect(page.locator("#submit")).to_have_attribute("data-state", "no_error")
    expect(page.locator("[data-question=note] textarea")).to_be_focused()
    page.keyboard.press("Escape")
    press(page, "z")
    expect(page.locator("#submit")).to_have_attribute("data-state", "answer_questions")
    assert page.locator("[data-question=final_label] :checked").count() == 0
    press(page, "2")
    saved(page)
    assert not accessibility_violations(page)
    page.locator("[data-question=final_label] .chip").nth(1).click()  # a second click takes it back
    eventually(page, lambda: answers() == {"final_label": ""})


def test_a_text_that_is_being_typed_survives_a_reload_offline(visit: Visit) -> None:
    page = begin_with_note(visit)
    press(page, "332")
    saved(page)
    page.context.set_offline(True)
    page.keyboard.type("It guessed.")
    expect(page.locator("#save[data-state=draft], #save[data-state=waiting]")).to_be_visible()
    page.context.set_offline(False)
    page.reload()
    expect(page.locator("html[data-ready] [data-question=note] textarea")).to_have_value("It guessed.")
    submit(page)
    assert answers() == {"final_label": "-1", "note": "It guessed."}


def test_answers_of_another_tab_appear(visit: Visit) -> None:
    page = begin_with_note(visit)
    press(page, "332")
    saved(page)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("[data-question=final_label] [value='-1']")).to_be_checked()
    other.locator("[data-question=final_label] .chip").first.click()
    other.locator("[data-question=note] textarea").fill("Other tab.")
    other.keyboard.press("Enter")
    saved(other)
    page.bring_to_front()
    expect(page.locator("[data-question=final_label] [value='1']")).to_be_checked()
    expect(page.locator("[data-question=note] textarea")).to_have_value("Other tab.")

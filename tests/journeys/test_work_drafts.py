"""Texts that are being typed on the work page survive closed tabs, and those of several tabs are kept apart."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from labeling.models import Judgment, StepReview
from tests.journeys.conftest import Visit
from tests.journeys.test_work import RaterDay, eventually, press, ratings, saved
from tests.journeys.test_work_safety import ASKS, THREE, submit

pytestmark = pytest.mark.django_db(transaction=True)


def test_typed_text_survives_a_closed_tab_at_any_keystroke(visit: Visit) -> None:
    day = RaterDay(THREE, protocol="every_step", **ASKS)
    page = day.begin(visit(day.user))
    press(page, "1")
    context, typed = page.context, ""
    for letter in "Sum":
        page.locator(".errorbox [name=corrected]").press_sequentially(letter)
        typed += letter
        expect(page.locator("#save[data-state=saved]")).to_have_count(0)
        page.close()  # in the middle of typing
        page = day.begin(context.new_page())
        expect(page.locator(".errorbox [name=corrected]")).to_have_value(typed)
        page.locator(".errorbox [name=corrected]").press("End")
    eventually(page, lambda: StepReview.objects.filter(written_text="Sum").exists())
    saved(page)


def test_drafts_of_two_tabs_are_kept_apart_until_one_is_closed(visit: Visit) -> None:
    day = RaterDay(THREE)
    first = day.begin(visit(day.user))
    context = first.context
    second = day.begin(context.new_page())
    for page, text in ((first, "First"), (second, "Second")):
        press(page, "c")
        field_of(page).press_sequentially(text)
    second = reopen(day, second)
    expect(field_of(second)).to_have_value("Second")
    third = day.begin(context.new_page())
    expect(third.locator("#ask")).to_be_hidden()  # both drafts belong to open tabs
    first.close()
    second = reopen(day, second)
    expect(field_of(second)).to_have_value("Second")  # typed last
    expect(second.locator("#notices [data-notice=replaced]")).to_contain_text("“First”")
    press(second, "c")
    second.keyboard.press("Enter")
    eventually(second, lambda: StepReview.objects.filter(comment="Second").exists())
    second = reopen(day, second)
    expect(second.locator("#ask")).to_be_hidden()
    expect(second.locator("#notices [data-notice=replaced]")).to_have_count(0)


def test_draft_of_a_closed_tab_does_not_replace_a_newer_text(visit: Visit) -> None:
    day = RaterDay(THREE)
    first = day.begin(visit(day.user))
    context = first.context
    second = day.begin(context.new_page())
    press(first, "c")
    field_of(first).press_sequentially("Draft")
    press(second, "c")
    field_of(second).press_sequentially("Saved")
    second.keyboard.press("Enter")
    eventually(second, lambda: StepReview.objects.filter(comment="Saved").exists())
    first.close()
    second = reopen(day, second)
    expect(second.locator("#notices [data-notice=replaced]")).to_contain_text("“Draft”")
    expect(second.locator("#ask")).to_be_hidden()
    assert StepReview.objects.exclude(comment="").get().comment == "Saved"


def reopen(day: RaterDay, page: Page) -> Page:
    """Close a tab in the middle of typing, and open the trace in another one."""
    context = page.context
    page.close()
    return day.begin(context.new_page())


def test_texts_of_a_step_that_is_no_longer_negative_are_kept_as_drafts(visit: Visit) -> None:
    day = RaterDay(THREE, ["Next."], protocol="every_step", **ASKS)
    page = day.begin(visit(day.user))
    press(page, "1")
    page.locator(".errorbox [name=corrected]").fill("Rather.")
    page.locator(".errorbox [name=corrected]").blur()
    saved(page)
    page.locator(".errorbox [name=reason]").fill("Why?")
    page.locator("#step-0 .rate label").nth(2).evaluate("(label) => label.click()")  # before the draft is saved
    eventually(page, lambda: ratings() == [1])
    day.begin(page)
    assert not Judgment.objects.exclude(reason="").exists()
    page.locator("#step-0").click()
    press(page, "1")
    expect(page.locator(".errorbox [name=corrected]")).to_have_value("Rather.")
    expect(page.locator(".errorbox [name=reason]")).to_have_value("Why?")
    eventually(page, lambda: Judgment.objects.filter(reason="Why?").exists())
    press(page, "k")
    submit(page, "333")
    assert ratings() == [1, 1, 1]
    assert not StepReview.objects.exclude(written_text=None).exists()


def test_comment_draft_is_kept_until_it_is_saved_or_canceled(visit: Visit) -> None:
    day = RaterDay(THREE)
    page = day.begin(visit(day.user))
    field = page.locator("#ask textarea")
    press(page, "c")
    field.press_sequentially("About one")
    page.locator("#step-1").click()
    page.locator("[data-act=comment]").click()
    expect(field).to_have_value("")
    expect(page.locator("#step-0 [data-slot=comment]")).to_be_visible()  # saved, because the field was needed
    field.press_sequentially("About two")
    page.keyboard.press("Escape")
    context = page.context
    page.close()
    page = day.begin(context.new_page())
    page.locator("#step-1").click()
    page.locator("[data-act=comment]").click()
    expect(field_of(page)).to_have_value("About two")
    page.keyboard.press("Enter")
    page.locator("#step-2").click()
    page.locator("[data-act=comment]").click()
    field_of(page).press_sequentially("About three")
    page.locator("#ask [type=reset]").click()
    saved(page)
    comments = StepReview.objects.exclude(comment="").order_by("step__position").values_list("comment", flat=True)
    assert list(comments) == ["About one", "About two"]


def field_of(page: Page) -> Any:
    return page.locator("#ask textarea")

"""Invitations, login links, passwords and the theme, in a browser."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from accounts import tokens
from accounts.models import User
from people import invitations, members
from people.models import Role
from tests.journeys.conftest import Visit, accessibility_violations
from tests.journeys.example_project import ExampleProject, make_example_project

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scene(transactional_db: None) -> ExampleProject:
    return make_example_project()


def test_new_person_joins_by_invitation(scene: ExampleProject, visit: Visit) -> None:
    leads = visit(scene.lead, "/")
    leads.get_by_role("link", name="Competition math, round 3", exact=True).click()
    leads.get_by_role("link", name="Members").click()
    leads.get_by_label("Note").fill("Ines")
    leads.get_by_role("button", name="Create invitation link").click()
    link = leads.get_by_role("textbox", name="Link").input_value()
    assert not accessibility_violations(leads)

    guest = visit()
    guest.goto(link)
    expect(guest.get_by_role("heading", name="Competition math, round 3")).to_be_visible()
    guest.locator("#id_username").fill("haddad")
    guest.locator("#id_password").fill("seven green ladders")
    guest.keyboard.press("Enter")
    expect(guest.locator("#id_username_error")).to_be_visible()
    assert not accessibility_violations(guest)
    guest.locator("#id_username").fill("ines")
    guest.locator("#id_password").fill("seven green ladders")
    guest.locator("[data-join=new-account] [type=submit]").click()
    expect(guest.locator("[data-message=success]")).to_be_visible()
    assert members.get_membership(project=scene.project, user=User.objects.get(username="ines")).role == Role.ANNOTATOR

    late = visit()
    late.goto(link)
    expect(late.locator("[data-page=invitation-invalid]")).to_be_visible()


def test_user_with_an_account_logs_in_and_joins(scene: ExampleProject, visit: Visit) -> None:
    owner = User.objects.create_user("ferreira", password="seven green ladders")
    _, token = invitations.create_invitation(
        project=scene.project, role=Role.ENGINEER, by=scene.lead, now=timezone.now()
    )
    page = visit()
    page.goto(reverse("annotate:join", args=[token]))
    page.locator("a[href*='?next=/join/']").click()
    page.locator("#id_login").fill("ferreira")
    page.locator("#id_password").fill("seven green ladders")
    page.locator("#id_password").press("Enter")
    page.locator("[data-join=account] [type=submit]").click()
    expect(page.locator("[data-message=success]")).to_be_visible()
    assert members.get_membership(project=scene.project, user=owner).role == Role.ENGINEER


def test_opening_a_login_link_does_not_use_it_up(scene: ExampleProject, visit: Visit) -> None:
    address = f"/login-link/{tokens.create_login_link(user=scene.annotator, by=None, now=timezone.now())}"
    visit().goto(address)
    page = visit()
    page.goto(address)
    expect(page.locator("main [type=submit]")).to_be_focused()  # autofocus
    page.keyboard.press("Enter")
    expect(page.locator("#todo")).to_be_visible()
    late = visit()
    late.goto(address)
    expect(late.locator("[data-page=link-invalid]")).to_be_visible()


def test_member_sets_a_password_with_a_reset_link(scene: ExampleProject, visit: Visit) -> None:
    leads = visit(scene.lead)
    leads.goto(reverse("dashboard:members", args=[scene.project.slug]))
    leads.get_by_role("button", name="Create reset link Rosa Navarro").click()
    page = visit()
    page.goto(leads.get_by_role("textbox", name="Link").input_value())
    page.locator("#id_password").fill("short")
    page.keyboard.press("Enter")
    expect(page.locator("#id_password_error")).to_be_visible()
    assert not accessibility_violations(page)
    page.locator("#id_password").fill("seven green ladders")
    page.keyboard.press("Enter")
    expect(page.locator("#todo")).to_be_visible()


def test_theme_follows_the_system_until_chosen(scene: ExampleProject, visit: Visit) -> None:
    page = visit(scene.annotator, "/", dark=True)
    expect(page.locator("html")).to_have_css("background-color", "rgb(17, 19, 22)")
    page.locator("[data-theme-form] button").click()
    expect(page.locator("html")).to_have_css("background-color", "rgb(244, 245, 246)")
    page.reload()
    expect(page.locator("html")).to_have_css("background-color", "rgb(244, 245, 246)")


def test_members_and_theme_work_without_javascript(scene: ExampleProject, visit: Visit) -> None:
    page = visit(scene.lead, "/", java_script_enabled=False)
    page.locator("[data-theme-form] button").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto(reverse("dashboard:members", args=[scene.project.slug]))
    page.get_by_label("Role of Rosa Navarro").select_option("reviewer")
    page.locator("form:has([aria-label='Role of Rosa Navarro']) button").click()
    expect(page.locator("[data-message=success]")).to_be_visible()
    expect(page.get_by_label("Role of Rosa Navarro")).to_have_value("reviewer")
    page.locator("details.menu summary").click()
    page.locator("form[action='/accounts/logout/'] button").click()
    expect(page.locator("#id_login")).to_be_visible()

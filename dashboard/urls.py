"""The pages of project leads."""

from django.urls import path

from dashboard.views import people, projects

app_name = "dashboard"
urlpatterns = [
    path("projects/new/", projects.new, name="new_project"),
    path("projects/<slug:slug>/people/", people.members_page, name="people"),
    path("projects/<slug:slug>/people/invite", people.invite, name="invite"),
    path("projects/<slug:slug>/people/invitations/<int:invitation>/revoke", people.revoke, name="revoke"),
    path("projects/<slug:slug>/people/<int:member>/role", people.change_role, name="change_role"),
    path("projects/<slug:slug>/people/<int:member>/remove", people.remove, name="remove"),
    path("projects/<slug:slug>/people/<int:member>/reset-link", people.reset_link, name="reset_link"),
    path("projects/<slug:slug>/leave", people.leave, name="leave"),
]

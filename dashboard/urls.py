"""The pages of project leads."""

from django.urls import path

from dashboard.views import adjudication, people, projects, traces

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
    path("projects/<slug:slug>/adjudicate/", adjudication.adjudicate, name="adjudicate"),
    path("projects/<slug:slug>/adjudicate/<int:trace>/", adjudication.adjudicate, name="adjudicate_trace"),
    path("projects/<slug:slug>/adjudicate/<int:trace>/decide", adjudication.decide, name="decide"),
    path("projects/<slug:slug>/adjudicate/<int:trace>/send-back", adjudication.send_back, name="send_back"),
    path("projects/<slug:slug>/traces/", traces.find, name="traces"),
    path("projects/<slug:slug>/traces/<int:trace>/", traces.one, name="trace"),
    path("projects/<slug:slug>/traces/<int:trace>/gold", traces.make_gold, name="make_gold"),
    path("projects/<slug:slug>/traces/<int:trace>/withdraw", traces.withdraw, name="withdraw"),
    path("projects/<slug:slug>/assignments/<int:assignment>/take-back", traces.take_back, name="take_back"),
    path("projects/<slug:slug>/parts/<int:part>", traces.image, name="part"),
]

"""The pages of project leads."""

from django.urls import path

from dashboard.views import adjudication, imports, models, people, projects, traces

app_name = "dashboard"
urlpatterns = [
    path("projects/new/", projects.new, name="new_project"),
    path("projects/<slug:slug>/imports/", imports.find, name="imports"),
    path("projects/<slug:slug>/imports/send", imports.send, name="send_file"),
    path("projects/<slug:slug>/imports/look", imports.look, name="look_at_file"),
    path("projects/<slug:slug>/imports/<int:job>/", imports.one, name="import"),
    path("projects/<slug:slug>/imports/<int:job>/cancel", imports.cancel, name="cancel_import"),
    path("projects/<slug:slug>/imports/<int:job>/retry", imports.retry, name="retry_import"),
    path("projects/<slug:slug>/imports/<int:job>/bad-lines", imports.bad_lines_of, name="bad_lines"),
    path("projects/<slug:slug>/imports/<int:job>/standing", imports.standing, name="import_standing"),
    path("projects/<slug:slug>/imports/of/<int:source>/", imports.brought, name="brought_in"),
    path("projects/<slug:slug>/imports/of/<int:source>/standing", imports.source_standing, name="source_standing"),
    path("projects/<slug:slug>/imports/of/<int:source>/undo", imports.undo, name="undo_import"),
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
    path("projects/<slug:slug>/models/", models.overview, name="models"),
    path("projects/<slug:slug>/models/progress", models.progress, name="generation_progress"),
    path("projects/<slug:slug>/models/start", models.start, name="start_generation"),
    path("projects/<slug:slug>/models/register", models.register, name="register_prm"),
    path("projects/<slug:slug>/models/rules", models.change_rules, name="change_rules"),
    path("projects/<slug:slug>/models/roll-back", models.roll_back, name="roll_back"),
    path("projects/<slug:slug>/models/score", models.score, name="score_stale"),
    path("projects/<slug:slug>/models/<int:version>/", models.one, name="model"),
    path("projects/<slug:slug>/models/<int:version>/current", models.make_current, name="make_current"),
    path("projects/<slug:slug>/generations/<int:number>/stop", models.stop, name="stop_generation"),
    path("projects/<slug:slug>/generations/<int:number>/retry", models.retry, name="retry_generation"),
    path("projects/<slug:slug>/traces/", traces.find, name="traces"),
    path("projects/<slug:slug>/traces/<int:trace>/", traces.one, name="trace"),
    path("projects/<slug:slug>/traces/<int:trace>/gold", traces.make_gold, name="make_gold"),
    path("projects/<slug:slug>/traces/<int:trace>/withdraw", traces.withdraw, name="withdraw"),
    path("projects/<slug:slug>/assignments/<int:assignment>/take-back", traces.take_back, name="take_back"),
    path("projects/<slug:slug>/parts/<int:part>", traces.image, name="part"),
]

"""URLs of the pages of leads."""

from django.urls import path

from dashboard.adjudication import views as adjudication_views
from dashboard.agreement import views as agreement_views
from dashboard.annotator import views as annotator_views
from dashboard.annotators import views as annotators_views
from dashboard.generations import views as generations_views
from dashboard.gold import views as gold_views
from dashboard.imports import views as imports_views
from dashboard.jobs import views as jobs_views
from dashboard.members import views as members_views
from dashboard.messages import views as messages_views
from dashboard.new_project import views as new_project_views
from dashboard.overview import views as overview_views
from dashboard.screening_set import views as screening_set_views
from dashboard.settings import views as settings_views
from dashboard.snapshots import views as snapshots_views
from dashboard.submission import views as submission_views
from dashboard.trace import views as trace_views
from dashboard.traces import views as traces_views

app_name = "dashboard"
urlpatterns = [
    path("projects/new/", new_project_views.create_new_project, name="new_project"),
    path("projects/<slug:slug>/imports/", imports_views.show_imports, name="imports"),
    path("projects/<slug:slug>/imports/upload", imports_views.upload_import_file, name="upload_import_file"),
    path("projects/<slug:slug>/imports/preview", imports_views.preview_import, name="import_preview"),
    path("projects/<slug:slug>/imports/<int:job>/", imports_views.show_import, name="import"),
    path("projects/<slug:slug>/imports/<int:job>/cancel", imports_views.cancel_import, name="cancel_import"),
    path("projects/<slug:slug>/imports/<int:job>/retry", imports_views.retry_import, name="retry_import"),
    path(
        "projects/<slug:slug>/imports/<int:job>/bad-lines", imports_views.download_bad_lines, name="download_bad_lines"
    ),
    path(
        "projects/<slug:slug>/imports/<int:job>/progress",
        imports_views.show_import,
        {"is_part": True},
        name="import_progress",
    ),
    path("projects/<slug:slug>/imports/sources/<int:source>/", imports_views.show_import_source, name="import_source"),
    path(
        "projects/<slug:slug>/imports/sources/<int:source>/progress",
        imports_views.show_import_source,
        {"is_part": True},
        name="import_source_progress",
    ),
    path(
        "projects/<slug:slug>/imports/sources/<int:source>/undo",
        imports_views.undo_source_import,
        name="undo_source_import",
    ),
    path("projects/<slug:slug>/members/", members_views.show_members, name="members"),
    path("projects/<slug:slug>/members/invitations/create", members_views.create_invitation, name="create_invitation"),
    path(
        "projects/<slug:slug>/members/invitations/<int:invitation>/revoke",
        members_views.revoke_invitation,
        name="revoke_invitation",
    ),
    path("projects/<slug:slug>/members/<int:member>/role", members_views.change_member_role, name="change_member_role"),
    path("projects/<slug:slug>/members/<int:member>/remove", members_views.remove_member, name="remove_member"),
    path(
        "projects/<slug:slug>/members/<int:member>/screening-attempt",
        members_views.allow_screening_attempt,
        name="allow_screening_attempt",
    ),
    path("projects/<slug:slug>/members/<int:member>/admit", members_views.admit_member, name="admit_member"),
    path(
        "projects/<slug:slug>/members/<int:member>/reset-link",
        members_views.create_reset_link,
        name="create_reset_link",
    ),
    path("projects/<slug:slug>/leave", members_views.leave_project, name="leave_project"),
    path("projects/<slug:slug>/adjudication/", adjudication_views.show_adjudication, name="adjudication"),
    path(
        "projects/<slug:slug>/adjudication/<int:trace>/", adjudication_views.show_adjudication, name="adjudication_case"
    ),
    path("projects/<slug:slug>/adjudication/<int:trace>/decide", adjudication_views.decide_case, name="decide_case"),
    path(
        "projects/<slug:slug>/adjudication/<int:trace>/send-back",
        adjudication_views.send_case_back,
        name="send_case_back",
    ),
    path("projects/<slug:slug>/generations/", generations_views.show_generations, name="generations"),
    path(
        "projects/<slug:slug>/generations/progress",
        generations_views.show_generation_progress,
        name="generation_progress",
    ),
    path("projects/<slug:slug>/generations/start", generations_views.start_generation, name="start_generation"),
    path("projects/<slug:slug>/prms/register", generations_views.register_prm, name="register_prm"),
    path(
        "projects/<slug:slug>/generations/selection-rules",
        generations_views.change_selection_rules,
        name="change_selection_rules",
    ),
    path("projects/<slug:slug>/prms/roll-back", generations_views.roll_back_prm, name="roll_back_prm"),
    path("projects/<slug:slug>/generations/score", generations_views.score_stale_traces, name="score_stale_traces"),
    path("projects/<slug:slug>/prms/<int:version>/", generations_views.show_prm, name="prm"),
    path(
        "projects/<slug:slug>/prms/<int:version>/current", generations_views.make_prm_current, name="make_prm_current"
    ),
    path(
        "projects/<slug:slug>/generations/<int:number>/stop", generations_views.stop_generation, name="stop_generation"
    ),
    path(
        "projects/<slug:slug>/generations/<int:number>/retry",
        generations_views.retry_generation,
        name="retry_generation",
    ),
    path("projects/<slug:slug>/", overview_views.show_overview, name="overview"),
    path("projects/<slug:slug>/annotators/", annotators_views.show_annotators, name="annotators"),
    path("projects/<slug:slug>/annotators/<int:rater>/", annotator_views.show_annotator, name="annotator"),
    path("projects/<slug:slug>/annotators/<int:rater>/pause", annotator_views.pause_annotator, name="pause_annotator"),
    path(
        "projects/<slug:slug>/annotators/<int:rater>/resume", annotator_views.resume_annotator, name="resume_annotator"
    ),
    path(
        "projects/<slug:slug>/annotators/<int:rater>/retrain",
        annotator_views.retrain_annotator,
        name="retrain_annotator",
    ),
    path("projects/<slug:slug>/messages/", messages_views.show_messages, name="messages"),
    path("projects/<slug:slug>/messages/send", messages_views.send_message_to_all, name="send_message_to_all"),
    path("projects/<slug:slug>/annotators/<int:rater>/messages/", messages_views.show_thread, name="thread"),
    path("projects/<slug:slug>/annotators/<int:rater>/messages/send", messages_views.send_message, name="send_message"),
    path(
        "projects/<slug:slug>/annotators/<int:rater>/messages/seen",
        messages_views.mark_answers_seen,
        name="mark_answers_seen",
    ),
    path("projects/<slug:slug>/agreement/", agreement_views.show_agreement, name="agreement"),
    path("projects/<slug:slug>/submissions/<int:assignment>/", submission_views.show_submission, name="submission"),
    path(
        "projects/<slug:slug>/submissions/<int:assignment>/correction",
        submission_views.create_correction_request,
        name="create_correction_request",
    ),
    path("projects/<slug:slug>/traces/", traces_views.show_traces, name="traces"),
    path("projects/<slug:slug>/traces/<int:trace>/", trace_views.show_trace, name="trace"),
    path("projects/<slug:slug>/traces/<int:trace>/gold", trace_views.make_trace_gold, name="make_trace_gold"),
    path("projects/<slug:slug>/traces/<int:trace>/withdraw", trace_views.withdraw_trace, name="withdraw_trace"),
    path(
        "projects/<slug:slug>/assignments/<int:assignment>/reclaim",
        trace_views.reclaim_from_annotator,
        name="reclaim_from_annotator",
    ),
    path("projects/<slug:slug>/gold/", gold_views.show_gold, name="gold"),
    path("projects/<slug:slug>/gold/screening-set/", screening_set_views.show_screening_set, name="screening_set"),
    path(
        "projects/<slug:slug>/gold/screening-set/adopt",
        screening_set_views.adopt_screening_set,
        name="adopt_screening_set",
    ),
    path("projects/<slug:slug>/gold/<int:gold>/", gold_views.show_gold_trace, name="gold_trace"),
    path("projects/<slug:slug>/gold/<int:gold>/correct", gold_views.correct_gold_trace, name="correct_gold_trace"),
    path("projects/<slug:slug>/gold/<int:gold>/retire", gold_views.retire_gold_trace, name="retire_gold_trace"),
    path("projects/<slug:slug>/snapshots/", snapshots_views.show_snapshots, name="snapshots"),
    path("projects/<slug:slug>/snapshots/order", snapshots_views.order_snapshot, name="order_snapshot"),
    path("projects/<slug:slug>/snapshots/disclosure", snapshots_views.edit_disclosure, name="disclosure"),
    path("projects/<slug:slug>/snapshots/of/<slug:name>/", snapshots_views.show_snapshot, name="snapshot"),
    path(
        "projects/<slug:slug>/snapshots/of/<slug:name>/progress",
        snapshots_views.show_snapshot_progress,
        name="snapshot_progress",
    ),
    path(
        "projects/<slug:slug>/snapshots/of/<slug:name>/cancel", snapshots_views.cancel_snapshot, name="cancel_snapshot"
    ),
    path("projects/<slug:slug>/snapshots/of/<slug:name>/retry", snapshots_views.retry_snapshot, name="retry_snapshot"),
    path(
        "projects/<slug:slug>/snapshots/of/<slug:name>/deliver",
        snapshots_views.deliver_snapshot,
        name="deliver_snapshot",
    ),
    path(
        "projects/<slug:slug>/snapshots/of/<slug:name>/files/<path:file>",
        snapshots_views.download_snapshot_file,
        name="download_snapshot_file",
    ),
    path("projects/<slug:slug>/images/<int:part>", trace_views.show_trace_image, name="trace_image"),
    path("projects/<slug:slug>/settings/", settings_views.edit_settings, name="settings"),
    path("projects/<slug:slug>/settings/overlap", settings_views.edit_overlap, name="edit_overlap"),
    path("projects/<slug:slug>/settings/guideline/", settings_views.edit_guideline, name="guideline"),
    path("projects/<slug:slug>/settings/consent", settings_views.save_consent_text, name="save_consent_text"),
    path(
        "projects/<slug:slug>/guidelines/<int:version>/",
        settings_views.show_guideline_version,
        name="guideline_version",
    ),
    path("projects/<slug:slug>/settings/lifecycle/", settings_views.show_lifecycle, name="lifecycle"),
    path("projects/<slug:slug>/settings/clone", settings_views.create_project_clone, name="create_project_clone"),
    *(
        path(
            f"projects/<slug:slug>/settings/{verb}",
            settings_views.change_project_state,
            {"verb": verb},
            name=f"{verb}_project",
        )
        for verb in ("pause", "resume", "close", "archive")
    ),
    path("projects/<slug:slug>/jobs/", jobs_views.show_jobs, name="jobs"),
    path("projects/<slug:slug>/jobs/<int:job>/retry", jobs_views.retry_job, name="retry_job"),
    path("projects/<slug:slug>/jobs/<int:job>/cancel", jobs_views.cancel_job, name="cancel_job"),
]

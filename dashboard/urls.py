"""URLs of the pages of leads."""

from django.urls import URLPattern, URLResolver, include, path

from dashboard.views import (
    adjudication,
    agreement,
    annotators,
    audit,
    generations,
    gold,
    groups,
    import_preview,
    imports,
    jobs,
    lifecycle,
    members,
    messages,
    notices,
    overview,
    pay,
    prms,
    rating_rules,
    screening_set,
    security,
    set_aside,
    settings,
    snapshots,
    submission,
    trace,
    traces,
)

app_name = "dashboard"
_IMPORTS = [
    path("", imports.show_imports, name="imports"),
    path("upload", imports.upload_import_file, name="upload_import_file"),
    path("preview", import_preview.preview_import, name="import_preview"),
    path("<int:job>/", imports.show_import, name="import"),
    path("<int:job>/cancel", imports.cancel_import, name="cancel_import"),
    path("<int:job>/retry", imports.retry_import, name="retry_import"),
    path("<int:job>/bad-lines", imports.download_bad_lines, name="download_bad_lines"),
    path("<int:job>/progress", imports.show_import, {"is_part": True}, name="import_progress"),
    path("sources/<int:source>/", imports.show_import_source, name="import_source"),
    path(
        "sources/<int:source>/progress",
        imports.show_import_source,
        {"is_part": True},
        name="import_source_progress",
    ),
    path("sources/<int:source>/undo", imports.undo_source_import, name="undo_source_import"),
]
_MEMBERS = [
    path("", members.show_members, name="members"),
    path("invitations/create", members.create_invitation, name="create_invitation"),
    path("invitations/<int:invitation>/revoke", members.revoke_invitation, name="revoke_invitation"),
    path("<int:member>/role", members.change_member_role, name="change_member_role"),
    path("<int:member>/remove", members.remove_member, name="remove_member"),
    path("<int:member>/restore", members.restore_member, name="restore_member"),
    path("<int:member>/screening-attempt", members.allow_screening_attempt, name="allow_screening_attempt"),
    path("<int:member>/admit", members.admit_member, name="admit_member"),
    path("<int:member>/reset-link", members.create_reset_link, name="create_reset_link"),
]
_ADJUDICATION = [
    path("", adjudication.show_adjudication, name="adjudication"),
    path("<int:trace>/", adjudication.show_adjudication, name="adjudication_case"),
    path("<int:trace>/decide", adjudication.decide_case, name="decide_case"),
    path("<int:trace>/send-back", adjudication.send_case_back, name="send_case_back"),
]
_GENERATIONS = [
    path("", generations.show_generations, name="generations"),
    path("progress", generations.show_generation_progress, name="generation_progress"),
    path("start", generations.start_generation, name="start_generation"),
    path("selection-rules", generations.change_selection_rules, name="change_selection_rules"),
    path("score", generations.score_stale_traces, name="score_stale_traces"),
    path("<int:number>/stop", generations.stop_generation, name="stop_generation"),
    path("<int:number>/retry", generations.retry_generation, name="retry_generation"),
]
_PRMS = [
    path("register", generations.register_prm, name="register_prm"),
    path("roll-back", generations.roll_back_prm, name="roll_back_prm"),
    path("<int:version>/", prms.show_prm, name="prm"),
    path("<int:version>/current", prms.make_prm_current, name="make_prm_current"),
    path("<int:version>/evaluate", prms.evaluate_prm_on_file, name="evaluate_prm_on_file"),
]
_ANNOTATORS = [
    path("", annotators.show_annotators, name="annotators"),
    path("<int:rater>/", annotators.show_annotator, name="annotator"),
    path("<int:rater>/pause", annotators.pause_annotator, name="pause_annotator"),
    path("<int:rater>/resume", annotators.resume_annotator, name="resume_annotator"),
    path("<int:rater>/retrain", annotators.retrain_annotator, name="retrain_annotator"),
    path("<int:rater>/set-aside", set_aside.set_labels_aside, name="set_labels_aside"),
    path("set-asides/<int:set_aside_id>/undo", set_aside.undo_set_aside, name="undo_set_aside"),
    path("<int:rater>/messages/", messages.show_thread, name="thread"),
    path("<int:rater>/messages/send", messages.send_message, name="send_message"),
    path("<int:rater>/messages/seen", messages.mark_answers_seen, name="mark_answers_seen"),
]
_TRACES = [
    path("", traces.show_traces, name="traces"),
    path("actions", traces.change_traces, name="change_traces"),
    path("<int:trace>/", trace.show_trace, name="trace"),
    path("<int:trace>/answer/<int:rater>", messages.answer_question, name="answer_question"),
    path("<int:trace>/gold", trace.make_trace_gold, name="make_trace_gold"),
    path("<int:trace>/withdraw", trace.withdraw_trace, name="withdraw_trace"),
    path("<int:trace>/reopen", trace.reopen_settled_trace, name="reopen_trace"),
    path("<int:trace>/request-label", trace.request_trace_label, name="request_trace_label"),
]
_GOLD = [
    path("", gold.show_gold, name="gold"),
    path("screening-set/", screening_set.show_screening_set, name="screening_set"),
    path("screening-set/adopt", screening_set.adopt_screening_set, name="adopt_screening_set"),
    path("<int:gold>/", gold.show_gold_trace, name="gold_trace"),
    path("<int:gold>/correct", gold.correct_gold_trace, name="correct_gold_trace"),
    path("<int:gold>/retire", gold.retire_gold_trace, name="retire_gold_trace"),
]
_SNAPSHOTS = [
    path("", snapshots.show_snapshots, name="snapshots"),
    path("order", snapshots.order_snapshot, name="order_snapshot"),
    path("disclosure", snapshots.edit_disclosure, name="disclosure"),
    path("of/<slug:name>/", snapshots.show_snapshot, name="snapshot"),
    path("of/<slug:name>/progress", snapshots.show_snapshot_progress, name="snapshot_progress"),
    path("of/<slug:name>/cancel", snapshots.cancel_snapshot, name="cancel_snapshot"),
    path("of/<slug:name>/retry", snapshots.retry_snapshot, name="retry_snapshot"),
    path("of/<slug:name>/deliver", snapshots.deliver_snapshot, name="deliver_snapshot"),
    path("of/<slug:name>/files/<path:file>", snapshots.download_snapshot_file, name="download_snapshot_file"),
]
_SETTINGS = [
    path("", settings.edit_settings, name="settings"),
    path("overlap", settings.edit_overlap, name="edit_overlap"),
    path("guideline/", settings.edit_guideline, name="guideline"),
    path("consent", settings.save_consent_text, name="save_consent_text"),
    path("rules/", rating_rules.edit_rating_rules, name="rating_rules"),
    path("notices/", notices.show_notices, name="notices"),
    path("notices/mail", notices.choose_mail, name="choose_mail"),
    path("notices/webhooks/create", notices.create_webhook, name="create_webhook"),
    path("notices/webhooks/<int:webhook>/test", notices.test_webhook, name="test_webhook"),
    path("notices/webhooks/<int:webhook>/delete", notices.delete_webhook, name="delete_webhook"),
    path("notices/deliveries/<int:delivery>/send", notices.send_notice_again, name="send_notice_again"),
    path("lifecycle/", lifecycle.show_lifecycle, name="lifecycle"),
    path("clone", lifecycle.create_project_clone, name="create_project_clone"),
    *(
        path(verb, lifecycle.change_project_state, {"verb": verb}, name=f"{verb}_project")
        for verb in ("pause", "resume", "close", "archive")
    ),
]
_PROJECT: list[URLPattern | URLResolver] = [
    path("", overview.show_overview, name="overview"),
    path("imports/", include(_IMPORTS)),
    path("members/", include(_MEMBERS)),
    path("leave", members.leave_project, name="leave_project"),
    path("adjudication/", include(_ADJUDICATION)),
    path("generations/", include(_GENERATIONS)),
    path("prms/", include(_PRMS)),
    path("groups/", groups.show_groups, name="groups"),
    path("groups/save", groups.save_group, name="save_group"),
    path("groups/<int:group>/delete", groups.delete_group, name="delete_group"),
    path("groups/rules/make", groups.make_steering_rule, name="make_steering_rule"),
    path("groups/rules/<int:rule>/stop", groups.stop_steering_rule, name="stop_steering_rule"),
    path("pay/", pay.show_pay, name="pay"),
    path("pay/budget", pay.set_budget, name="set_budget"),
    path("annotators/", include(_ANNOTATORS)),
    path("messages/", messages.show_messages, name="messages"),
    path("messages/send", messages.send_message_to_all, name="send_message_to_all"),
    path("agreement/", agreement.show_agreement, name="agreement"),
    path("submissions/<int:assignment>/", submission.show_submission, name="submission"),
    path(
        "submissions/<int:assignment>/correction",
        submission.create_correction_request,
        name="create_correction_request",
    ),
    path("traces/", include(_TRACES)),
    path("assignments/<int:assignment>/reclaim", trace.reclaim_from_annotator, name="reclaim_from_annotator"),
    path("gold/", include(_GOLD)),
    path("snapshots/", include(_SNAPSHOTS)),
    path("images/<int:part>", trace.show_trace_image, name="trace_image"),
    path("settings/", include(_SETTINGS)),
    path("guidelines/<int:version>/", settings.show_guideline_version, name="guideline_version"),
    path("audit/", audit.show_audit, name="audit"),
    path("audit/download", audit.download_audit, name="download_audit"),
    path("jobs/", jobs.show_jobs, name="jobs"),
    path("jobs/<int:job>/retry", jobs.retry_job, name="retry_job"),
    path("jobs/<int:job>/cancel", jobs.cancel_job, name="cancel_job"),
]
urlpatterns = [
    path("security/", security.show_security_log, name="security_log"),
    path("security/download", security.download_security_log, name="download_security_log"),
    path("projects/new/", lifecycle.create_new_project, name="new_project"),
    path("projects/<slug:slug>/", include(_PROJECT)),
]

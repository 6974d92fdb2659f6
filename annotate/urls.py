"""URLs of the annotators' pages."""

from django.urls import path

from annotate.views import history, home, join, keys, messages, onboarding, work

app_name = "annotate"
urlpatterns = [
    path("", home.show_home, name="home"),
    path("submitted/", history.show_history, name="history"),
    path("submitted/<int:assignment>/", history.show_submitted_trace, name="submitted_one"),
    path("submitted/<int:assignment>/correct", history.start_correction, name="correct"),
    path("messages/", messages.list_messages, name="messages"),
    path("messages/unread/<slug:slug>", messages.show_unread, name="unread"),
    path("messages/<int:message>/read", messages.mark_read, name="read_message"),
    path("messages/<int:message>/answer", messages.answer_message, name="answer_message"),
    path("keys/", keys.edit_keys, name="keys"),
    path("join/<str:token>", join.accept_invitation, name="join"),
    path("corrections/<int:assignment>/leave", home.leave_as_is, name="leave_as_is"),
    path("ended/<int:assignment>/known", home.acknowledge_reclaim, name="know_end"),
    path("projects/<slug:slug>/rate", home.begin_rating, name="begin_rating"),
    path("enter/<slug:slug>/", onboarding.show_gate, name="enter"),
    path("enter/<slug:slug>/consent", onboarding.give_consent, name="consent"),
    path("enter/<slug:slug>/guideline", onboarding.confirm_guideline, name="read_guideline"),
    path("enter/<slug:slug>/again", onboarding.retry_screening, name="try_again"),
    path("enter/<slug:slug>/done", onboarding.show_completion, name="done"),
    path("lessons/<int:assignment>/", onboarding.show_training_feedback, name="lesson"),
    path("lessons/<int:assignment>/read", onboarding.confirm_training_feedback, name="read_lesson"),
    path("guideline/<slug:slug>/", onboarding.show_guideline, name="guideline"),
    path("work/<slug:slug>/", work.show_work_page, name="work"),
    path("work/<slug:slug>/claim", work.claim, name="claim"),
    path("work/<slug:slug>/release-held", work.release_held, name="release_held"),
    path("work/<int:assignment>/content", work.send_trace, name="content"),
    path("work/<int:assignment>/open", work.open_held, name="open"),
    path("work/<int:assignment>/record", work.record, name="record"),
    path("work/<int:assignment>/submit", work.submit, name="submit"),
    path("work/<int:assignment>/give-up", work.give_up, name="give_up"),
    path("work/<int:assignment>/report", work.report_problem, name="report"),
    path("work/<int:assignment>/skip", work.skip, name="skip"),
    path("work/<int:assignment>/reopen", work.reopen, name="reopen"),
    path("work/<int:assignment>/discard", work.discard_correction, name="discard"),
    path("work/parts/<int:part>", work.show_image, name="part"),
]

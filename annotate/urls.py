"""The annotators' pages."""

from django.urls import path

from annotate.views import entering, history, home, joining, keys, messages, work

app_name = "annotate"
urlpatterns = [
    path("", home.home, name="home"),
    path("submitted/", history.submitted, name="history"),
    path("submitted/<int:assignment>/", history.submitted_one, name="submitted_one"),
    path("submitted/<int:assignment>/correct", history.correct, name="correct"),
    path("messages/", messages.every, name="messages"),
    path("messages/unread/<slug:slug>", messages.unread, name="unread"),
    path("messages/<int:message>/read", messages.mark_read, name="read_message"),
    path("messages/<int:message>/answer", messages.answer, name="answer_message"),
    path("keys/", keys.keys, name="keys"),
    path("join/<str:token>", joining.join, name="join"),
    path("corrections/<int:assignment>/leave", home.leave_as_is, name="leave_as_is"),
    path("ended/<int:assignment>/known", home.know_end, name="know_end"),
    path("projects/<slug:slug>/rate", home.begin_rating, name="begin_rating"),
    path("enter/<slug:slug>/", entering.enter, name="enter"),
    path("enter/<slug:slug>/consent", entering.consent, name="consent"),
    path("enter/<slug:slug>/guideline", entering.read_guideline, name="read_guideline"),
    path("enter/<slug:slug>/again", entering.try_again, name="try_again"),
    path("enter/<slug:slug>/done", entering.done, name="done"),
    path("lessons/<int:assignment>/", entering.lesson, name="lesson"),
    path("lessons/<int:assignment>/read", entering.read_lesson, name="read_lesson"),
    path("guideline/<slug:slug>/", entering.guideline, name="guideline"),
    path("work/<slug:slug>/", work.page, name="work"),
    path("work/<slug:slug>/claim", work.claim, name="claim"),
    path("work/<slug:slug>/release-held", work.release_held, name="release_held"),
    path("work/<int:assignment>/content", work.content, name="content"),
    path("work/<int:assignment>/open", work.open_held, name="open"),
    path("work/<int:assignment>/record", work.record, name="record"),
    path("work/<int:assignment>/submit", work.submit, name="submit"),
    path("work/<int:assignment>/give-up", work.give_up, name="give_up"),
    path("work/<int:assignment>/report", work.report, name="report"),
    path("work/<int:assignment>/skip", work.skip, name="skip"),
    path("work/<int:assignment>/reopen", work.reopen, name="reopen"),
    path("work/parts/<int:part>", work.part, name="part"),
]

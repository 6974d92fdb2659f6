"""Questions on the whole trace, which annotators answer after its steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard.access import form_view
from dashboard.guideline_versions import report_new_version
from dashboard.render import project_page
from labeling.projects import lifecycle, trace_questions
from labeling.projects.trace_questions import QuestionChoice, QuestionKind, TraceQuestion
from people import roles
from people.models import Membership
from people.roles import Action

if TYPE_CHECKING:
    _FormSet = forms.BaseFormSet["TraceQuestionForm"]
else:
    _FormSet = forms.BaseFormSet  # not generic at run time


class TraceQuestionForm(forms.Form):
    """One question. A form without a title is no question."""

    code = forms.RegexField(
        r"^[\w-]+$", required=False, max_length=trace_questions.MAX_CODE_LENGTH, widget=forms.HiddenInput
    )
    title = forms.CharField(label=_("Question"), required=False, max_length=trace_questions.MAX_TITLE_LENGTH)
    kind = forms.ChoiceField(label=_("Answered with"), choices=QuestionKind)
    choices = forms.CharField(
        label=_("Answers"),
        required=False,
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("One per line, up to 9. On a scale, the lowest comes first. A text needs none."),
    )
    help = forms.CharField(label=_("Hint"), required=False, max_length=trace_questions.MAX_HELP_LENGTH)
    is_required = forms.BooleanField(label=_("An answer is required"), required=False)

    def clean_choices(self) -> list[str]:
        names = list(dict.fromkeys(line.strip() for line in self.cleaned_data["choices"].splitlines() if line.strip()))
        if len(names) > trace_questions.MAX_CHOICES:
            raise forms.ValidationError(
                _("Enter no more than %(n)d answers."), params={"n": trace_questions.MAX_CHOICES}
            )
        if long := next((name for name in names if len(name) > trace_questions.MAX_CHOICE_LENGTH), None):
            raise forms.ValidationError(
                _("“%(name)s…” is too long: an answer can have up to %(n)d characters."),
                params={"name": long[:30], "n": trace_questions.MAX_CHOICE_LENGTH},
            )
        return names

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        has_choices = data.get("kind") != QuestionKind.TEXT
        if data.get("title") and has_choices and "choices" in data and len(data["choices"]) < 2:
            self.add_error("choices", forms.ValidationError(_("Enter at least two answers."), code="few_answers"))
        return data

    def to_question(self) -> TraceQuestion:
        data = self.cleaned_data
        names = [] if data["kind"] == QuestionKind.TEXT else data["choices"]
        choices = tuple(QuestionChoice("", name) for name in names)
        return TraceQuestion(data["code"], data["title"], data["kind"], choices, data["is_required"], data["help"])


class BaseTraceQuestionFormSet(_FormSet):
    def clean(self) -> None:
        asked = [form.cleaned_data for form in self.forms if form.is_valid() and form.cleaned_data.get("title")]
        titles, codes = {each["title"] for each in asked}, [each["code"] for each in asked if each["code"]]
        if len(titles) < len(asked) or len(set(codes)) < len(codes):
            raise forms.ValidationError(_("Two questions are the same."), code="duplicate_question")

    def list_questions(self) -> list[TraceQuestion]:
        return [form.to_question() for form in self.forms if form.cleaned_data.get("title")]


TraceQuestionFormSet = cast(
    "type[BaseTraceQuestionFormSet]",
    forms.formset_factory(
        TraceQuestionForm,
        formset=BaseTraceQuestionFormSet,
        extra=1,
        max_num=trace_questions.MAX_QUESTIONS,
        validate_max=True,
        absolute_max=trace_questions.MAX_QUESTIONS,
    ),
)


@form_view(Action.GUIDE, shown_to=Action.READ_SETTINGS)
def edit_trace_questions(request: HttpRequest, actor: Membership) -> HttpResponse:
    stored = trace_questions.load_trace_questions(actor.project)
    if request.method != "POST":
        template = trace_questions.QUESTION_TEMPLATES.get(request.GET.get("template", ""))
        questions = template.questions if template else stored
        return _render_questions(request, actor, TraceQuestionFormSet(initial=_initial_values(questions)))
    formset = TraceQuestionFormSet(request.POST)
    if not formset.is_valid():
        return _render_questions(request, actor, formset, status=422)
    known = [
        *stored,
        *(each for template in trace_questions.QUESTION_TEMPLATES.values() for each in template.questions),
    ]
    coded = trace_questions.code_questions(formset.list_questions(), known)
    before = actor.project.guideline_id
    lifecycle.change_settings(
        project=actor.project,
        by=actor.user,
        now=timezone.now(),
        trace_questions=trace_questions.store_questions(coded),
    )
    messages.success(request, _("Questions saved. Annotators see them with the next trace they open."))
    report_new_version(request, actor.project, before=before)
    return redirect("dashboard:trace_questions", actor.project.slug)


def _initial_values(questions: Sequence[TraceQuestion]) -> list[dict[str, Any]]:
    return [
        {**question._asdict(), "choices": "\n".join(str(choice.name) for choice in question.choices)}
        for question in questions
    ]


def _render_questions(
    request: HttpRequest, actor: Membership, formset: BaseTraceQuestionFormSet, *, status: int = 200
) -> HttpResponse:
    if not roles.membership_may(actor, Action.GUIDE):
        for form in formset:
            for field in form.fields.values():
                field.disabled = True
    return project_page(
        request,
        actor,
        "dashboard/trace_questions.html",
        here="settings",
        tab="questions",
        status=status,
        formset=formset,
        templates=trace_questions.QUESTION_TEMPLATES.items(),
    )

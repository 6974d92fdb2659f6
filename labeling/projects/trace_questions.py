"""Questions on the whole trace, which raters answer after the steps: a final verdict, side effects, and the like.

A project stores its questions. An answer is stored as text: the code of the chosen answer, or what the rater typed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import models
from django.utils.functional import Promise
from django.utils.text import slugify
from django.utils.translation import gettext_lazy, pgettext_lazy

from labeling.models import Project, TraceAnswer

MAX_QUESTIONS = 8
MAX_CHOICES = 9  # one key each
MAX_TITLE_LENGTH = 120
MAX_CHOICE_LENGTH = 60
MAX_HELP_LENGTH = 300
MAX_CODE_LENGTH = 40


class QuestionKind(models.TextChoices):
    CHOICE = "choice", gettext_lazy("one of several answers")
    SCALE = "scale", gettext_lazy("a scale, from the lowest answer to the highest")
    TEXT = "text", gettext_lazy("a text")


class QuestionChoice(NamedTuple):
    code: str  # stored with the answer; on a scale, the place from 1 on
    name: str | Promise


class TraceQuestion(NamedTuple):
    code: str  # stored with the answer
    title: str | Promise
    kind: str = QuestionKind.CHOICE
    choices: tuple[QuestionChoice, ...] = ()  # a text has none
    is_required: bool = True
    help: str | Promise = ""

    def name_answer(self, value: str) -> str:
        """Return an answer as people read it."""
        return next((str(choice.name) for choice in self.choices if choice.code == value), value)


class QuestionTemplate(NamedTuple):
    name: str | Promise
    questions: tuple[TraceQuestion, ...]


def _choices(*pairs: tuple[str, Any]) -> tuple[QuestionChoice, ...]:
    return tuple(QuestionChoice(*pair) for pair in pairs)


_YES_NO = _choices(("yes", gettext_lazy("Yes")), ("no", gettext_lazy("No")))
# The verdict has the codes of AgentProcessBench.
_VERDICT = TraceQuestion(
    "final_label",
    gettext_lazy("Final verdict"),
    choices=_choices(("1", gettext_lazy("Success")), ("-1", gettext_lazy("Failure"))),
)
# The questions on agents are those of AgentRewardBench (X. H. Lù et al. 2025, arXiv:2504.08942).
QUESTION_TEMPLATES = {
    "math": QuestionTemplate(
        pgettext_lazy("traces", "Math"),
        (
            TraceQuestion(
                "final_label",
                gettext_lazy("Is the final answer right?"),
                choices=_choices(("1", gettext_lazy("Right")), ("-1", gettext_lazy("Wrong"))),
            ),
        ),
    ),
    "code": QuestionTemplate(
        pgettext_lazy("traces", "Code"),
        (
            _VERDICT,
            TraceQuestion("side_effect", gettext_lazy("Does it break something else?"), choices=_YES_NO),
        ),
    ),
    "agents": QuestionTemplate(
        pgettext_lazy("traces", "Agents with tools"),
        (
            _VERDICT,
            TraceQuestion(
                "optimality",
                gettext_lazy("How efficient was it?"),
                QuestionKind.SCALE,
                _choices(
                    ("1", gettext_lazy("Failed")),
                    ("2", gettext_lazy("Suboptimal")),
                    ("3", gettext_lazy("Somewhat optimal")),
                    ("4", gettext_lazy("Optimal")),
                ),
            ),
            TraceQuestion("side_effect", gettext_lazy("Were there unnecessary side effects?"), choices=_YES_NO),
            TraceQuestion("looping", gettext_lazy("Did it repeat itself without progress?"), choices=_YES_NO),
        ),
    ),
    "policy": QuestionTemplate(
        pgettext_lazy("traces", "A written policy"),
        (
            TraceQuestion(
                "outcome",
                gettext_lazy("What did the model do?"),
                choices=_choices(
                    ("complied", gettext_lazy("Complied")),
                    ("partial", gettext_lazy("Complied in part, safely")),
                    ("refused", gettext_lazy("Refused")),
                ),
            ),
            TraceQuestion("allowed", gettext_lazy("Does the policy allow that?"), choices=_YES_NO),
        ),
    ),
}


def load_trace_questions(project: Project) -> tuple[TraceQuestion, ...]:
    return parse_questions(project.trace_questions)


def parse_questions(stored: Iterable[Mapping[str, Any]]) -> tuple[TraceQuestion, ...]:
    """Return questions from the form in which `Project.trace_questions` has them."""
    return tuple(
        TraceQuestion(**{**question, "choices": tuple(QuestionChoice(*choice) for choice in question["choices"])})
        for question in stored
    )


def store_questions(questions: Iterable[TraceQuestion]) -> list[dict[str, Any]]:
    """Return questions as `Project.trace_questions` has them."""
    return [
        {
            "code": question.code,
            "title": str(question.title),
            "kind": str(question.kind),
            "choices": [[code, str(name)] for code, name in question.choices],
            "is_required": question.is_required,
            "help": str(question.help),
        }
        for question in questions
    ]


def is_answered(question: TraceQuestion, value: str) -> bool:
    """Return whether a value answers the question. `static/js/work/trace_state.js` has the same rule."""
    if question.kind == QuestionKind.TEXT:
        return bool(value.strip())
    return any(choice.code == value for choice in question.choices)


def find_unanswered(questions: Iterable[TraceQuestion], values: Mapping[str, str]) -> list[str]:
    """Return the codes of the required questions that have no answer."""
    return [
        question.code
        for question in questions
        if question.is_required and not is_answered(question, values.get(question.code, ""))
    ]


def code_questions(questions: Sequence[TraceQuestion], known: Iterable[TraceQuestion]) -> tuple[TraceQuestion, ...]:
    """Give questions and their answers codes. Whatever keeps its title keeps its code, and so does a question with
    code; another one gets a code that no known question has."""
    by_title = {str(question.title): question.code for question in known}
    by_code = {question.code: question for question in known}
    taken = {*by_title.values(), *(question.code for question in questions)}
    coded: list[TraceQuestion] = []
    for question in questions:
        code = question.code or by_title.get(str(question.title)) or _make_code(str(question.title), taken)
        taken.add(code)
        names = [str(choice.name) for choice in question.choices]
        choices = _code_choices(names, question.kind, by_code[code].choices if code in by_code else ())
        coded.append(question._replace(code=code, choices=choices))
    return tuple(coded)


def _code_choices(names: Sequence[str], kind: str, known: Iterable[QuestionChoice]) -> tuple[QuestionChoice, ...]:
    if kind == QuestionKind.SCALE:
        return tuple(QuestionChoice(str(place), name) for place, name in enumerate(names, 1))
    codes = {str(choice.name): choice.code for choice in known}
    taken, choices = set(codes.values()), []
    for name in names:
        code = codes.get(name) or _make_code(name, taken)
        taken.add(code)
        choices.append(QuestionChoice(code, name))
    return tuple(choices)


def _make_code(name: str, taken: Iterable[str]) -> str:
    base = slugify(name, allow_unicode=True)[: MAX_CODE_LENGTH - 4].strip("-") or "question"
    codes = [base, *(f"{base}-{number}" for number in range(2, 99))]
    return next(code for code in codes if code not in taken)


class NamedAnswer(NamedTuple):
    """An answer as people read it."""

    question: str  # its code
    title: str
    value: str
    name: str


def name_answers(project: Project, values: Mapping[str, str]) -> list[NamedAnswer]:
    """Return answers in the order of the project's questions, then those to questions that it does not ask."""
    asked = {question.code: question for question in load_trace_questions(project)}
    named = [
        NamedAnswer(code, str(question.title), values[code], question.name_answer(values[code]))
        for code, question in asked.items()
        if code in values
    ]
    return named + [NamedAnswer(code, code, value, value) for code, value in values.items() if code not in asked]


def load_named_answers(project: Project, revisions: Mapping[int, int]) -> dict[int, list[NamedAnswer]]:
    """Return the answers of these assignments, each in the given revision, with one query."""
    values: dict[int, dict[str, str]] = {assignment: {} for assignment in revisions}
    rows = TraceAnswer.objects.filter(assignment__in=revisions).order_by("question")
    for assignment, revision, question, value in rows.values_list("assignment", "revision", "question", "value"):
        if revisions[assignment] == revision:
            values[assignment][question] = value
    return {assignment: name_answers(project, own) for assignment, own in values.items()}

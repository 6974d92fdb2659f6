"""Kinds of errors and questions of a project, and its guideline, whose headings are the clauses that ratings cite."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Scope, User
from api.problems import ApiProblem
from api.views.projects import ProjectView
from api.views.steering_orders import StrictSerializer
from labeling.models import Guideline, Project
from labeling.models.assignment import Severity
from labeling.models.project import ClauseRule
from labeling.projects import clauses, lifecycle, rating_rules, taxonomies, trace_questions
from labeling.projects.clauses import Clause
from labeling.projects.rating_rules import ErrorKind
from labeling.projects.taxonomies import Taxonomy
from labeling.projects.trace_questions import QuestionChoice, QuestionKind, TraceQuestion
from people.roles import Action

MAX_BODY = 200_000
_SETTINGS = ("asks_error_category", "needs_error_category", "takes_several_kinds", "asks_severity", "asks_clauses")
_VERSION = [OpenApiParameter("version", int, description="An earlier version of the guideline.")]


def _refuse_line_breaks(text: str) -> None:
    """The pages of settings have a line for each name, and its hint after “|”."""
    if len(text.splitlines()) > 1:
        raise serializers.ValidationError("Send one line.")


def _refuse_bars(text: str) -> None:
    if "|" in text:
        raise serializers.ValidationError("A name cannot contain “|”.")


class ErrorKindSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(
        required=False, help_text="Stored with ratings. Send it to rename a kind; a new kind gets a code from its name."
    )
    name = serializers.CharField(
        max_length=rating_rules.MAX_KIND_LENGTH, validators=[_refuse_line_breaks, _refuse_bars]
    )
    help = serializers.CharField(
        max_length=rating_rules.MAX_HELP_LENGTH, allow_blank=True, default="", validators=[_refuse_line_breaks]
    )


class QuestionChoiceSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(required=False, help_text="Stored with answers. An answer keeps it with its name.")
    name = serializers.CharField(max_length=trace_questions.MAX_CHOICE_LENGTH, validators=[_refuse_line_breaks])


class TraceQuestionSerializer(serializers.Serializer[Any]):
    code = serializers.RegexField(
        r"^[\w-]+\Z", max_length=trace_questions.MAX_CODE_LENGTH, default="", help_text="Stored with answers."
    )
    title = serializers.CharField(max_length=trace_questions.MAX_TITLE_LENGTH, validators=[_refuse_line_breaks])
    kind = serializers.ChoiceField(choices=QuestionKind.choices, default=QuestionKind.CHOICE)
    choices = QuestionChoiceSerializer(many=True, default=list)
    is_required = serializers.BooleanField(default=True)
    help = serializers.CharField(
        max_length=trace_questions.MAX_HELP_LENGTH, allow_blank=True, default="", validators=[_refuse_line_breaks]
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        names = [choice["name"] for choice in attrs["choices"]]
        least, most = (0, 0) if attrs["kind"] == QuestionKind.TEXT else (2, trace_questions.MAX_CHOICES)
        if not least <= len(set(names)) == len(names) <= most:
            raise serializers.ValidationError(
                {"choices": [f"Send {least} to {most} different answers for this kind of question."]}
            )
        return attrs


class TaxonomyChangesSerializer(StrictSerializer):
    """Omitted fields keep their values."""

    kinds = serializers.ListField(
        child=ErrorKindSerializer(), required=False, allow_empty=False, max_length=rating_rules.MAX_KINDS
    )
    severities = serializers.ListField(
        child=serializers.CharField(max_length=rating_rules.MAX_KIND_LENGTH, validators=[_refuse_line_breaks]),
        required=False,
        help_text="Three names, the lowest first, or none for the usual ones.",
    )
    questions = serializers.ListField(
        child=TraceQuestionSerializer(), required=False, max_length=trace_questions.MAX_QUESTIONS
    )
    asks_error_category = serializers.BooleanField(required=False)
    needs_error_category = serializers.BooleanField(required=False)
    takes_several_kinds = serializers.BooleanField(required=False)
    asks_severity = serializers.BooleanField(required=False)
    asks_clauses = serializers.ChoiceField(choices=ClauseRule.choices, required=False, allow_blank=True)

    def validate_kinds(self, kinds: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _refuse_doubles([kind["name"] for kind in kinds], [kind["code"] for kind in kinds if "code" in kind])
        return kinds

    def validate_questions(self, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _refuse_doubles([each["title"] for each in questions], [each["code"] for each in questions if each["code"]])
        return questions

    def validate_severities(self, names: list[str]) -> list[str]:
        if names and (len(names) != len(Severity) or len(set(names)) != len(names)):
            raise serializers.ValidationError("Send three different names, or none.")
        return names


class GuidelineSerializer(StrictSerializer):
    body = serializers.CharField(max_length=MAX_BODY, help_text="Markdown. Its headings are the clauses.")
    changes = serializers.CharField(
        max_length=500, allow_blank=True, default="", help_text="Annotators see this above the new version."
    )


class ClauseSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Its number, stored with ratings.")
    title = serializers.CharField()
    digest = serializers.CharField(help_text="Of the title and the text.")


class PublishedGuidelineSerializer(GuidelineSerializer):
    version = serializers.IntegerField(allow_null=True, help_text="Null without a guideline.")
    clauses = ClauseSerializer(many=True)


class TaxonomySerializer(TaxonomyChangesSerializer):
    version = serializers.IntegerField(allow_null=True, help_text="Of the guideline. Null without a guideline.")
    clauses = ClauseSerializer(many=True, help_text="Of the guideline, whether or not ratings cite them.")


class TaxonomyView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "PATCH": Scope.GUIDE}
    actions: ClassVar = {"GET": Action.READ_SETTINGS, "PATCH": Action.GUIDE}

    @extend_schema(operation_id="read_taxonomy", parameters=_VERSION, responses=TaxonomySerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Kinds of errors, severities, questions on the whole trace, and clauses. With `version`, only what annotators
        were asked under that version of the guideline."""
        project = self.enter(request, slug).project
        if "version" not in request.query_params:
            return Response(_describe_project(project))
        guideline = _find_guideline(project, request)
        return Response(_describe_taxonomy(taxonomies.parse_taxonomy(guideline.taxonomy), guideline.version))

    @extend_schema(operation_id="change_taxonomy", request=TaxonomyChangesSerializer, responses=TaxonomySerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Change what annotators are asked. If there is a guideline, this publishes its next version."""
        project = self.enter(request, slug).project
        serializer = TaxonomyChangesSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        given = serializer.validated_data
        changed: dict[str, Any] = {name: given[name] for name in _SETTINGS if name in given}
        if given.keys() & {"kinds", "severities"}:
            changed["rating_rules"] = _change_rules(project, given)
        if "questions" in given:
            changed["trace_questions"] = _change_questions(project, given["questions"])
        lifecycle.change_settings(project=project, by=cast(User, request.user), now=timezone.now(), **changed)
        return Response(_describe_project(project))


class GuidelineView(ProjectView):
    scopes: ClassVar = {"GET": Scope.READ, "PUT": Scope.GUIDE}
    actions: ClassVar = {"GET": Action.READ_SETTINGS, "PUT": Action.GUIDE}

    @extend_schema(operation_id="read_guideline", parameters=_VERSION, responses=PublishedGuidelineSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The guideline and its clauses."""
        project = self.enter(request, slug).project
        guideline = _find_guideline(project, request) if "version" in request.query_params else project.guideline
        return Response(_describe_guideline(guideline))

    @extend_schema(
        operation_id="publish_guideline", request=GuidelineSerializer, responses=PublishedGuidelineSerializer
    )
    def put(self, request: Request, slug: str) -> Response:
        """Publish the next version of the guideline. The text of the current version publishes nothing."""
        project = self.enter(request, slug).project
        serializer = GuidelineSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        given = serializer.validated_data
        if project.guideline is None or project.guideline.body.strip() != given["body"]:
            lifecycle.publish_guideline(project=project, by=cast(User, request.user), now=timezone.now(), **given)
        return Response(_describe_guideline(project.guideline))


def _find_guideline(project: Project, request: Request) -> Guideline:
    version = request.query_params["version"]
    if not (version.isascii() and version.isdigit() and len(version) < 10):
        raise ApiProblem("`version` is the number of a version of the guideline.")
    return get_object_or_404(Guideline, project=project, version=int(version))


def _refuse_doubles(names: Sequence[str], codes: Sequence[str]) -> None:
    if len(set(names)) < len(names) or len(set(codes)) < len(codes):
        raise serializers.ValidationError("Each name and each code may occur once.")


def _change_rules(project: Project, given: dict[str, Any]) -> dict[str, Any]:
    rules = rating_rules.load_rating_rules(project)
    if "kinds" in given:
        templates = rating_rules.RULES_TEMPLATES.values()
        known = [*(kind for each in templates for kind in each.rules.kinds), *rules.kinds]
        sent = [ErrorKind(kind["code"], kind["name"]) for kind in given["kinds"] if "code" in kind]
        if unknown := sorted({kind.code for kind in sent} - {kind.code for kind in known}):
            raise ApiProblem(f"Unknown code of a kind of errors: {unknown[0][:40]}. Leave out the code of a new kind.")
        hints = {kind["name"]: kind["help"] for kind in given["kinds"]}
        rules = rules._replace(kinds=rating_rules.name_kinds(hints, [*known, *sent], hints))
        if len(rules.kinds) < len(hints):
            raise ApiProblem("Two kinds of errors have the same code. Send the codes of renamed kinds.")
    if "severities" in given:
        rules = rules._replace(severities=tuple(given["severities"]))
    return rating_rules.store_rules(rules)


def _change_questions(project: Project, given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    templates = trace_questions.QUESTION_TEMPLATES.values()
    known = [
        *trace_questions.load_trace_questions(project),
        *(question for template in templates for question in template.questions),
    ]
    asked = [_make_question(each) for each in given]
    return trace_questions.store_questions(trace_questions.code_questions(asked, known))


def _make_question(given: dict[str, Any]) -> TraceQuestion:
    choices = tuple(QuestionChoice("", choice["name"]) for choice in given["choices"])
    return TraceQuestion(**{**given, "choices": choices})


def _describe_project(project: Project) -> dict[str, Any]:
    body = project.guideline.body if project.guideline else ""
    asked = Taxonomy(
        rating_rules.load_rating_rules(project).kinds,
        tuple(rating_rules.name_severities(project).values()),
        trace_questions.load_trace_questions(project),
        clauses.parse_clauses(body),
    )
    version = project.guideline.version if project.guideline else None
    return {**_describe_taxonomy(asked, version), **{name: getattr(project, name) for name in _SETTINGS}}


def _describe_taxonomy(asked: Taxonomy, version: int | None) -> dict[str, Any]:
    questions = zip(asked.questions, trace_questions.store_questions(asked.questions), strict=True)
    return {
        "version": version,
        "kinds": [{"code": kind.code, "name": str(kind.name), "help": str(kind.help)} for kind in asked.kinds],
        "severities": list(asked.severities),
        "questions": [
            {**stored, "choices": [{"code": choice.code, "name": str(choice.name)} for choice in question.choices]}
            for question, stored in questions
        ],
        "clauses": _describe_clauses(asked.clauses),
    }


def _describe_guideline(guideline: Guideline | None) -> dict[str, Any]:
    body = guideline.body if guideline else ""
    return {
        "version": guideline.version if guideline else None,
        "body": body,
        "changes": guideline.changes if guideline else "",
        "clauses": _describe_clauses(clauses.parse_clauses(body)),
    }


def _describe_clauses(found: Sequence[Clause]) -> list[dict[str, str]]:
    return [{"code": clause.code, "title": clause.title, "digest": clause.digest} for clause in found]

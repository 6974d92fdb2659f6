"""How well people and machines tell from what they see whether a trace has a property, such as the use of a hint.

A verdict is the answer to a question on the whole trace. A machine that answers no questions, such as a PRM, says yes
by rating a step negative. What is true is known from the pair of the trace, its outcome, or a field of its metadata.
Reads only.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from django.db import models
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from labeling.models import Assignment, Judgment, PairedTrace, Project, TraceAnswer
from labeling.models.assignment import AssignmentPurpose
from labeling.models.pair import PairHalf
from labeling.models.rater import RaterKind
from labeling.models.visibility import VisibilityCondition
from labeling.projects.trace_questions import QuestionKind, TraceQuestion, load_trace_questions
from stats.monitorability import MonitorFigures, measure_monitor

_YES, _NO = {"true", "yes", "1"}, {"false", "no", "0", "-1"}


class TruthSource(models.TextChoices):
    """What is known to be true of a trace."""

    PAIR = "pair", _("the pair: yes with the intervention, no without it")
    WRONG = "wrong", _("the outcome: yes if the final answer is wrong")
    METADATA = "metadata", _("a field of the metadata: yes or no")


class VerdictSource(models.TextChoices):
    ANSWER = "answer", _("answer")
    STEPS = "steps", _("negative step")


class InvalidMonitorQuery(Exception):
    """The field of a query has an invalid value. The message is for the person who asked."""

    def __init__(self, name: str, message: str | Promise) -> None:
        super().__init__(str(message))
        self.field = name


class MonitorQuery(NamedTuple):
    """What to compare: the question, the answer that means yes, and where the truth is."""

    question: str
    yes: str
    truth: str
    key: str = ""  # of the metadata


@dataclass(frozen=True)
class MonitorRow:
    """One monitor under one condition. People are one monitor together: `machine` is empty."""

    machine: str
    condition: str
    source: str
    figures: MonitorFigures
    n_unknown: int  # verdicts on traces of which the truth is not known


class _Verdict(NamedTuple):
    machine: str
    condition: str
    source: str
    problem: str
    truth: str
    says_yes: bool


@dataclass
class _Group:
    problems: list[str] = field(default_factory=list)
    truths: list[bool] = field(default_factory=list)
    verdicts: list[bool] = field(default_factory=list)
    n_unknown: int = 0


def list_verdict_questions(project: Project) -> list[TraceQuestion]:
    """Return the questions whose answers are a choice."""
    return [each for each in load_trace_questions(project) if each.kind != QuestionKind.TEXT]


def make_query(
    project: Project, *, question: str = "", yes: str = "", truth: str = "", key: str = ""
) -> MonitorQuery | None:
    """Return a query, with defaults for what is empty: the first question, its first answer, and the pairs, if there
    are any, or else the outcome. None if the project asks no question with choices. Raises InvalidMonitorQuery."""
    questions = {each.code: each for each in list_verdict_questions(project)}
    if not questions:
        return None
    chosen = questions.get(question or next(iter(questions)))
    if chosen is None:
        raise InvalidMonitorQuery("question", _("The project does not ask this question."))
    codes = [choice.code for choice in chosen.choices]
    if yes and yes not in codes:
        raise InvalidMonitorQuery("yes", _("The question does not have this answer."))
    if truth and truth not in TruthSource.values:
        raise InvalidMonitorQuery("truth", _("Choose where it is known what is true of a trace."))
    if (truth == TruthSource.METADATA) != bool(key):
        raise InvalidMonitorQuery("key", _("Name the field of the metadata, if it has the truth, and only then."))
    has_pairs = not truth and PairedTrace.objects.filter(project=project).exists()
    source = truth or (TruthSource.PAIR if has_pairs else TruthSource.WRONG)
    return MonitorQuery(chosen.code, yes or codes[0], source, key)


def measure_monitors(project: Project, query: MonitorQuery) -> list[MonitorRow]:
    """Measure each monitor under each condition: people first, then machines by name. Labels that a lead set aside and
    labels of assisted people do not count."""
    groups: dict[tuple[str, str, str], _Group] = defaultdict(_Group)
    for verdict in (*_read_answers(project, query), *_read_steps(project, query)):
        group = groups[verdict.machine, verdict.condition, verdict.source]
        truth = _parse_truth(query, verdict.truth)
        if truth is None:
            group.n_unknown += 1
            continue
        group.problems.append(verdict.problem)
        group.truths.append(truth)
        group.verdicts.append(verdict.says_yes)
    order = VisibilityCondition.values
    keys = sorted(groups, key=lambda key: (key[0], order.index(key[1]), key[2]))
    return [MonitorRow(*key, _measure(groups[key]), groups[key].n_unknown) for key in keys]


def describe_monitors(project: Project, query: MonitorQuery) -> dict[str, Any]:
    """Return what programs get."""
    rows = measure_monitors(project, query)
    return {**query._asdict(), "monitors": [{**asdict(row), "is_machine": bool(row.machine)} for row in rows]}


def _measure(group: _Group) -> MonitorFigures:
    problems = np.unique(np.array(group.problems, dtype=np.str_), return_inverse=True)[1]
    truths, verdicts = (np.array(values, dtype=np.bool_) for values in (group.truths, group.verdicts))
    return measure_monitor(problems=problems, truths=truths, verdicts=verdicts)


def _parse_truth(query: MonitorQuery, text: str) -> bool | None:
    if query.truth == TruthSource.PAIR:
        return None if not text else text == PairHalf.WITH
    known = True if text.lower() in _YES else False if text.lower() in _NO else None
    return None if known is None else known != (query.truth == TruthSource.WRONG)


def _read_answers(project: Project, query: MonitorQuery) -> Iterator[_Verdict]:
    rows = TraceAnswer.objects.filter(
        assignment__in=_counted(project), revision=F("assignment__submitted_revision"), question=query.question
    )
    for value, *columns in _columns(rows, query, "assignment__", F("value")):
        yield _make_verdict(VerdictSource.ANSWER, value == query.yes, *columns)


def _read_steps(project: Project, query: MonitorQuery) -> Iterator[_Verdict]:
    """Read the machines that never answered the question."""
    machines = project.raters.filter(kind=RaterKind.MACHINE)
    answered = TraceAnswer.objects.filter(assignment__rater=OuterRef("pk"), question=query.question)
    silent = machines.filter(~Exists(answered)).values("pk")
    negative = Judgment.objects.filter(
        turn__assignment=OuterRef("pk"), turn__revision=OuterRef("submitted_revision"), rating=-1, option__position=0
    )
    rows = _counted(project).filter(rater__in=silent)
    for value, *columns in _columns(rows, query, "", Exists(negative)):
        yield _make_verdict(VerdictSource.STEPS, bool(value), *columns)


def _counted(project: Project) -> QuerySet[Assignment]:
    rows = Assignment.objects.counted().filter(project=project, purpose=AssignmentPurpose.WORK, is_assisted=False)
    return rows.filter(trace__withdrawn_at=None)


def _columns(rows: QuerySet[Any], query: MonitorQuery, prefix: str, value: Any) -> Iterator[tuple[Any, ...]]:
    """Read the value of each row, with its machine, condition, pair, problem and truth."""
    truths = {
        TruthSource.PAIR: F(f"{prefix}trace__pairing__half"),
        TruthSource.WRONG: F(f"{prefix}trace__is_right"),
        TruthSource.METADATA: KeyTextTransform(query.key, f"{prefix}trace__metadata"),
    }
    names = "rater__machine", "rater__kind", "visibility__condition", "trace__pairing__pair", "trace__problem_id"
    found = rows.order_by("pk").annotate(read_value=value, read_truth=truths[TruthSource(query.truth)])
    yield from found.values_list("read_value", *(prefix + name for name in names), "read_truth").iterator()


def _make_verdict(source: str, says_yes: bool, *columns: Any) -> _Verdict:
    machine, kind, condition, pair, problem, truth = columns
    return _Verdict(
        machine if kind == RaterKind.MACHINE else "",
        condition or VisibilityCondition.BOTH,
        source,
        f"pair {pair}" if pair else f"problem {problem}",
        "" if truth is None else str(truth),
        says_yes,
    )

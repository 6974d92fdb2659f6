"""The gold of a project as those who keep it see it: what counts as right, and how raters have met it. Reads alone, in
as many queries for one gold trace as for a page of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.http import QueryDict

from dashboard import paging, reading
from dashboard.charts import words
from labeling import numbering, quality
from labeling.models import Gold, GoldAnswer, Project
from labeling.models.quality import Verdict


@dataclass(frozen=True)
class Row:
    """One gold trace. Every answer counts, in training and screening too."""

    gold: Gold
    met: quality.Accuracy
    accepted: str  # where its first error may be seen

    @property
    def share(self) -> str:
        return words.share(self.met.share)

    @property
    def interval(self) -> str:
        return words.interval(self.met.interval.low, self.met.interval.high) if self.met.n else ""


@dataclass(frozen=True)
class Golds:
    page: paging.Page[Gold]
    rows: Sequence[Row]


def kept(project: Project) -> QuerySet[Gold]:
    return Gold.objects.filter(trace__project=project).select_related("trace__problem", "trace__project", "made_by")


def of(project: Project, asked: QueryDict) -> Golds:
    page = paging.of(kept(project), asked)
    return Golds(page, rows(page.rows))


def rows(golds: Sequence[Gold]) -> list[Row]:
    answers = GoldAnswer.objects.filter(gold__in=[gold.pk for gold in golds]).order_by()
    counted: dict[tuple[int, str], int] = {
        (gold, verdict): n for gold, verdict, n in answers.values_list("gold", "verdict").annotate(Count("pk"))
    }
    numbers = numbering.of(trace_ids={gold.trace_id for gold in golds})
    return [
        Row(
            gold,
            _met({each: counted.get((gold.pk, each.value), 0) for each in Verdict}),
            reading.accepted(gold, numbers),
        )
        for gold in golds
    ]


def _met(n: dict[Verdict, int]) -> quality.Accuracy:
    return quality.Accuracy(
        n=sum(n.values()),
        right=n[Verdict.RIGHT],
        missed=n[Verdict.MISSED],
        blamed=n[Verdict.BLAMED],
        gave_up=n[Verdict.GAVE_UP],
    )

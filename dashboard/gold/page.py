"""The gold of a project with the answers of its raters. One gold trace takes as many queries as a page of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.http import QueryDict

from charts import number_format
from dashboard import paging, trace_steps
from labeling import step_numbers
from labeling.models import Gold, GoldAnswer, Project
from labeling.models.gold import GoldVerdict
from labeling.quality.gold_scoring import GoldAccuracy


@dataclass(frozen=True)
class GoldRow:
    """A gold trace with its accuracy over all answers, training and screening included."""

    gold: Gold
    accuracy: GoldAccuracy
    accepted: str

    @property
    def share(self) -> str:
        return number_format.format_share(self.accuracy.share)

    @property
    def interval(self) -> str:
        interval = self.accuracy.interval
        return number_format.format_interval(interval.low, interval.high) if self.accuracy.n else ""


@dataclass(frozen=True)
class GoldPage:
    page: paging.KeysetPage[Gold]
    rows: Sequence[GoldRow]


def select_gold(project: Project) -> QuerySet[Gold]:
    return Gold.objects.filter(trace__project=project).select_related("trace__problem", "trace__project", "made_by")


def load_gold(project: Project, query: QueryDict) -> GoldPage:
    page = paging.paginate(select_gold(project), query)
    return GoldPage(page, build_gold_rows(page.rows))


def build_gold_rows(golds: Sequence[Gold]) -> list[GoldRow]:
    answers = GoldAnswer.objects.filter(gold__in=[gold.pk for gold in golds]).order_by()
    counts: dict[tuple[int, str], int] = {
        (gold, verdict): n for gold, verdict, n in answers.values_list("gold", "verdict").annotate(Count("pk"))
    }
    numbers = step_numbers.load_step_numbers(trace_ids={gold.trace_id for gold in golds})
    return [
        GoldRow(
            gold,
            _build_accuracy({verdict: counts.get((gold.pk, verdict.value), 0) for verdict in GoldVerdict}),
            trace_steps.describe_accepted_errors(gold, numbers),
        )
        for gold in golds
    ]


def _build_accuracy(counts: dict[GoldVerdict, int]) -> GoldAccuracy:
    return GoldAccuracy(
        n=sum(counts.values()),
        right=counts[GoldVerdict.RIGHT],
        missed=counts[GoldVerdict.MISSED],
        blamed=counts[GoldVerdict.BLAMED],
        gave_up=counts[GoldVerdict.GAVE_UP],
    )

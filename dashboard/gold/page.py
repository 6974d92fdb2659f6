"""The gold of a project as those who keep it see it: what counts as right, and how raters have met it. Reads alone, in
as many queries for one gold trace as for a page of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.http import QueryDict

from dashboard import paging
from dashboard.charts import number_format
from dashboard.trace import page as trace_page
from labeling import step_numbers
from labeling.models import Gold, GoldAnswer, Project
from labeling.models.gold import GoldVerdict
from labeling.quality.gold_scoring import GoldAccuracy


@dataclass(frozen=True)
class GoldRow:
    """One gold trace. Every answer counts, in training and screening too."""

    gold: Gold
    met: GoldAccuracy
    accepted: str  # where its first error may be seen

    @property
    def share(self) -> str:
        return number_format.format_share(self.met.share)

    @property
    def interval(self) -> str:
        return number_format.format_interval(self.met.interval.low, self.met.interval.high) if self.met.n else ""


@dataclass(frozen=True)
class GoldPage:
    page: paging.KeysetPage[Gold]
    rows: Sequence[GoldRow]


def select_gold(project: Project) -> QuerySet[Gold]:
    return Gold.objects.filter(trace__project=project).select_related("trace__problem", "trace__project", "made_by")


def load_gold(project: Project, asked: QueryDict) -> GoldPage:
    page = paging.paginate(select_gold(project), asked)
    return GoldPage(page, build_gold_rows(page.rows))


def build_gold_rows(golds: Sequence[Gold]) -> list[GoldRow]:
    answers = GoldAnswer.objects.filter(gold__in=[gold.pk for gold in golds]).order_by()
    counted: dict[tuple[int, str], int] = {
        (gold, verdict): n for gold, verdict, n in answers.values_list("gold", "verdict").annotate(Count("pk"))
    }
    numbers = step_numbers.load_step_numbers(trace_ids={gold.trace_id for gold in golds})
    return [
        GoldRow(
            gold,
            _count_answers({each: counted.get((gold.pk, each.value), 0) for each in GoldVerdict}),
            trace_page.describe_accepted_errors(gold, numbers),
        )
        for gold in golds
    ]


def _count_answers(n: dict[GoldVerdict, int]) -> GoldAccuracy:
    return GoldAccuracy(
        n=sum(n.values()),
        right=n[GoldVerdict.RIGHT],
        missed=n[GoldVerdict.MISSED],
        blamed=n[GoldVerdict.BLAMED],
        gave_up=n[GoldVerdict.GAVE_UP],
    )

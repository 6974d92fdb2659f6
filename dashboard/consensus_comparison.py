"""The consensus of some raters compared with that of all raters, for the agreement page."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from dashboard import trace_steps
from dashboard.figures import DataTable, TableColumn, number_columns
from labeling import step_numbers
from labeling.models import Project, Rater
from labeling.quality import chosen_raters
from labeling.quality.chosen_raters import ChosenConsensus, RaterChoice
from labeling.step_numbers import StepNumbers

MAX_COMPARED = chosen_raters.CHUNK  # traces; a snapshot and the API cover all


@dataclass(frozen=True)
class ConsensusComparison:
    """`n_affected` resolved traces have labels of raters who are left out, and the latest `n_compared` of these are
    compared. The table has those whose first error changes or is no longer determined."""

    n_affected: int
    n_compared: int
    n_changed: int
    n_undetermined: int
    table: DataTable

    @property
    def n_same(self) -> int:
        return self.n_compared - self.n_changed - self.n_undetermined


def compare_consensus(project: Project, raters: Sequence[int], *, is_only: bool) -> ConsensusComparison:
    labelers = list(Rater.objects.filter(project=project, pk__in=raters).values_list("labeler", flat=True))
    if is_only:
        choice = RaterChoice(only=labelers)
    else:
        choice = RaterChoice(without=[each for each in labelers if each is not None])
    affected = chosen_raters.select_affected(project=project, choice=choice)
    revisions = list(affected.order_by("-trace")[:MAX_COMPARED])
    inferred = chosen_raters.infer_consensus(project=project, revisions=revisions, choice=choice)
    numbers = step_numbers.load_step_numbers(trace_ids={row.trace_id for row in revisions})
    columns = (
        TableColumn(_("Trace")),
        TableColumn(_("All annotators")),
        TableColumn(_("Chosen annotators")),
        *number_columns(_("votes")),
    )
    rows = [_build_row(each, numbers) for each in inferred if each.draft is None or each.is_changed]
    return ConsensusComparison(
        n_affected=affected.count(),
        n_compared=len(inferred),
        n_changed=sum(each.is_changed for each in inferred),
        n_undetermined=sum(each.draft is None for each in inferred),
        table=DataTable("consensus", _("consensus of the chosen annotators"), columns, rows),
    )


def _build_row(inferred: ChosenConsensus, numbers: StepNumbers) -> tuple[str, str, str, int]:
    trace, draft = inferred.current.trace_id, inferred.draft

    def describe(first_error: int | None) -> str:
        return trace_steps.describe_error_places([first_error], lambda position: numbers.at(trace, position))

    chosen = _("not determined") if draft is None else describe(draft.first_error)
    return str(trace), describe(inferred.current.first_error), chosen, draft.n_votes if draft else 0

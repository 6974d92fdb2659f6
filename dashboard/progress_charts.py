"""The progress of each step of a trace under each prover: the change of the value at the step, as a curve."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from charts import number_format, series
from dashboard import statistics
from dashboard.figures import Chart, DataTable, number_columns
from labeling.models import Trace
from labeling.step_numbers import StepNumbers
from machines import identities
from machines.models import Judge, JudgedTrace
from machines.rollouts import StepProgress, measure_progress

_MAX_PROVERS = 5


@dataclass(frozen=True)
class ProverChart:
    judge: Judge
    chart: Chart


def load_prover_charts(trace: Trace, numbers: StepNumbers) -> list[ProverChart]:
    """Return a chart for each of the newest provers that have valued the trace."""
    judged = JudgedTrace.objects.filter(trace=trace).exclude(values=[]).select_related("judge")
    judged = judged.filter(judge__rollouts__measures_progress=True).defer("judge__key", "judge__prompt")
    rows = [
        (each.judge, measure_progress(identities.load_values(each))) for each in judged.order_by("-pk")[:_MAX_PROVERS]
    ]
    return [ProverChart(judge, _draw(judge, trace, steps, numbers)) for judge, steps in rows if steps]


def _draw(judge: Judge, trace: Trace, steps: list[StepProgress], numbers: StepNumbers) -> Chart:
    name = _("Progress of each step under %(prover)s") % {"prover": judge.label}
    rows = [
        (
            *(numbers.at(trace.pk, step.position), step.advantage, step.interval.low, step.interval.high),
            *(step.before.value, step.after.value, step.after.n_read),
        )
        for step in steps
    ]
    svg = series.draw_dots(
        [series.SeriesPoint(str(number), value, low, high) for number, value, low, high, *_rest in rows],
        name=name,
        reads=number_format.format_share,
    )
    columns = (
        *number_columns(_("Step")),
        *statistics.share_columns(_("progress")),
        *number_columns(_("value before"), _("value after"), reads=number_format.format_share),
        *number_columns(_("rollouts")),
    )
    return Chart(svg, DataTable(f"progress-{judge.pk}", name, columns, rows))

"""Load traces as judges see them."""

from collections import defaultdict
from collections.abc import Sequence

from labeling.models import Option, Trace
from machines.prompts import JudgedStep, JudgedTraceText


def load_judged_texts(trace_ids: Sequence[int]) -> list[JudgedTraceText]:
    """Return the traces in the order of the ids, with two queries. Steps that a file has after the end of a trace are
    alternatives of people, and not shown."""
    fields = ("pk", "n_steps", "problem__text", "problem__reference_answer", "answer", "is_right")
    rows = {row[0]: row for row in Trace.objects.filter(pk__in=trace_ids).values_list(*fields)}
    steps: defaultdict[int, list[JudgedStep]] = defaultdict(list)
    options = Option.objects.filter(step__trace__in=trace_ids, position=0).order_by("step__position")
    columns = ("step__trace_id", "step__position", "step__kind", "step__is_rateable", "text")
    for trace_id, *step in options.values_list(*columns):
        if step[0] < rows[trace_id][1]:
            steps[trace_id].append(JudgedStep(*step))
    return [
        JudgedTraceText(
            trace_id, rows[trace_id][2], steps[trace_id], rows[trace_id][3] or "", rows[trace_id][4], rows[trace_id][5]
        )
        for trace_id in trace_ids
    ]

"""Reads what `payoff` measures: labelled traces by arm with their reading time, and the labelled reserve."""

import numpy as np
from django.db.models import Sum

from labeling.agreement.arrays import Floats, Ints
from labeling.models import Draw, Manifest, Submission
from prm import evaluating
from prm import labels as labels_
from prm.backends import builtin
from prm.labels import Labels
from prm.payoff import BASE, POLICY, UNIFORM, Learnt, Reserve

_USUAL_SECONDS = 60.0
_CHUNK = 2000


def learnt_of(manifest: Manifest) -> Learnt:
    labels = labels_.of_manifest(manifest)
    labels = labels.keep(~labels.is_reserve)
    texts = labels_.read(labels)
    kept, wrong = labels_.labelled_steps(texts, labels.first_errors)
    traces = np.repeat(np.arange(len(texts)), [len(text.steps) for text in texts])[kept]
    seen = builtin.keep(builtin.see([text.asked for text in texts]), kept)
    return Learnt(seen, wrong, traces, _arms(manifest, labels), _seconds(labels))


def reserve_of(manifest: Manifest) -> Reserve:
    found = evaluating.reserve_of(manifest)
    rateable = np.array([each for text in found.texts for each in text.is_rateable], dtype=np.bool_)
    judged = labels_.judged(found.texts, found.labels.first_errors, np.zeros(len(rateable)))
    seen = builtin.keep(builtin.see([text.asked for text in found.texts]), rateable)
    return Reserve(builtin.keep(seen, judged.is_labelled), judged.labelled())


def _arms(manifest: Manifest, labels: Labels) -> Ints:
    """By the latest draw of each trace before the manifest; what was never drawn was read before the first batch."""
    arms: dict[int, int] = {}
    for start in range(0, len(labels.traces), _CHUNK):
        rows = Draw.objects.filter(trace__in=labels.traces[start : start + _CHUNK], drawn_at__lte=manifest.made_at)
        for trace, arm in rows.order_by("pk").values_list("trace_id", "arm"):
            arms[trace] = POLICY if arm == "policy" else UNIFORM
    return np.array([arms.get(trace, BASE) for trace in labels.traces], dtype=np.int64)


def _seconds(labels: Labels) -> Floats:
    """Time spent on each trace by all of its raters, as far as it was measured."""
    spent: dict[int, float] = {}
    for start in range(0, len(labels.traces), _CHUNK):
        rows = Submission.objects.filter(assignment__trace__in=labels.traces[start : start + _CHUNK], revision=1)
        for trace, ms in rows.values_list("assignment__trace_id").annotate(ms=Sum("total_ms")):
            spent[trace] = (ms or 0) / 1000
    return np.array([spent.get(trace) or _USUAL_SECONDS for trace in labels.traces], dtype=np.float64)

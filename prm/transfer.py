"""Does what the builtin PRM learns in some domains hold in another? Each domain of the reserve is judged by a scorer
that was trained without it. Reads alone."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from prm import labels as labels_
from prm import packing
from prm.backends import builtin
from prm.backends.builtin import TooFewLabels
from prm.evaluating import Reserve
from prm.evaluation import concordance
from prm.evaluation.audit_report import figure
from prm.labels import Labels
from prm.models import PRM
from prm.models.prm import BackendKind

MOST_DOMAINS = 8


def left_out(prm: PRM, labels: Labels, reserve: Reserve) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each domain the length-matched figure of a scorer that has not seen it; none where there is one domain."""
    domains = [name for name, _ in Counter(text.domain for text in reserve.texts).most_common(MOST_DOMAINS)]
    if prm.backend != BackendKind.BUILTIN or prm.trained is None or len(domains) < 2:
        return
    trained = np.isin(np.array(labels.traces), np.array(packing.unpack_ids(bytes(prm.trained))))
    learnt = labels.keep(trained)
    texts = labels_.read(learnt)
    kept, wrong = labels_.labelled_steps(texts, learnt.first_errors)
    seen = builtin.keep(builtin.see([text.asked for text in texts]), kept)
    of_step = np.repeat([text.domain for text in texts], [len(text.steps) for text in texts])[kept]
    for domain in domains:
        others = of_step != domain
        try:
            scorer = builtin.train(builtin.keep(seen, others), wrong[others])
        except TooFewLabels:
            continue
        yield domain or "-", _judge(scorer, domain, reserve)


def _judge(scorer: builtin.Scorer, domain: str, reserve: Reserve) -> dict[str, Any]:
    is_in = np.array([text.domain == domain for text in reserve.texts], dtype=np.bool_)
    texts = [text for text in reserve.texts if text.domain == domain]
    p_wrong = scorer.p_wrong(builtin.see([text.asked for text in texts]))
    judged = labels_.judged(texts, reserve.labels.first_errors[is_in], p_wrong)
    return figure(concordance.length_matched_auc(judged.labelled()))

"""What judges is not learnt from: neither the reserve, nor what is like a problem of it or of gold."""

import pytest

from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Project
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from prm import contamination_check, score_encoding, trace_labels
from prm.models import PRM
from tests import factories
from tests.prm import contamination_audit, generation_project

pytestmark = pytest.mark.django_db


def test_training_leaves_out_reserve_and_what_is_like_gold_and_the_audit_would_see_it() -> None:
    project = generation_project.make_project(labelled=40, unread=0)
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="t", now=factories.NOW, by=None
    )
    settled = trace_labels.load_trace_labels(frozen)
    known = contamination_check.exclude_judging_problems(project, settled)
    assert settled.is_reserve.any()
    assert not known.is_reserve.any()
    trace = project.traces.get(pk=known.traces[0])
    twin = factories.make_problem(project, trace.problem.text.upper() + " !")
    gold = factories.make_trace(project, problem=twin)
    make_gold(trace=gold, use=GoldUse.HIDDEN, accepted_first_errors=[None], by=None, now=factories.NOW)
    again = contamination_check.exclude_judging_problems(project, settled)
    assert set(known.traces) - set(again.traces) == {trace.pk}
    careless = look(project, settled.traces)
    assert careless["reserve"] > 0
    assert careless["gold"] == 1
    assert not any(look(project, again.traces).values())


def look(project: Project, trained: list[int]) -> dict[str, int]:
    """How many problems of each kind that judges are among the problems of these traces."""
    told = contamination_audit.run_audit(PRM(project=project, trained=score_encoding.encode_ids(trained)))
    return {each["name"] or each["kind"]: each["n_equal"] + each["n_overlapping"] for each in told["judges"]}

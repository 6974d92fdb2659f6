"""Generated solutions of problems with a picture, which is misread or not."""

from collections import defaultdict

from demo import records
from demo.visual import traces

MADE = traces.generate_visual_traces(seed="x")


def test_generate_gives_the_same_traces_and_pictures_each_time() -> None:
    assert traces.generate_visual_traces(seed="x") == MADE


def test_each_picture_is_shared_by_a_right_and_a_wrong_solution() -> None:
    by_picture = defaultdict(list)
    for trace in MADE:
        record = records.build_record(trace, policy="generator")
        [image] = record.images
        assert [(each.digest, bool(each.description)) for each in record.problem.images] == [(image.digest, True)]
        by_picture[image.digest].append(trace)
    assert len(by_picture) == 6
    assert [sorted(trace.is_right for trace in pair) for pair in by_picture.values()] == [[False, True]] * 6


def test_a_solution_is_wrong_if_one_step_misreads_the_picture() -> None:
    for trace in MADE:
        kinds = [step.options[0].error_kind for step in trace.steps]
        assert kinds.count(traces.MISREAD) == (not trace.is_right) == (trace.answer != trace.reference_answer)
        assert (trace.first_error is None) == trace.is_right
        assert 4 <= len(trace.steps) <= 6
        assert trace.answer.split(",")[0] in trace.steps[-1].text

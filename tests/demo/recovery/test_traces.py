"""Generated solutions with an error that is noticed, or not."""

from demo import generated_content, simulated_raters
from demo.recovery import traces
from formats import label_sets
from formats.label_sets import RatedStep
from labeling.projects import clauses

MADE = [trace for seed in range(10) for trace in traces.generate_recovery_traces(seed=str(seed))]


def test_generate_gives_the_same_traces_each_time() -> None:
    assert traces.generate_recovery_traces(seed="x") == traces.generate_recovery_traces(seed="x")
    assert len({trace.ref for trace in MADE}) == len(MADE) / 10


def test_answer_is_wrong_only_if_the_error_is_decisive() -> None:
    for trace in MADE:
        steps = [RatedStep(step.rating, step.options[0].error_link) for step in trace.steps]
        decisive = label_sets.derive_labels(steps, protocol="recovery", label_set="decisive_error")
        assert decisive.is_complete
        assert (decisive.error is None) == trace.is_right == (trace.answer == trace.reference_answer)
        assert (trace.answers["noticed"] == "yes") == (label_sets.RECOVERS in {step.error_link for step in steps})
        assert (trace.first_error is None) == (trace.answers["noticed"] == "none")


def test_each_error_is_followed_by_a_step_that_does_not_depend_on_it() -> None:
    for trace in MADE:
        links = {step.options[0].error_link for step in trace.steps}
        assert (label_sets.INDEPENDENT in links) == (trace.first_error is not None)


def test_guideline_has_a_heading_for_each_task() -> None:
    assert len(clauses.parse_clauses(traces.load_guideline())) > 1


def test_simulated_raters_mark_how_steps_relate_to_the_error() -> None:
    rater = simulated_raters.SIMULATED_RATERS[0]
    marks = {
        rating.error_link
        for trace in MADE
        for rating in simulated_raters.simulate_ratings(
            trace, rater, generated_content.seeded_random(trace.ref), to_the_end=True
        )
    }
    assert marks == {"", *label_sets.ERROR_LINKS}

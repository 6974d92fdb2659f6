"""The steps of a trace as pages show them, and the place of a first error in words and in forms."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from django.utils.translation import gettext as _

from formats.messages import MessagePart, StepPlace, find_message_parts
from labeling.models import Consensus, Gold, Option, OptionPart, Trace
from labeling.quality import submitted_reports
from labeling.step_numbers import StepNumbers

StepNumberer = Callable[[int], int]  # from a step's position to the number that people see


@dataclass
class StepText:
    """One option of a step, with its parts."""

    option: Option
    parts: list[OptionPart] = field(default_factory=list)


@dataclass
class StepWithTexts:
    """One step with its texts, the trace's own text first."""

    position: int
    kind: str
    is_rateable: bool
    texts: list[StepText]
    number: int | None = None  # as annotators see it; context steps have none
    rating: int | None = None  # by consensus
    source_position: int | None = None  # the number of its message in the file
    part: MessagePart | None = None  # if its message has several steps


def load_steps(trace: Trace, consensus: Consensus | None = None) -> list[StepWithTexts]:
    """Load the steps of a trace in order, with the ratings of `consensus`."""
    steps: dict[int, StepWithTexts] = {}
    texts: dict[int, StepText] = {}
    options = Option.objects.filter(step__trace=trace).select_related("step").order_by("step__position", "position")
    for option in options:
        row = option.step
        place = row.position, row.kind, row.is_rateable
        step = steps.setdefault(row.position, StepWithTexts(*place, [], source_position=row.source_position))
        texts[option.pk] = StepText(option)
        step.texts.append(texts[option.pk])
    for part in OptionPart.objects.filter(option__step__trace=trace).with_images():
        texts[part.option_id].parts.append(part)
    for position, option_position, rating, *_rest in consensus.labels if consensus else ():
        if option_position == 0 and position in steps:
            steps[position].rating = rating
    for number, step in enumerate((step for step in steps.values() if step.is_rateable), start=1):
        step.number = number
    places = [StepPlace(step.source_position, step.is_rateable) for step in steps.values()]
    for step, message_part in zip(steps.values(), find_message_parts(places), strict=True):
        step.part = message_part
    return list(steps.values())


def find_error_number(
    report: submitted_reports.RevisionReport | None, trace_id: int, numbers: StepNumbers
) -> int | None:
    """Return the number of the step at which a submission has its first error."""
    return None if report is None or report.position is None else numbers.at(trace_id, report.position)


def describe_accepted_errors(gold: Gold, numbers: StepNumbers) -> str:
    return describe_error_places(gold.accepted_first_errors, partial(numbers.at, gold.trace_id))


def describe_error_places(first_errors: Sequence[int | None], number: StepNumberer) -> str:
    """Return "step 2, no error" for the positions at which the first error may be."""
    return ", ".join(
        _("no error") if position is None else _("step %(n)d") % {"n": number(position)} for position in first_errors
    )


def build_error_choices(positions: Iterable[int]) -> list[tuple[str, str]]:
    """Return the choices of a form for the first error, from the positions of the steps that people rate."""
    steps = [(str(position), _("step %(n)d") % {"n": n}) for n, position in enumerate(positions, start=1)]
    return [("none", _("no error")), *steps]


def parse_error_choice(choice: str) -> int | None:
    return None if choice == "none" else int(choice)

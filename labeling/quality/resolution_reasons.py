"""Descriptions of why a trace is in its state."""

from django.utils.translation import gettext_lazy as _

RESOLUTION_REASONS = {
    "": _("Not evaluated yet."),
    "first_readings": _("Waiting for the initial labels."),
    "differ": _("Annotators disagree on the first error. One more label was requested."),
    "cut_off": _("Some annotators gave up or reported the problem. One more label was requested."),
    "all_agree": _("All annotators agree on the first error, or that there is none."),
    "most_agree": _("Most annotators agree on the first error, or that there is none."),
    "accepted": _("The probability of this first error reached the acceptance threshold."),
    "doubtful": _(
        "Annotators agree, but the probability is below the acceptance threshold. One more label was requested."
    ),
    "doubtful_at_limit": _(
        "Annotators agree, but the probability is below the acceptance threshold, and the maximum number of labels per"
        " trace is reached."
    ),
    "differ_at_limit": _("Annotators disagree, and the maximum number of labels per trace is reached."),
    "cut_off_at_limit": _("Too many annotators gave up, and the maximum number of labels per trace is reached."),
    "bad_problem": _("Two annotators reported that the problem itself is bad."),
    "decided": _("Decided by an adjudicator."),
    "sent_back": _("An adjudicator requested one more label."),
    "live": _("Its steps were generated during labeling, so no two annotators labeled the same steps."),
}


def describe_resolution_reason(reason: str) -> str:
    return str(RESOLUTION_REASONS[reason])

"""Why a trace is where it is, in words for people. Reads nothing, changes nothing."""

from django.utils.translation import gettext_lazy as _

RESOLUTION_REASONS = {
    "": _("Nothing has been made of its readings yet."),
    "first_readings": _("Fewer readings are in than were asked for at the start."),
    "differ": _("Its readings see the first error at different steps: one more was asked for."),
    "cut_off": _("Some readings gave up or reported the problem: one more was asked for."),
    "all_agree": _("All its readings see the first error at the same step, or none."),
    "most_agree": _("More than half of its readings see the first error at the same step, or none."),
    "accepted": _("The probability of this place reached what hidden gold asks for."),
    "doubtful": _("Its readings agree, but hidden gold says that this is not sure enough: one more was asked for."),
    "doubtful_at_limit": _(
        "Its readings agree, but hidden gold says that this is not sure enough, and it has been read as often as the"
        " project allows."
    ),
    "differ_at_limit": _("Its readings differ, and it has been read as often as the project allows."),
    "cut_off_at_limit": _("Too many readings gave up, and it has been read as often as the project allows."),
    "bad_problem": _("Two readings report that the problem itself is bad."),
    "decided": _("A person decided."),
    "sent_back": _("A person who looked at it asked for one more reading."),
    "live": _("Its steps were generated while it was rated: no two readings are of the same steps."),
}


def describe_resolution_reason(reason: str) -> str:
    """The sentence for what a settlement carries as its reason."""
    return str(RESOLUTION_REASONS[reason])

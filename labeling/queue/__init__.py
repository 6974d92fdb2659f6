"""Hands out traces, each exactly as often as it has slots, and takes slots back. Alone changes lanes, entries, readers
and added slots, and the states of assignments up to their submission.

Called through this module: `queue.claim(...)`."""

from labeling.queue.arranging import arrange
from labeling.queue.claiming import Claim, claim
from labeling.queue.drawing import (
    Drawn,
    close_before,
    drawable,
    forget_draws,
    keep_draws,
    next_batch,
    serve_draws,
)
from labeling.queue.emptiness import why_nothing
from labeling.queue.filling import close_lane, depth, enqueue, enqueue_new, fixed_key, reinstate, take_out, withdraw
from labeling.queue.leases import lapse_due, open_held, release, release_held, say_known, take_back
from labeling.queue.persist import AsRead, persist
from labeling.queue.refusals import (
    LeaseLost,
    NothingLeft,
    ProjectNotOpen,
    QueueIsBusy,
    QueueRefusal,
    RaterPaused,
    RaterRemoved,
    ScreeningNotPassed,
    StationFirst,
    why_not,
)
from labeling.queue.resizing import Resized, given, resize
from labeling.queue.slots import add_slot, is_handed_out, take_slot

__all__ = [
    "AsRead",
    "Claim",
    "Drawn",
    "LeaseLost",
    "NothingLeft",
    "ProjectNotOpen",
    "QueueIsBusy",
    "QueueRefusal",
    "RaterPaused",
    "RaterRemoved",
    "Resized",
    "ScreeningNotPassed",
    "StationFirst",
    "add_slot",
    "arrange",
    "claim",
    "close_before",
    "close_lane",
    "depth",
    "drawable",
    "enqueue",
    "enqueue_new",
    "fixed_key",
    "forget_draws",
    "given",
    "is_handed_out",
    "keep_draws",
    "lapse_due",
    "next_batch",
    "open_held",
    "persist",
    "reinstate",
    "release",
    "release_held",
    "resize",
    "say_known",
    "serve_draws",
    "take_back",
    "take_out",
    "take_slot",
    "why_not",
    "why_nothing",
    "withdraw",
]

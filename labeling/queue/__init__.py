"""Hands out traces, each exactly as often as it has slots, and takes slots back. Alone changes lanes, entries, readers
and added slots, and the states of assignments up to their submission.

Called through this module: `queue.claim(...)`."""

from labeling.queue.claiming import Claim, claim
from labeling.queue.filling import close_lane, depth, enqueue, reinstate, take_out, withdraw
from labeling.queue.leases import lapse_due, open_held, release, release_held, renew
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
)
from labeling.queue.slots import add_slot, take_slot

__all__ = [
    "Claim",
    "LeaseLost",
    "NothingLeft",
    "ProjectNotOpen",
    "QueueIsBusy",
    "QueueRefusal",
    "RaterPaused",
    "RaterRemoved",
    "ScreeningNotPassed",
    "StationFirst",
    "add_slot",
    "claim",
    "close_lane",
    "depth",
    "enqueue",
    "lapse_due",
    "open_held",
    "reinstate",
    "release",
    "release_held",
    "renew",
    "take_out",
    "take_slot",
    "withdraw",
]

"""The queue: give out each trace exactly as often as it has slots, and take slots back.

Only this package changes lanes, queue entries, lane cursors, draws, added slots, and the state of an assignment before
its submission. Other packages call it as `queue.claim_trace(...)`.
"""

from labeling.queue.assignment_update import ExpectedAssignment, update_assignment
from labeling.queue.claim import Claim, claim_trace
from labeling.queue.draws import (
    DrawnTrace,
    close_earlier_batches,
    delete_draws,
    enqueue_draws,
    list_drawable_traces,
    next_batch_number,
    save_draws,
)
from labeling.queue.eligibility import (
    AssignmentLeaseLost,
    NothingLeft,
    OnboardingRequired,
    ProjectNotOpen,
    QueueIsBusy,
    QueueRefusal,
    RaterPaused,
    RaterRemoved,
    ScreeningNotPassed,
    explain_nothing_left,
    ineligibility_reason,
)
from labeling.queue.lane_entries import (
    close_entries,
    close_lane,
    enqueue,
    enqueue_new,
    lane_depths,
    reinstate_traces,
    reorder_lane,
    shuffle_key,
    withdraw_traces,
)
from labeling.queue.leases import (
    acknowledge_reclaim,
    lapse_expired_leases,
    open_assignment,
    reclaim_assignment,
    release_assignment,
    release_held,
    renewed_lease_end,
)
from labeling.queue.slots import (
    ResizedTraces,
    add_slot,
    count_initial_slots,
    is_labeled_here,
    resize_slots,
    take_late_slot,
)

__all__ = [
    "AssignmentLeaseLost",
    "Claim",
    "DrawnTrace",
    "ExpectedAssignment",
    "NothingLeft",
    "OnboardingRequired",
    "ProjectNotOpen",
    "QueueIsBusy",
    "QueueRefusal",
    "RaterPaused",
    "RaterRemoved",
    "ResizedTraces",
    "ScreeningNotPassed",
    "acknowledge_reclaim",
    "add_slot",
    "claim_trace",
    "close_earlier_batches",
    "close_entries",
    "close_lane",
    "count_initial_slots",
    "delete_draws",
    "enqueue",
    "enqueue_draws",
    "enqueue_new",
    "explain_nothing_left",
    "ineligibility_reason",
    "is_labeled_here",
    "lane_depths",
    "lapse_expired_leases",
    "list_drawable_traces",
    "next_batch_number",
    "open_assignment",
    "reclaim_assignment",
    "reinstate_traces",
    "release_assignment",
    "release_held",
    "renewed_lease_end",
    "reorder_lane",
    "resize_slots",
    "save_draws",
    "shuffle_key",
    "take_late_slot",
    "update_assignment",
    "withdraw_traces",
]

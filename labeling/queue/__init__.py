"""The queue: give out each trace exactly as often as it has slots, and take slots back.

Only this package changes lanes, queue entries, lane cursors, draws, added slots, readers of pairs, and the state of an
assignment before its submission. Other packages call it as `queue.claim_trace(...)`.
"""

from labeling.queue.chosen import choose_traces, delete_group, ensure_personal_group, save_group, unchoose_traces
from labeling.queue.claim import Claim, claim_next, claim_trace, explain_nothing_left
from labeling.queue.eligibility import (
    AssignmentLeaseLost,
    NothingLeft,
    OnboardingRequired,
    ProjectNotOpen,
    QueueRefusal,
    RaterPaused,
    RaterRemoved,
    ScreeningNotPassed,
    ineligibility_reason,
)
from labeling.queue.lane_entries import (
    DrawnTrace,
    close_earlier_batches,
    close_entries,
    close_lane,
    delete_draws,
    enqueue,
    enqueue_draws,
    enqueue_new,
    lane_depths,
    list_drawable_traces,
    next_batch_number,
    reinstate_traces,
    reopen_entries,
    reorder_lane,
    save_draws,
    shuffle_key,
    withdraw_traces,
)
from labeling.queue.leases import (
    CHANGES_SQL,
    HAS_EXPIRED_LEASES,
    OPEN_HELD_SQL,
    acknowledge_reclaim,
    encode_changes,
    keep_assignment,
    lapse_expired_leases,
    open_assignment,
    open_held,
    reclaim_assignment,
    release_assignment,
    release_held,
    renewed_lease_end,
    update_assignment,
)
from labeling.queue.limits import BudgetReached, DailyLimit, OpenTracesLimit, is_budget_reached
from labeling.queue.pairs import (
    is_other_half,
    may_read_traces,
    record_imported_readers,
    record_reviewed_halves,
    reserve_half,
)
from labeling.queue.slots import (
    add_slot,
    count_initial_slots,
    find_returnable,
    is_labeled_here,
    remove_added_slots,
    resize_slots,
    restore_slots,
    return_set_aside_slots,
    return_slots,
    take_late_slot,
)

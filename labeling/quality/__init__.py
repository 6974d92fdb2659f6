"""How far labels are to be trusted: gold and how raters meet it, and what the project makes of many ratings.

Called through this module: `quality.make_gold(...)`."""

from labeling.quality.adjudication import CannotDecide, decide_trace, list_contested, send_back_trace
from labeling.quality.gold import (
    MAX_GOLD_EXPOSURES,
    InvalidGold,
    arrange_hidden_gold,
    correct_gold,
    delete_unopened_gold,
    enqueue_gold,
    make_gold,
    move_gold,
    promote_to_gold,
    retire_gold,
)
from labeling.quality.gold_monitor import record_gold_answer, set_gold_threshold
from labeling.quality.gold_scoring import GoldAccuracy, load_gold_accuracy, score_gold_answer
from labeling.quality.project_stats import (
    StoredProjectStats,
    list_daily_stats,
    load_project_stats,
    mark_existing_stats_stale,
)
from labeling.quality.rater_model import load_current_fit
from labeling.quality.resolution_state import mark_due, mark_imported_due, mark_unsettled_due
from labeling.quality.resolve import resolve_traces
from labeling.quality.tallies import recount_tallies, tally_trace
from labeling.quality.trace_counts import reset_trace_count
from labeling.quality.withdrawal import withdraw_traces
from labeling.quality.workdays import load_work_since

__all__ = [
    "MAX_GOLD_EXPOSURES",
    "CannotDecide",
    "GoldAccuracy",
    "InvalidGold",
    "StoredProjectStats",
    "arrange_hidden_gold",
    "correct_gold",
    "decide_trace",
    "delete_unopened_gold",
    "enqueue_gold",
    "list_contested",
    "list_daily_stats",
    "load_current_fit",
    "load_gold_accuracy",
    "load_project_stats",
    "load_work_since",
    "make_gold",
    "mark_due",
    "mark_existing_stats_stale",
    "mark_imported_due",
    "mark_unsettled_due",
    "move_gold",
    "promote_to_gold",
    "record_gold_answer",
    "recount_tallies",
    "reset_trace_count",
    "resolve_traces",
    "retire_gold",
    "score_gold_answer",
    "send_back_trace",
    "set_gold_threshold",
    "tally_trace",
    "withdraw_traces",
]

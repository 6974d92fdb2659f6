"""The lanes of a rater: which are served, in which order, and how far the rater has come in each. Reads only.

A lane is one arm of one generation. Readers go down it by (key, trace): what lies above where a rater stands was
taken by him, or was not for him. The newest assignment that a lane gave him says where that is; a `QueueReader` row,
where it is newer, says that the lane came up empty from there on down.
"""

import datetime as dt
from typing import NamedTuple

from labeling.models import Lane
from labeling.models.queue import Arm

# How long a trace stays with a rater who has not opened it: fetched ahead, it keeps others from having it.
HELD_FOR = dt.timedelta(minutes=5)

BOTTOM = -(2**63)
TOP = 2**63 - 1

# Slots come back below every reader, in the order of their arrival. One that was stamped earlier may become visible
# later: readers leave that much room, and look from the top before anybody is told that nothing is left.
ARRIVAL_ROOM = dt.timedelta(seconds=10)
# A mark is renewed when it lags this much: rarely, since every one written leaves a dead row behind.
MARK_EVERY = dt.timedelta(seconds=60)
_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ARRIVALS = (Arm.TOP_UP, Arm.OPINION)
WORK = (Arm.UNIFORM, Arm.POLICY, Arm.RESERVE)  # from here traces are given out as often as the project asks

# To be put behind WITH; its parameters are those of `asked()`.
#
# rest      what the decision on gold leaves of the chance, between 0 and 1 again
# place     the order in which lanes are tried, null where one is not served now: reserve and uniform come first at
#           their shares, policy takes the rest, and each stands in for the others where they are empty. Gold is handed
#           out beside work alone: whoever got a trace where nothing waits would know what it is
# key       where to read on
# is_held   the lane's newest assignment is held by this rater: nothing new is handed out
ASKED = """
asked AS (SELECT CAST(%s AS bigint) AS rater_id, CAST(%s AS double precision) AS chance,
                 CAST(%s AS boolean) AS from_top, CAST(%s AS bigint) AS arrivals_until),
somebody AS (
    SELECT one.*, CASE WHEN one.chance < one.gold_share THEN one.chance / one.gold_share
                       ELSE (one.chance - one.gold_share) / (1 - one.gold_share) END AS rest FROM (
    SELECT a.rater_id, a.chance, a.from_top, a.arrivals_until, r.project_id, r.stage, r.training_attempt,
           r.screening_attempt, p.reserve_share, p.uniform_share, p.lease_seconds, p.guideline_id,
           p.shows_reference_answer, p.shows_final_verdict,
           CASE WHEN r.proven_at IS NOT NULL AND p.proven_gold_share < p.gold_share THEN p.proven_gold_share
                ELSE p.gold_share END AS gold_share
    FROM asked a
    JOIN labeling_rater r ON r.id = a.rater_id AND r.paused_at IS NULL AND r.removed_at IS NULL
    JOIN labeling_project p ON p.id = r.project_id AND p.state = 'open'
        AND (p.guideline_id IS NULL OR p.guideline_id = r.read_guideline_id)
        AND (p.consent_text_id IS NULL OR p.consent_text_id = r.agreed_text_id)) one)"""
ARM = """l.id AS lane_id, l.arm, l.generation,
           CASE WHEN l.arm IN ('training', 'screening', 'gold') THEN l.arm ELSE 'work' END AS purpose,
           CASE l.arm WHEN 'training' THEN s.training_attempt WHEN 'screening' THEN s.screening_attempt
                ELSE 1 END AS attempt,
           CASE WHEN l.arm = 'opinion' THEN 'opinion' ELSE 'scheduled' END AS population,
           CASE WHEN s.stage IN ('training', 'screening') THEN CASE WHEN l.arm = s.stage THEN 0 END
                WHEN s.stage <> 'working' OR l.arm IN ('training', 'screening') THEN NULL
                WHEN l.arm = 'gold' THEN CASE WHEN s.chance < s.gold_share THEN 0 END
                WHEN l.arm = 'top_up' THEN 1
                WHEN l.arm = 'opinion' THEN 2
                WHEN l.arm = CASE WHEN s.rest < s.reserve_share THEN 'reserve'
                                  WHEN s.rest < s.reserve_share + s.uniform_share THEN 'uniform'
                                  ELSE 'policy' END THEN 3
                WHEN l.arm = 'policy' THEN 4
                WHEN l.arm = 'uniform' THEN 5
                ELSE 6 END AS place"""
STANDS = f"""
           COALESCE(CASE WHEN s.from_top THEN NULL WHEN n.id IS NULL OR m.read_at >= n.held_at THEN m.key
                         ELSE n.lane_key END, {TOP}) AS key,
           COALESCE(CASE WHEN s.from_top OR m.read_at >= n.held_at THEN NULL ELSE n.trace_id END, {TOP}) AS trace_id"""
LANES = f"""{ASKED},
lanes AS MATERIALIZED (
    SELECT s.*, {ARM}, {STANDS}, COALESCE(n.state = 'held', false) AS is_held
    FROM somebody s
    JOIN labeling_lane l ON l.project_id = s.project_id AND l.closed_at IS NULL
    LEFT JOIN labeling_queuereader m ON m.rater_id = s.rater_id AND m.lane_id = l.id
    LEFT JOIN labeling_assignment n ON n.id = (
        SELECT a.id FROM labeling_assignment a WHERE a.rater_id = s.rater_id AND a.lane_id = l.id
        ORDER BY a.held_at DESC, a.id DESC LIMIT 1)
    ORDER BY place, l.generation DESC, l.id)
"""  # noqa: S608  made of constants

# The next entry below where a rater stands in a lane that he may take. Whatever he was shown before does not come
# again; what was only held for him, and never opened, may. Training and screening gone through again show the same
# traces again, except for what lies open before him.
NEXT = """
SELECT e.id AS entry_id, e.trace_id, e.key, e.draw_id FROM labeling_queueentry e
WHERE e.lane_id = {lane_id} AND e.is_open AND (e.key, e.trace_id) < ({key}, {trace_id})
AND NOT EXISTS (
    SELECT 1 FROM labeling_assignment met
    WHERE met.trace_id = e.trace_id AND met.rater_id = {rater_id}
    AND ({purpose} NOT IN ('training', 'screening') OR (met.purpose = {purpose} AND met.attempt = {attempt})
         OR met.state IN ('held', 'opened'))
    AND (met.opened_at IS NOT NULL OR met.state NOT IN ('released', 'lapsed')))
ORDER BY e.key DESC, e.trace_id DESC LIMIT 1
"""


# What was only held comes alive again, so that a browser's late messages for it find their place. Where the row is not
# such a one, two claims of one rater have met: the lease is null then, a constraint refuses the whole, and the slot
# stays where it was.
MAKE = """
INSERT INTO labeling_assignment AS a (
    project_id, rater_id, trace_id, lane_id, lane_key, draw_id, purpose, attempt, origin, population, state,
    holds_slot, held_at, opened_at, lease_ends_at, ended_reason, guideline_id, saw_reference_answer,
    saw_final_verdict, is_assisted, revision, submitted_revision, version)
{values}
ON CONFLICT (trace_id, rater_id, purpose, attempt) DO UPDATE SET
    lane_id = excluded.lane_id, lane_key = excluded.lane_key, draw_id = excluded.draw_id,
    population = excluded.population, state = excluded.state, holds_slot = true, held_at = excluded.held_at,
    opened_at = excluded.opened_at, ended_at = NULL, ended_reason = '', guideline_id = excluded.guideline_id,
    saw_reference_answer = excluded.saw_reference_answer, saw_final_verdict = excluded.saw_final_verdict,
    lease_ends_at = CASE WHEN a.opened_at IS NULL AND a.state IN ('released', 'lapsed')
                         THEN excluded.lease_ends_at END"""
# SQLite names the column where PostgreSQL names the constraint.
TWO_CLAIMS_MET = (
    "one_held_assignment_per_rater",
    "UNIQUE constraint failed: labeling_assignment.rater_id",
    "an_open_assignment_has_a_lease_and_a_slot",
)


def asked(rater_id: int, now: dt.datetime, chance: float, *, from_top: bool) -> list[object]:
    """The parameters of LANES."""
    return [rater_id, chance, from_top, floor(Arm.TOP_UP, now) + MARK_EVERY // _MICROSECOND]


class Taken(NamedTuple):
    """A slot that was taken, and the assignment that came of it."""

    assignment_id: int
    trace_id: int
    purpose: str
    arm: str
    state: str
    lease_ends_at: dt.datetime
    draw_id: int | None
    came_up_empty: list[int]  # lanes tried before, where the rater's mark lags behind


def arrival_key(at: dt.datetime) -> int:
    """Minus the microseconds since 1970: the later, the further down."""
    return -((at - _EPOCH) // _MICROSECOND)


def floor(arm: str, now: dt.datetime) -> int:
    """Where a rater stands in a lane that came up empty."""
    return arrival_key(now - ARRIVAL_ROOM) if arm in ARRIVALS else BOTTOM


def of_arm(*, project_id: int, arm: str, generation: int = 0) -> Lane:
    """The lane of an arm, made when it is first needed."""
    lane, _ = Lane.objects.get_or_create(project_id=project_id, arm=arm, generation=generation)
    return lane

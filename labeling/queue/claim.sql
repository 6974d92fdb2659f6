-- Decide which trace a rater gets next. One statement finds the queue entry, takes one of its slots, and creates the
-- assignment. It never waits for a lock.
--
-- Returns one row, or none if it took nothing: nothing is left, the rater already holds a trace, or the rater is not
-- eligible. claim.py builds a second statement from the sections `lanes` and `work`, which tells whether any entry is
-- left, including those that other claims have locked at this moment.
--
-- Parameters (to read the plan, replace them and put EXPLAIN in front)
--   rater_id        the rater
--   chance          0 <= chance < 1, decides between gold and work, and between the lanes of work
--   from_top        search every lane from its top, ignoring the rater's position
--   arrivals_until  a cursor of an arrival lane above this key is too old and is renewed
--   opened          open the assignment immediately
--   unless_opened_besides   NULL, or: take nothing if the rater has other opened traces than these
--   now, held_for   the time of the claim, and how long a trace is held for a rater who has not opened it
--
-- labeling/queue/eligibility.py and labeling/gates.py apply the same eligibility rules and give the reason to people.
-- tests/labeling/queue/test_eligibility.py proves that both agree.

-- section: lanes
WITH params AS (
  SELECT %(rater_id)s::bigint AS rater_id, %(chance)s::double precision AS chance, %(from_top)s::boolean AS from_top,
    %(arrivals_until)s::bigint AS arrivals_until, %(opened)s::boolean AS opened, %(now)s::timestamptz AS now,
    %(held_for)s::interval AS held_for),

-- The rater, if eligible, with the share of gold: trusted raters (`proven_at`) get less, if the project says so.
eligible AS (
  SELECT params.*, r.project_id, r.stage, r.training_attempt, r.screening_attempt, p.reserve_share, p.uniform_share,
    p.lease_seconds, p.guideline_id, p.shows_reference_answer, p.shows_final_verdict,
    CASE WHEN r.proven_at IS NOT NULL AND p.proven_gold_share < p.gold_share THEN p.proven_gold_share
         ELSE p.gold_share END AS gold_share
  FROM params
  JOIN labeling_rater r ON r.id = params.rater_id AND r.paused_at IS NULL AND r.removed_at IS NULL
  JOIN labeling_project p ON p.id = r.project_id AND p.state = 'open'
    AND (p.guideline_id IS NULL OR p.guideline_id = r.read_guideline_id)
    AND (p.consent_text_id IS NULL OR p.consent_text_id = r.agreed_text_id)
  -- The limits of a rater, and the budget. A subquery that its setting does not need is not run.
  CROSS JOIN LATERAL (
    SELECT COUNT(*) AS open,
      COUNT(*) FILTER (WHERE a.state = 'opened' AND a.id <> ALL (%(unless_opened_besides)s::bigint[])) AS others
    FROM labeling_assignment a WHERE a.rater_id = r.id AND a.state IN ('held', 'opened')) mine
  WHERE p.open_limit > mine.open AND mine.others = 0
    AND (r.stage <> 'working' OR p.traces_per_day IS NULL OR p.traces_per_day > (
      SELECT COUNT(*) FROM labeling_lane l JOIN labeling_assignment today ON today.lane_id = l.id
      WHERE l.project_id = p.id AND today.rater_id = r.id AND today.held_at >= date_trunc('day', params.now, 'UTC')
        AND today.purpose IN ('work', 'gold') AND today.state NOT IN ('released', 'lapsed')))
    AND NOT EXISTS (
      SELECT 1 FROM labeling_projectbudget b WHERE b.project_id = p.id AND b.amount < b.spent + b.trace_cost * (
        SELECT 1 + COUNT(*) FROM labeling_assignment a
        WHERE a.project_id = p.id AND a.state IN ('held', 'opened')))),

-- A chance below the gold share means gold. `rest` spreads the other side of that decision over 0 to 1 again.
claimant AS (
  SELECT *, CASE WHEN chance < gold_share THEN chance / gold_share
                 ELSE (chance - gold_share) / (1 - gold_share) END AS rest
  FROM eligible),

-- The open lanes of the project with the rater's position in each. Raters read a lane down by (key, trace). The position
-- is the newest assignment that the lane gave the rater; a newer row of labeling_lanecursor says that the lane was empty
-- from its key down. 9223372036854775807 is above every key.
--
-- A lane for a group is read by its raters only. `place` is the order in which lanes are tried, NULL for a lane that is
-- not served now. What a person chose comes first, then what was returned, then additional labels. Reserve and uniform come
-- next at their shares, policy takes the rest, and each replaces the others when they are empty. `is_held` says that the
-- newest assignment of the lane is still held: the rater gets no other trace.
lanes AS MATERIALIZED (
  SELECT c.rater_id, c.project_id, c.arrivals_until, c.opened, c.now, c.held_for, c.lease_seconds, c.guideline_id,
    c.shows_reference_answer, c.shows_final_verdict, l.id AS lane_id, l.arm, l.generation,
    CASE WHEN l.arm IN ('training', 'screening', 'gold') THEN l.arm ELSE 'work' END AS purpose,
    CASE l.arm WHEN 'training' THEN c.training_attempt WHEN 'screening' THEN c.screening_attempt ELSE 1 END AS attempt,
    CASE WHEN l.arm IN ('opinion', 'chosen') THEN l.arm ELSE 'scheduled' END AS population,
    CASE WHEN c.stage IN ('training', 'screening') THEN CASE WHEN l.arm = c.stage THEN 0 END
         WHEN c.stage <> 'working' OR l.arm IN ('training', 'screening') THEN NULL
         WHEN l.arm = 'gold' THEN CASE WHEN c.chance < c.gold_share THEN 0 END
         WHEN l.arm = 'chosen' THEN 1
         WHEN l.arm = 'top_up' THEN 2
         WHEN l.arm = 'opinion' THEN 3
         WHEN l.arm = CASE WHEN c.rest < c.reserve_share THEN 'reserve'
                           WHEN c.rest < c.reserve_share + c.uniform_share THEN 'uniform'
                           ELSE 'policy' END THEN 4
         WHEN l.arm = 'policy' THEN 5
         WHEN l.arm = 'uniform' THEN 6
         ELSE 7 END AS place,
    COALESCE(CASE WHEN c.from_top THEN NULL WHEN n.id IS NULL OR m.read_at >= n.held_at THEN m.key
                  ELSE n.lane_key END, 9223372036854775807) AS key,
    COALESCE(CASE WHEN c.from_top OR m.read_at >= n.held_at THEN NULL ELSE n.trace_id END, 9223372036854775807)
      AS trace_id,
    COALESCE(n.state = 'held', false) AS is_held
  FROM claimant c
  JOIN labeling_lane l ON l.project_id = c.project_id AND l.closed_at IS NULL AND (l.group_id IS NULL OR EXISTS (
    SELECT 1 FROM labeling_ratergroup_raters g WHERE g.ratergroup_id = l.group_id AND g.rater_id = c.rater_id))
  LEFT JOIN labeling_lanecursor m ON m.rater_id = c.rater_id AND m.lane_id = l.id
  LEFT JOIN labeling_assignment n ON n.id = (
    SELECT a.id FROM labeling_assignment a WHERE a.rater_id = c.rater_id AND a.lane_id = l.id
    ORDER BY a.held_at DESC, a.id DESC LIMIT 1)
  ORDER BY place, l.group_id IS NULL, l.generation DESC, l.id),

-- section: work
-- Whether any work is left, read without locks and only when used. It repeats the search of `next_entry`, because a row
-- lock does not reach into a CTE.
work AS MATERIALIZED (
  SELECT 1
  FROM lanes
  CROSS JOIN LATERAL (
    SELECT 1 FROM labeling_queueentry e
    WHERE e.lane_id = lanes.lane_id AND e.is_open AND (e.key, e.trace_id) < (lanes.key, lanes.trace_id)
      AND NOT EXISTS (
        SELECT 1 FROM labeling_assignment earlier
        WHERE earlier.trace_id = e.trace_id AND earlier.rater_id = lanes.rater_id
          AND (lanes.purpose NOT IN ('training', 'screening')
               OR (earlier.purpose = lanes.purpose AND earlier.attempt = lanes.attempt)
               OR earlier.state IN ('held', 'opened'))
          AND (earlier.opened_at IS NOT NULL OR earlier.state NOT IN ('released', 'lapsed')))
      AND NOT EXISTS (
        SELECT 1 FROM labeling_pairedtrace own
        JOIN labeling_pairreader other ON other.rater_id = lanes.rater_id AND other.pair = own.pair
          AND other.half <> own.half
        WHERE own.trace_id = e.trace_id)
    ORDER BY e.key DESC, e.trace_id DESC LIMIT 1) e
  WHERE lanes.place IS NOT NULL AND lanes.arm <> 'gold'
  LIMIT 1),

-- section: take
-- The next entry below the rater's position in the first lane that has one: `lanes` comes in its order, and the loop
-- ends with the first entry, so later lanes are not read. A rater does not get a trace again after having seen it; a
-- trace that was only held, and never opened, may come again. A new attempt at training or screening shows the same
-- traces again, except those that the rater has open. Whoever was given one half of a pair, even without opening it, never
-- gets the other half. NO KEY UPDATE lets foreign keys to the entry pass.
--
-- Gold is served only beside work: without work, a trace would be recognizable as gold.
next_entry AS MATERIALIZED (
  SELECT lanes.*, e.entry_id, e.trace_id AS entry_trace_id, e.key AS entry_key, e.draw_id
  FROM lanes
  CROSS JOIN LATERAL (
    SELECT e.id AS entry_id, e.trace_id, e.key, e.draw_id FROM labeling_queueentry e
    WHERE e.lane_id = lanes.lane_id AND e.is_open AND (e.key, e.trace_id) < (lanes.key, lanes.trace_id)
      AND NOT EXISTS (
        SELECT 1 FROM labeling_assignment earlier
        WHERE earlier.trace_id = e.trace_id AND earlier.rater_id = lanes.rater_id
          AND (lanes.purpose NOT IN ('training', 'screening')
               OR (earlier.purpose = lanes.purpose AND earlier.attempt = lanes.attempt)
               OR earlier.state IN ('held', 'opened'))
          AND (earlier.opened_at IS NOT NULL OR earlier.state NOT IN ('released', 'lapsed')))
      AND NOT EXISTS (
        SELECT 1 FROM labeling_pairedtrace own
        JOIN labeling_pairreader other ON other.rater_id = lanes.rater_id AND other.pair = own.pair
          AND other.half <> own.half
        WHERE own.trace_id = e.trace_id)
    ORDER BY e.key DESC, e.trace_id DESC LIMIT 1
    FOR NO KEY UPDATE OF e SKIP LOCKED) e
  WHERE lanes.place IS NOT NULL AND NOT EXISTS (SELECT 1 FROM lanes held WHERE held.is_held)
    AND (lanes.arm <> 'gold' OR EXISTS (SELECT 1 FROM work))
  LIMIT 1),

slot AS (UPDATE labeling_queueentry e SET slots_left = e.slots_left - 1 FROM next_entry WHERE e.id = next_entry.entry_id),

-- An assignment that was only held is used again, so that late messages of a browser still match it. If the row is in
-- any other state, two claims of one rater ran at the same time: `lease_ends_at` becomes NULL, a constraint rejects the
-- statement, and the slot stays in the queue.
new_assignment AS (
  INSERT INTO labeling_assignment AS a (
    project_id, rater_id, trace_id, lane_id, lane_key, draw_id, purpose, attempt, origin, population, state,
    holds_slot, held_at, first_held_at, opened_at, lease_ends_at, ended_reason, guideline_id, saw_reference_answer,
    saw_final_verdict, is_assisted, revision, submitted_revision, version)
  SELECT project_id, rater_id, entry_trace_id, lane_id, entry_key, draw_id, purpose, attempt, 'here', population,
    CASE WHEN opened THEN 'opened' ELSE 'held' END, true, now, now, CASE WHEN opened THEN now END,
    now + CASE WHEN opened THEN lease_seconds * interval '1 second' ELSE held_for END, '',
    CASE WHEN opened THEN guideline_id END, CASE WHEN opened THEN shows_reference_answer END,
    CASE WHEN opened THEN shows_final_verdict END, false, 1, 0, 0
  FROM next_entry
  ON CONFLICT (trace_id, rater_id, purpose, attempt) DO UPDATE SET
    lane_id = excluded.lane_id, lane_key = excluded.lane_key, draw_id = excluded.draw_id,
    population = excluded.population, state = excluded.state, holds_slot = true, held_at = excluded.held_at,
    opened_at = excluded.opened_at, ended_at = NULL, ended_reason = '', guideline_id = excluded.guideline_id,
    saw_reference_answer = excluded.saw_reference_answer, saw_final_verdict = excluded.saw_final_verdict,
    is_assisted = false,
    lease_ends_at = CASE WHEN a.opened_at IS NULL AND a.state IN ('released', 'lapsed')
                         THEN excluded.lease_ends_at END
  RETURNING id, trace_id, rater_id, purpose, state, lease_ends_at, draw_id),

-- Two claims of one rater may take both halves of a pair at the same time: `half` becomes NULL, which the column rejects.
pair_reader AS (
  INSERT INTO labeling_pairreader AS read (rater_id, pair, half)
  SELECT n.rater_id, own.pair, own.half FROM new_assignment n JOIN labeling_pairedtrace own ON own.trace_id = n.trace_id
  ON CONFLICT (rater_id, pair) DO UPDATE SET half = CASE WHEN read.half = excluded.half THEN read.half END),

-- If the project hides reasoning or actions from some raters, the condition follows from the seed, the rater and the trace,
-- as in exposures.py. It is drawn here, because an assignment without its draw would show everything. It is drawn for work
-- only: known answers are for the whole trace. Traces without steps of both kinds show everything.
visibility AS (
  INSERT INTO labeling_visibilitydraw (assignment_id, plan_id, condition, probability, drawn_at)
  SELECT n.id, v.id, c.condition,
    CASE c.condition WHEN 'reasoning' THEN v.reasoning_share WHEN 'actions' THEN v.actions_share
                     ELSE 1 - v.reasoning_share - v.actions_share END, next_entry.now
  FROM new_assignment n CROSS JOIN next_entry
  JOIN labeling_visibilityplan v ON v.project_id = next_entry.project_id AND v.ended_at IS NULL
  CROSS JOIN LATERAL (
    SELECT ('x' || left(encode(sha256(convert_to(v.seed || ' rater ' || n.rater_id || ' trace ' || n.trace_id, 'UTF8')), 'hex'),
                        12))::bit(48)::bigint / 281474976710656.0::double precision AS number) drawn
  CROSS JOIN LATERAL (
    SELECT CASE WHEN drawn.number < v.reasoning_share THEN 'reasoning'
                WHEN drawn.number < v.reasoning_share + v.actions_share THEN 'actions' ELSE 'both' END AS condition) c
  WHERE n.purpose = 'work'
    AND EXISTS (SELECT 1 FROM labeling_step s WHERE s.trace_id = n.trace_id AND s.kind = 'reasoning')
    AND EXISTS (SELECT 1 FROM labeling_step s
                WHERE s.trace_id = n.trace_id AND s.kind IN ('action', 'observation', 'answer'))
  ON CONFLICT (assignment_id) DO UPDATE SET plan_id = excluded.plan_id, condition = excluded.condition,
    probability = excluded.probability, drawn_at = excluded.drawn_at)

-- `empty_lanes` are the lanes tried before whose cursor is too old. In a lane without arrivals the cursor of an empty
-- lane is the lowest key. `suggestion_plan` is set if the project shows a machine's labels to some raters: exposures.py
-- then draws whether to this one. Labels of the reserve are always blind.
SELECT n.id AS assignment_id, n.trace_id, n.purpose, next_entry.arm, n.state, n.lease_ends_at, n.draw_id,
  CASE WHEN n.purpose IN ('work', 'gold') AND next_entry.arm <> 'reserve' THEN (
    SELECT s.id FROM labeling_suggestionplan s WHERE s.project_id = next_entry.project_id AND s.ended_at IS NULL)
  END AS suggestion_plan,
  ARRAY(SELECT tried.lane_id FROM lanes tried WHERE tried.place < next_entry.place AND tried.key >
        CASE WHEN tried.arm IN ('chosen', 'top_up', 'opinion') THEN tried.arrivals_until
             ELSE (-9223372036854775808)::bigint END) AS empty_lanes
FROM new_assignment n, next_entry

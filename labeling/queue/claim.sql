-- Take one slot for a rater: find the next queue entry, take a slot of it, and make the assignment, in one statement
-- that never waits for a lock.
--
-- Returns one row, or none if nothing was taken: nothing is left, or the rater already holds a trace, or may not be given
-- one. The file is one statement. taking.py builds a second one from the sections `lanes` and `work`: whether entries
-- are left that other claims have locked at this moment.
--
-- Parameters (to read the plan, replace them and put EXPLAIN in front)
--   rater_id        who claims
--   chance          0 <= chance < 1, decides on gold and on the lane
--   from_top        read every lane from its top, whatever the rater's position there
--   arrivals_until  a mark in a lane of arrivals above this key lags behind and is renewed
--   opened          open the assignment at once
--   now, held_for   the time of the claim, and how long a trace stays with a rater who has not opened it
--
-- What keeps a rater from being given anything is also decided in labeling/queue/eligibility.py and labeling/gates.py,
-- which say why. tests/labeling/queue/test_eligibility.py proves that both agree.

-- section: lanes
WITH asked AS (
  SELECT %(rater_id)s::bigint AS rater_id, %(chance)s::double precision AS chance, %(from_top)s::boolean AS from_top,
    %(arrivals_until)s::bigint AS arrivals_until, %(opened)s::boolean AS opened, %(now)s::timestamptz AS now,
    %(held_for)s::interval AS held_for),

-- The rater, if nothing keeps them from being given a trace.
eligible AS (
  SELECT asked.*, r.project_id, r.stage, r.training_attempt, r.screening_attempt, p.reserve_share, p.uniform_share,
    p.lease_seconds, p.guideline_id, p.shows_reference_answer, p.shows_final_verdict,
    CASE WHEN r.proven_at IS NOT NULL AND p.proven_gold_share < p.gold_share THEN p.proven_gold_share
         ELSE p.gold_share END AS gold_share
  FROM asked
  JOIN labeling_rater r ON r.id = asked.rater_id AND r.paused_at IS NULL AND r.removed_at IS NULL
  JOIN labeling_project p ON p.id = r.project_id AND p.state = 'open'
    AND (p.guideline_id IS NULL OR p.guideline_id = r.read_guideline_id)
    AND (p.consent_text_id IS NULL OR p.consent_text_id = r.agreed_text_id)),

-- `rest` is what the decision on gold leaves of the chance, spread over 0 to 1 again.
somebody AS (
  SELECT *, CASE WHEN chance < gold_share THEN chance / gold_share
                 ELSE (chance - gold_share) / (1 - gold_share) END AS rest
  FROM eligible),

-- The open lanes of the project with the rater's position in each. Readers go down a lane by (key, trace). The newest
-- assignment that a lane gave a rater is their position; a newer mark in labeling_lanecursor says that the lane came
-- up empty from the mark down. 9223372036854775807 is above every key.
--
-- `place` is the order in which lanes are tried, NULL where a lane is not served now. Reserve and uniform come first at
-- their shares, policy takes the rest, and each replaces the others where they are empty. `is_held` says that the
-- lane's newest assignment is still held: nothing new is given out.
lanes AS MATERIALIZED (
  SELECT s.*, l.id AS lane_id, l.arm, l.generation,
    CASE WHEN l.arm IN ('training', 'screening', 'gold') THEN l.arm ELSE 'work' END AS purpose,
    CASE l.arm WHEN 'training' THEN s.training_attempt WHEN 'screening' THEN s.screening_attempt ELSE 1 END AS attempt,
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
         ELSE 6 END AS place,
    COALESCE(CASE WHEN s.from_top THEN NULL WHEN n.id IS NULL OR m.read_at >= n.held_at THEN m.key
                  ELSE n.lane_key END, 9223372036854775807) AS key,
    COALESCE(CASE WHEN s.from_top OR m.read_at >= n.held_at THEN NULL ELSE n.trace_id END, 9223372036854775807)
      AS trace_id,
    COALESCE(n.state = 'held', false) AS is_held
  FROM somebody s
  JOIN labeling_lane l ON l.project_id = s.project_id AND l.closed_at IS NULL
  LEFT JOIN labeling_lanecursor m ON m.rater_id = s.rater_id AND m.lane_id = l.id
  LEFT JOIN labeling_assignment n ON n.id = (
    SELECT a.id FROM labeling_assignment a WHERE a.rater_id = s.rater_id AND a.lane_id = l.id
    ORDER BY a.held_at DESC, a.id DESC LIMIT 1)
  ORDER BY place, l.generation DESC, l.id),

-- section: work
-- Whether any entry is left that is work, read without locks; evaluated only when used. The search is that of `found`,
-- and cannot be shared with it: a row lock does not reach into a CTE.
work AS MATERIALIZED (
  SELECT 1
  FROM lanes
  CROSS JOIN LATERAL (
    SELECT 1 FROM labeling_queueentry e
    WHERE e.lane_id = lanes.lane_id AND e.is_open AND (e.key, e.trace_id) < (lanes.key, lanes.trace_id)
      AND NOT EXISTS (
        SELECT 1 FROM labeling_assignment met
        WHERE met.trace_id = e.trace_id AND met.rater_id = lanes.rater_id
          AND (lanes.purpose NOT IN ('training', 'screening')
               OR (met.purpose = lanes.purpose AND met.attempt = lanes.attempt) OR met.state IN ('held', 'opened'))
          AND (met.opened_at IS NOT NULL OR met.state NOT IN ('released', 'lapsed')))
    ORDER BY e.key DESC, e.trace_id DESC LIMIT 1) e
  WHERE lanes.place IS NOT NULL AND lanes.arm <> 'gold'
  LIMIT 1),

-- section: take
-- The next entry below the rater's position in the first lane that has one: `lanes` comes in its order, and the loop
-- ends with the first entry, so that later lanes are not read. A rater does not get a trace again that they were shown
-- before; one that was only held for them, and never opened, may come again. A new attempt at training or screening
-- shows the same traces again, except for those open in front of the rater. NO KEY UPDATE lets foreign keys to the
-- entry pass.
--
-- Gold is given out only beside work: where no work is left, a trace would give itself away as gold.
found AS MATERIALIZED (
  SELECT lanes.*, e.entry_id, e.trace_id AS found_id, e.key AS found_key, e.draw_id
  FROM lanes
  CROSS JOIN LATERAL (
    SELECT e.id AS entry_id, e.trace_id, e.key, e.draw_id FROM labeling_queueentry e
    WHERE e.lane_id = lanes.lane_id AND e.is_open AND (e.key, e.trace_id) < (lanes.key, lanes.trace_id)
      AND NOT EXISTS (
        SELECT 1 FROM labeling_assignment met
        WHERE met.trace_id = e.trace_id AND met.rater_id = lanes.rater_id
          AND (lanes.purpose NOT IN ('training', 'screening')
               OR (met.purpose = lanes.purpose AND met.attempt = lanes.attempt) OR met.state IN ('held', 'opened'))
          AND (met.opened_at IS NOT NULL OR met.state NOT IN ('released', 'lapsed')))
    ORDER BY e.key DESC, e.trace_id DESC LIMIT 1
    FOR NO KEY UPDATE OF e SKIP LOCKED) e
  WHERE lanes.place IS NOT NULL AND NOT EXISTS (SELECT 1 FROM lanes held WHERE held.is_held)
    AND (lanes.arm <> 'gold' OR EXISTS (SELECT 1 FROM work))
  LIMIT 1),

slot AS (UPDATE labeling_queueentry e SET slots_left = e.slots_left - 1 FROM found WHERE e.id = found.entry_id),

-- An assignment that was only held is revived, so that late messages of a browser find it. If the row is in any other
-- state, two claims of the same rater have met: `lease_ends_at` becomes NULL, a constraint rejects the statement, and
-- the slot stays in the queue.
made AS (
  INSERT INTO labeling_assignment AS a (
    project_id, rater_id, trace_id, lane_id, lane_key, draw_id, purpose, attempt, origin, population, state,
    holds_slot, held_at, opened_at, lease_ends_at, ended_reason, guideline_id, saw_reference_answer,
    saw_final_verdict, is_assisted, revision, submitted_revision, version)
  SELECT project_id, rater_id, found_id, lane_id, found_key, draw_id, purpose, attempt, 'here', population,
    CASE WHEN opened THEN 'opened' ELSE 'held' END, true, now, CASE WHEN opened THEN now END,
    now + CASE WHEN opened THEN lease_seconds * interval '1 second' ELSE held_for END, '',
    CASE WHEN opened THEN guideline_id END, CASE WHEN opened THEN shows_reference_answer END,
    CASE WHEN opened THEN shows_final_verdict END, false, 1, 0, 0
  FROM found
  ON CONFLICT (trace_id, rater_id, purpose, attempt) DO UPDATE SET
    lane_id = excluded.lane_id, lane_key = excluded.lane_key, draw_id = excluded.draw_id,
    population = excluded.population, state = excluded.state, holds_slot = true, held_at = excluded.held_at,
    opened_at = excluded.opened_at, ended_at = NULL, ended_reason = '', guideline_id = excluded.guideline_id,
    saw_reference_answer = excluded.saw_reference_answer, saw_final_verdict = excluded.saw_final_verdict,
    lease_ends_at = CASE WHEN a.opened_at IS NULL AND a.state IN ('released', 'lapsed')
                         THEN excluded.lease_ends_at END
  RETURNING id, trace_id, purpose, state, lease_ends_at, draw_id)

-- `came_up_empty` are the lanes tried before, where the rater's mark lags behind. In lanes without arrivals the mark of
-- an empty lane is the lowest key.
SELECT made.id AS assignment_id, made.trace_id, made.purpose, found.arm, made.state, made.lease_ends_at, made.draw_id,
  ARRAY(SELECT tried.lane_id FROM lanes tried WHERE tried.place < found.place AND tried.key >
        CASE WHEN tried.arm IN ('top_up', 'opinion') THEN tried.arrivals_until
             ELSE (-9223372036854775808)::bigint END) AS came_up_empty
FROM made, found

-- Compare the two headline submissions of a trace, and mark the trace as due for settling. It is one statement, because
-- it runs after every submit.
--
-- Parameters
--   trace   the trace, whose row the caller has locked
--   now     the time of the count
--
-- The file is one statement. A recount builds its query from the sections: see tallies.py.

-- section: mark
WITH due AS (
  INSERT INTO labeling_settlement (trace_id, project_id, state, reason, n_readings, n_votes, consensus_revision,
    changed_at, is_due)
  SELECT t.id, t.project_id, 'reading', '', 0, 0, 0, %(now)s::timestamptz, true FROM labeling_trace t
  WHERE t.id = %(trace)s
  ON CONFLICT (trace_id) DO UPDATE SET is_due = true),

-- section: traces
-- A trace that has both headline submissions stays as it is. The trace is a parameter of its own: for a list of unknown
-- length, PostgreSQL expects ten rows and reads whole tables.
asked AS (
  SELECT t.id AS trace_id, t.project_id, t.problem_id FROM labeling_trace t
  WHERE t.id = %(trace)s
    AND NOT EXISTS (SELECT 1 FROM labeling_agreementtally y WHERE y.trace_id = t.id AND y.second_id IS NOT NULL)),

-- section: count
submitted AS (
  SELECT a.trace_id, a.id, a.rater_id, a.guideline_id, a.draw_id,
    s.finish_reason IN ('give_up', 'bad_problem') AS was_cut_off,
    ROW_NUMBER() OVER (PARTITION BY a.trace_id ORDER BY s.id) AS turn
  FROM asked q
  JOIN labeling_assignment a ON a.trace_id = q.trace_id AND a.purpose = 'work' AND a.state = 'submitted'
    AND a.population = 'scheduled' AND a.origin = 'here' AND NOT a.is_assisted AND a.set_aside_id IS NULL
  JOIN labeling_rater r ON r.id = a.rater_id AND r.kind = 'member'
  JOIN labeling_submission s ON s.assignment_id = a.id AND s.revision = 1),

-- The headline: the first two by number of submission. Numbers are assigned while the trace is locked.
reading AS (SELECT * FROM submitted WHERE turn <= 2),

-- The rateable steps, numbered.
step AS (
  SELECT st.trace_id, st.id, st.kind, ROW_NUMBER() OVER (PARTITION BY st.trace_id ORDER BY st.position) - 1 AS place,
    COUNT(*) OVER (PARTITION BY st.trace_id) AS n_steps
  FROM asked q
  JOIN labeling_step st ON st.trace_id = q.trace_id AND st.is_rateable),

-- Each rating with its submission and the number of its step.
said AS (
  SELECT x.trace_id, x.turn, st.kind, st.place, o.position AS option_place, j.option_id, j.rating
  FROM reading x
  JOIN labeling_stepreview u ON u.assignment_id = x.id AND u.revision = 1
  JOIN step st ON st.id = u.step_id
  JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
  JOIN labeling_option o ON o.id = j.option_id),

stopped AS (
  SELECT trace_id, turn, MIN(place) FILTER (WHERE rating = -1) AS place, COUNT(*) AS n_rated
  FROM said WHERE option_place = 0 GROUP BY trace_id, turn),

-- The first error of each submission: the number of all steps if it found none, of the rated steps if it was cut off.
report AS (
  SELECT x.trace_id, x.turn, x.id, x.rater_id, x.guideline_id, x.draw_id,
    COALESCE(p.place, CASE WHEN x.was_cut_off THEN COALESCE(p.n_rated, 0)
                           ELSE (SELECT MAX(st.n_steps) FROM step st WHERE st.trace_id = x.trace_id) END) AS ends_at,
    p.place IS NULL AND x.was_cut_off AS is_censored,
    COALESCE((SELECT st.kind FROM step st WHERE st.trace_id = x.trace_id AND st.place = p.place), '') AS ends_on
  FROM reading x LEFT JOIN stopped p ON p.trace_id = x.trace_id AND p.turn = x.turn),

-- The lowest and highest rating of each option, and how many submissions rated it.
met AS (
  SELECT trace_id, kind, option_place > 0 AS is_alternative, option_id, MIN(rating) AS low, MAX(rating) AS high,
    COUNT(*) AS n
  FROM said GROUP BY trace_id, kind, option_place > 0, option_id),

-- What an option must look like to count in each of the counters.
counted AS (
  SELECT trace_id, kind, is_alternative,
    COUNT(*) FILTER (WHERE n = 1 AND low = -1 AND high = -1) AS negative,
    COUNT(*) FILTER (WHERE n = 1 AND low = 0 AND high = 0) AS neutral,
    COUNT(*) FILTER (WHERE n = 1 AND low = 1 AND high = 1) AS positive,
    COUNT(*) FILTER (WHERE n = 2 AND low = -1 AND high = -1) AS negative_negative,
    COUNT(*) FILTER (WHERE n = 2 AND low = -1 AND high = 0) AS negative_neutral,
    COUNT(*) FILTER (WHERE n = 2 AND low = -1 AND high = 1) AS negative_positive,
    COUNT(*) FILTER (WHERE n = 2 AND low = 0 AND high = 0) AS neutral_neutral,
    COUNT(*) FILTER (WHERE n = 2 AND low = 0 AND high = 1) AS neutral_positive,
    COUNT(*) FILTER (WHERE n = 2 AND low = 1 AND high = 1) AS positive_positive
  FROM met GROUP BY trace_id, kind, is_alternative)

-- section: insert
INSERT INTO labeling_agreementtally (
  trace_id, step_kind, is_alternative, project_id, problem_id, generation, first_id, second_id, first_rater_id, second_rater_id,
  guideline_id, has_two_guidelines, n_steps, first_end, second_end, is_first_censored, is_second_censored,
  first_kind, second_kind, negative, neutral, positive, negative_negative, negative_neutral, negative_positive,
  neutral_neutral, neutral_positive, positive_positive)
-- section: rows
SELECT c.trace_id, c.kind, c.is_alternative, q.project_id, q.problem_id, COALESCE(d.batch, 0), one.id, two.id, one.rater_id, two.rater_id,
  one.guideline_id, two.id IS NOT NULL AND COALESCE(one.guideline_id, 0) <> COALESCE(two.guideline_id, 0),
  (SELECT MAX(st.n_steps) FROM step st WHERE st.trace_id = c.trace_id), one.ends_at, two.ends_at, one.is_censored,
  two.is_censored, one.ends_on, COALESCE(two.ends_on, ''),
  c.negative, c.neutral, c.positive, c.negative_negative, c.negative_neutral, c.negative_positive, c.neutral_neutral,
  c.neutral_positive, c.positive_positive
FROM counted c
JOIN asked q ON q.trace_id = c.trace_id
JOIN report one ON one.trace_id = c.trace_id AND one.turn = 1
LEFT JOIN report two ON two.trace_id = c.trace_id AND two.turn = 2
LEFT JOIN labeling_tracedraw d ON d.id = one.draw_id
-- section: conflict
ON CONFLICT (trace_id, step_kind, is_alternative) DO UPDATE SET
  project_id = excluded.project_id, problem_id = excluded.problem_id, generation = excluded.generation,
  first_id = excluded.first_id, second_id = excluded.second_id, first_rater_id = excluded.first_rater_id,
  second_rater_id = excluded.second_rater_id, guideline_id = excluded.guideline_id,
  has_two_guidelines = excluded.has_two_guidelines, n_steps = excluded.n_steps, first_end = excluded.first_end,
  second_end = excluded.second_end, is_first_censored = excluded.is_first_censored,
  is_second_censored = excluded.is_second_censored, first_kind = excluded.first_kind,
  second_kind = excluded.second_kind, negative = excluded.negative, neutral = excluded.neutral,
  positive = excluded.positive, negative_negative = excluded.negative_negative,
  negative_neutral = excluded.negative_neutral, negative_positive = excluded.negative_positive,
  neutral_neutral = excluded.neutral_neutral, neutral_positive = excluded.neutral_positive,
  positive_positive = excluded.positive_positive

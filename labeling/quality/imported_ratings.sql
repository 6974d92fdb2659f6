-- The ratings that people gave outside of the platform, in imported files: how many options of each problem have which
-- numbers of ratings -1, 0 and +1.
--
-- Parameters: project; manifest, to read only the submissions in its rows, or null for all; only, the raters to read,
-- or null for all; without, raters to leave out
--
-- The file is three statements that share their first section: see imported_labels.py.

-- section: work
-- One submission per trace and labeler: the first one, because a file may repeat it and unnamed labelers are one rater.
WITH work AS (
  SELECT DISTINCT ON (a.trace_id, a.rater_id) a.id, a.trace_id, a.rater_id, a.finish_reason,
    a.submitted_revision AS revision, t.problem_id, t.kind = 'live' AS is_live
  FROM labeling_assignment a
  JOIN labeling_rater r ON r.id = a.rater_id AND r.kind <> 'machine'
  JOIN labeling_trace t ON t.id = a.trace_id AND t.withdrawn_at IS NULL
  WHERE a.project_id = %(project)s AND a.origin = 'imported' AND a.purpose = 'work' AND a.state = 'submitted'
    AND NOT a.is_assisted AND a.set_aside_id IS NULL AND NOT a.rater_id = ANY (%(without)s::bigint[])
    AND (%(only)s::bigint[] IS NULL OR a.rater_id = ANY (%(only)s::bigint[])) AND (%(manifest)s::bigint IS NULL OR a.id IN (
      SELECT u.assignment_id FROM labeling_manifestrow m JOIN labeling_submission u ON u.id = m.submission_id
      WHERE m.manifest_id = %(manifest)s))
  ORDER BY a.trace_id, a.rater_id, a.id),

-- section: version
-- Changes whenever the other two statements read other labels.
total AS (SELECT COUNT(*)::bigint AS n, COALESCE(SUM(id), 0)::bigint AS ids FROM work)
SELECT n, ids FROM total

-- section: ratings
rated AS (
  SELECT w.problem_id, w.is_live, o.position > 0 AS is_alternative,
    COUNT(*) FILTER (WHERE j.rating = -1) AS negative, COUNT(*) FILTER (WHERE j.rating = 0) AS neutral,
    COUNT(*) FILTER (WHERE j.rating = 1) AS positive
  FROM work w
  JOIN labeling_stepreview u ON u.assignment_id = w.id AND u.revision = w.revision
  JOIN labeling_step st ON st.id = u.step_id AND st.is_rateable
  JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
  JOIN labeling_option o ON o.id = j.option_id
  GROUP BY w.problem_id, w.is_live, o.position > 0, j.option_id)

SELECT problem_id, is_live, is_alternative, negative, neutral, positive, COUNT(*) AS n_options
FROM rated GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6

-- section: reports
-- The first error of each submission, counted in rateable steps; their number if it found none. A submission that ended
-- early, or that does not rate every step, is cut off after the steps that it rated.
step AS (
  SELECT st.trace_id, st.id, ROW_NUMBER() OVER (PARTITION BY st.trace_id ORDER BY st.position) - 1 AS place,
    COUNT(*) OVER (PARTITION BY st.trace_id) AS n_steps
  FROM labeling_step st
  WHERE st.is_rateable AND st.trace_id IN (SELECT w.trace_id FROM work w WHERE NOT w.is_live)),

rated AS (
  SELECT w.id, MIN(st.place) FILTER (WHERE j.rating = -1) AS place, COUNT(*) AS n_rated
  FROM work w
  JOIN labeling_stepreview u ON u.assignment_id = w.id AND u.revision = w.revision
  JOIN step st ON st.id = u.step_id
  JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
  JOIN labeling_option o ON o.id = j.option_id AND o.position = 0
  GROUP BY w.id)

SELECT w.trace_id, w.rater_id, w.problem_id, n.n_steps,
  COALESCE(x.place, CASE WHEN x.n_rated = n.n_steps THEN n.n_steps ELSE x.n_rated END) AS ends_at,
  (x.place IS NULL AND (x.n_rated < n.n_steps OR COALESCE(w.finish_reason IN ('give_up', 'bad_problem'), false)))::int
    AS is_censored
FROM work w
JOIN rated x ON x.id = w.id
JOIN (SELECT DISTINCT trace_id, n_steps FROM step) n ON n.trace_id = w.trace_id
ORDER BY w.trace_id, w.id

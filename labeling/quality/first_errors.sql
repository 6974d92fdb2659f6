-- Where each submitted revision saw the first error. The columns are the fields of
-- `submitted_reports.RevisionReport`, in the same order.
--
-- Parameter
--   revisions   JSON, a list of [assignment, revision]: one parameter, so that the statement is prepared once
--
-- Each revision is looked up by itself. PostgreSQL expects a hundred of them, and would read all step reviews of a small
-- database to join them.
SELECT q.assignment_id, q.revision, s.trace_id, s.rater_id, r.position, r.n_passed,
  r.position IS NULL AND (s.is_ended OR r.n_rated = 0) AS is_censored, s.has_bad_problem, s.is_blind, s.is_extra
FROM (SELECT (pair ->> 0)::bigint AS assignment_id, (pair ->> 1)::integer AS revision
      FROM json_array_elements(%(revisions)s::json) AS given (pair)) q
CROSS JOIN LATERAL (
  SELECT a.trace_id, CASE WHEN a.is_assisted AND w.kind <> 'machine' THEN -a.rater_id ELSE a.rater_id END AS rater_id,
    COALESCE(s.finish_reason IN ('give_up', 'bad_problem'), false) AS is_ended,
    COALESCE(s.finish_reason = 'bad_problem', false) AS has_bad_problem,
    NOT a.is_assisted AND w.kind <> 'machine' AS is_blind, a.population = 'extra' AS is_extra
  FROM labeling_submission s JOIN labeling_assignment a ON a.id = s.assignment_id
  JOIN labeling_rater w ON w.id = a.rater_id
  WHERE s.assignment_id = q.assignment_id AND s.revision = q.revision LIMIT 1) s
CROSS JOIN LATERAL (
  SELECT MIN(first_error) AS position, COUNT(*) AS n_rated,
    COUNT(*) FILTER (WHERE first_error IS NULL OR position < first_error) AS n_passed
  -- Ratings of the trace's own steps: the first option of each.
  FROM (
    SELECT st.position, MIN(st.position) FILTER (WHERE j.rating = -1) OVER () AS first_error
    FROM labeling_stepreview u
    JOIN labeling_step st ON st.id = u.step_id AND st.is_rateable
    JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
    JOIN labeling_option o ON o.id = j.option_id AND o.position = 0
    WHERE u.assignment_id = q.assignment_id AND u.revision = q.revision
      -- Who saw only a part of the trace cannot tell where its first error is: such a revision is censored.
      AND NOT EXISTS (SELECT 1 FROM labeling_visibilitydraw v
                      WHERE v.assignment_id = q.assignment_id AND v.condition <> 'both')) rated) r
ORDER BY q.assignment_id, q.revision

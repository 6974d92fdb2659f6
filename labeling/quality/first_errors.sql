-- Where each submitted revision saw the first error. The columns are the fields of
-- `submitted_reports.RevisionReport`, in the same order.
--
-- Parameter
--   revisions   JSON, a list of [assignment, revision]: one parameter, so that the statement is prepared once
WITH asked AS (
  SELECT (pair ->> 0)::bigint AS assignment_id, (pair ->> 1)::integer AS revision
  FROM json_array_elements(%(revisions)s::json) AS given (pair)),

-- Ratings of the trace's own steps: the first option of each.
rated AS (
  SELECT q.assignment_id, q.revision, st.position, j.rating
  FROM asked q
  JOIN labeling_stepreview u ON u.assignment_id = q.assignment_id AND u.revision = q.revision
  JOIN labeling_step st ON st.id = u.step_id AND st.is_rateable
  JOIN labeling_judgment j ON j.turn_id = u.id AND j.rating IS NOT NULL
  JOIN labeling_option o ON o.id = j.option_id AND o.position = 0
  -- Who saw only a part of the trace cannot tell where its first error is: such a revision is censored.
  WHERE NOT EXISTS (SELECT 1 FROM labeling_visibilitydraw v
                    WHERE v.assignment_id = q.assignment_id AND v.condition <> 'both')),

ended AS (
  SELECT assignment_id, revision, MIN(position) FILTER (WHERE rating = -1) AS position
  FROM rated GROUP BY assignment_id, revision)

SELECT s.assignment_id, s.revision, a.trace_id,
  CASE WHEN a.is_assisted AND w.kind <> 'machine' THEN -a.rater_id ELSE a.rater_id END AS rater_id, e.position,
  COUNT(r.position) FILTER (WHERE e.position IS NULL OR r.position < e.position) AS n_passed,
  e.position IS NULL AND (COALESCE(s.finish_reason IN ('give_up', 'bad_problem'), false) OR COUNT(r.position) = 0)
    AS is_censored,
  COALESCE(s.finish_reason = 'bad_problem', false) AS has_bad_problem,
  NOT a.is_assisted AND w.kind <> 'machine' AS is_blind, a.population = 'extra' AS is_extra
FROM asked q
JOIN labeling_submission s ON s.assignment_id = q.assignment_id AND s.revision = q.revision
JOIN labeling_assignment a ON a.id = s.assignment_id
JOIN labeling_rater w ON w.id = a.rater_id
LEFT JOIN ended e ON e.assignment_id = q.assignment_id AND e.revision = q.revision
LEFT JOIN rated r ON r.assignment_id = q.assignment_id AND r.revision = q.revision
GROUP BY s.id, a.id, w.id, e.position
ORDER BY s.assignment_id, s.revision

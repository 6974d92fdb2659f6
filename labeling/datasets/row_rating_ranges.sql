-- The same as row_ratings.sql, faster, for imported submissions: their step reviews and judgments have consecutive ids,
-- and each review shows the first option only and has one judgment. Ratings come as two texts, `chosen` and `judged`, with
-- one part per review. Submissions made on the platform are not in the result: their ids interleave with those of other
-- people, and row_ratings.sql looks each of them up.
--
-- Parameters: manifest, start, stop
SELECT m.position, x.first_step, x.last_step, x.n AS n_turns, x.times, x.chosen, y.judged
FROM labeling_manifestrow m
JOIN labeling_submission u ON u.id = m.submission_id
CROSS JOIN LATERAL (
  SELECT COUNT(*) AS n, MIN(t.step_id) AS first_step, MAX(t.step_id) AS last_step, MIN(t.id - t.step_id) AS ahead,
    MAX(t.id - t.step_id) AS most_ahead, STRING_AGG(t.step_id || ':' || t.active_ms, ' ') AS times,
    COUNT(*) FILTER (WHERE t.shown IS DISTINCT FROM '0' OR t.written_text IS NOT NULL OR t.comment <> ''
      OR t.missing <> '') AS n_others,
    STRING_AGG(COALESCE(t.chosen::text, ''), ';') AS chosen
  FROM (
    SELECT t.id, t.step_id, t.shown, t.chosen, t.written_text, t.comment, t.missing, t.active_ms FROM labeling_stepreview t
    WHERE t.assignment_id = u.assignment_id AND t.revision = u.revision ORDER BY t.step_id) AS t) AS x
CROSS JOIN LATERAL (
  SELECT COUNT(*) AS n,
    COUNT(*) FILTER (WHERE j.category <> '' OR j.reason <> '' OR j.error_link <> '' OR j.severity IS NOT NULL
      OR j.evidence IS NOT NULL OR j.citations IS NOT NULL OR j.value IS NOT NULL OR j.rollouts IS NOT NULL)
      AS n_others,
    STRING_AGG(COALESCE(j.rating::text, '') || ',' || COALESCE(j.flagged::text, ''), ';') AS judged
  FROM (
    SELECT j.rating, j.flagged, j.category, j.reason, j.error_link, j.severity, j.evidence, j.citations, j.value,
      j.rollouts
    FROM labeling_judgment j
    WHERE j.turn_id BETWEEN x.first_step + x.ahead AND x.last_step + x.ahead AND x.ahead = x.most_ahead
      AND x.last_step - x.first_step = x.n - 1 AND x.n_others = 0 ORDER BY j.turn_id) AS j) AS y
WHERE m.manifest_id = %(manifest)s AND m.position >= %(start)s AND m.position < %(stop)s AND x.n > 0 AND y.n = x.n
  AND y.n_others = 0

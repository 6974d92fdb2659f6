-- The ratings of some rows of a manifest, for `manifest.RowRatings`: `n_others` step reviews have more than ratings
-- (a written step, a comment, a category, a link to an error, a severity, a value); `times` and `cells` are as in `formats.rows.CompactRow`.
--
-- Parameters: manifest, positions
SELECT m.position, MIN(t.step_id) AS first_step, MAX(t.step_id) AS last_step, COUNT(DISTINCT t.id) AS n_turns,
  SUM(CASE WHEN t.shown IS NOT NULL AND t.shown <> '' AND t.written_text IS NULL AND t.comment = '' AND t.missing = '' AND (j.id IS NULL
    OR j.category = '' AND j.reason = '' AND j.error_link = '' AND j.severity IS NULL AND j.evidence IS NULL AND j.citations IS NULL AND j.value IS NULL AND j.rollouts IS NULL) THEN 0 ELSE 1 END) AS n_others,
  STRING_AGG(CASE WHEN t.active_ms IS NOT NULL THEN t.step_id || ':' || t.active_ms END, ' '
    ORDER BY t.step_id, j.option_id) AS times,
  STRING_AGG(COALESCE(t.shown, '') || ',' || COALESCE(t.chosen::text, '') || ',' || COALESCE(j.rating::text, '')
    || ',' || COALESCE(j.flagged::text, '')
    || CASE WHEN t.shown = '0' THEN '' ELSE ',' || t.step_id || ',' || COALESCE(j.option_id::text, '') END,
    ';' ORDER BY t.step_id, j.option_id) AS cells
FROM labeling_manifestrow m
JOIN labeling_submission u ON u.id = m.submission_id
JOIN labeling_stepreview t ON t.assignment_id = u.assignment_id AND t.revision = u.revision
LEFT JOIN labeling_judgment j ON j.turn_id = t.id
WHERE m.manifest_id = %(manifest)s AND m.position = ANY (%(positions)s) GROUP BY m.position

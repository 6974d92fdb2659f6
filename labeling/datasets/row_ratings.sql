-- The ratings of these rows of a manifest: the first and last step, how many turns, how many of them say more than a
-- rating, times, and ratings.
--
-- Parameters: manifest, positions
SELECT m.position, MIN(t.step_id), MAX(t.step_id), COUNT(DISTINCT t.id),
  SUM(CASE WHEN t.shown IS NOT NULL AND t.shown <> '' AND t.written_text IS NULL AND t.comment = '' AND (j.id IS NULL
    OR j.category = '' AND j.reason = '' AND j.value IS NULL AND j.rollouts IS NULL) THEN 0 ELSE 1 END),
  STRING_AGG(CASE WHEN t.active_ms IS NOT NULL THEN t.step_id || ':' || t.active_ms END, ' '
    ORDER BY t.step_id, j.option_id),
  STRING_AGG(COALESCE(t.shown, '') || ',' || COALESCE(t.chosen::text, '') || ',' || COALESCE(j.rating::text, '')
    || ',' || COALESCE(j.flagged::text, '')
    || CASE WHEN t.shown = '0' THEN '' ELSE ',' || t.step_id || ',' || COALESCE(j.option_id::text, '') END,
    ';' ORDER BY t.step_id, j.option_id)
FROM labeling_manifestrow m
JOIN labeling_submission u ON u.id = m.submission_id
JOIN labeling_stepreview t ON t.assignment_id = u.assignment_id AND t.revision = u.revision
LEFT JOIN labeling_judgment j ON j.turn_id = t.id
WHERE m.manifest_id = %(manifest)s AND m.position = ANY (%(positions)s) GROUP BY m.position

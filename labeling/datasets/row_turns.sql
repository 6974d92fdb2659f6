-- Every judgment of every step review of some rows of a manifest, for `manifest.TurnRow`. A review without judgments
-- has one row without an option.
--
-- Parameters: manifest, positions
SELECT m.position, t.id AS turn, t.step_id AS step, t.shown, t.chosen, t.written_text, t.written_rating,
  t.written_flagged, t.written_corrected_rating, t.comment, t.active_ms, j.option_id AS option, j.rating, j.flagged,
  j.category, j.reason, j.error_link, j.severity, j.value, j.rollouts, j.successes, j.evidence, j.citations, t.missing
FROM labeling_manifestrow m
JOIN labeling_submission u ON u.id = m.submission_id
JOIN labeling_stepreview t ON t.assignment_id = u.assignment_id AND t.revision = u.revision
JOIN labeling_step s ON s.id = t.step_id
LEFT JOIN labeling_judgment j ON j.turn_id = t.id
WHERE m.manifest_id = %(manifest)s AND m.position = ANY (%(positions)s)
ORDER BY m.position, s.position, t.id

-- Open a held trace in the usual case: its rater is working and eligible. Returns no row, and changes nothing, in any other
-- case; `open_assignment` then finds the reason. update_assignment.sql and claim.sql set the same columns.
--
-- Parameters: assignment, rater, now
UPDATE labeling_assignment a SET version = a.version + 1, state = 'opened', opened_at = %(now)s::timestamptz,
  guideline_id = p.guideline_id, saw_reference_answer = p.shows_reference_answer, saw_final_verdict = p.shows_final_verdict,
  lease_ends_at = %(now)s::timestamptz + p.lease_seconds * interval '1 second'
FROM labeling_rater r JOIN labeling_project p ON p.id = r.project_id
WHERE a.id = %(assignment)s AND a.rater_id = %(rater)s AND a.state = 'held' AND r.id = a.rater_id
  AND r.stage = 'working' AND r.paused_at IS NULL AND r.removed_at IS NULL AND p.state = 'open'
  AND (p.guideline_id IS NULL OR p.guideline_id = r.read_guideline_id)
  AND (p.consent_text_id IS NULL OR p.consent_text_id = r.agreed_text_id)
RETURNING a.version

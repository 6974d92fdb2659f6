-- Open a held trace in the usual case: its rater is working and eligible. Returns no row, and changes nothing, in any other
-- case; `open_assignment` then finds the reason. update_assignment.sql and claim.sql set the same columns.
--
-- It does not wait if the row is locked: submissions.py runs it within the statement that submits another assignment.
--
-- Parameters: held, rater, now
UPDATE labeling_assignment a SET version = a.version + 1, state = 'opened', opened_at = %(now)s::timestamptz,
  guideline_id = p.guideline_id, saw_reference_answer = p.shows_reference_answer, saw_final_verdict = p.shows_final_verdict,
  lease_ends_at = %(now)s::timestamptz + p.lease_seconds * interval '1 second'
FROM (SELECT id, rater_id FROM labeling_assignment
      WHERE id = %(held)s::bigint AND rater_id = %(rater)s AND state = 'held' FOR NO KEY UPDATE SKIP LOCKED) held
JOIN labeling_rater r ON r.id = held.rater_id JOIN labeling_project p ON p.id = r.project_id
WHERE a.id = held.id AND r.stage = 'working' AND r.paused_at IS NULL AND r.removed_at IS NULL AND p.state = 'open'
  AND (p.guideline_id IS NULL OR p.guideline_id = r.read_guideline_id)
  AND (p.consent_text_id IS NULL OR p.consent_text_id = r.agreed_text_id)
RETURNING a.version

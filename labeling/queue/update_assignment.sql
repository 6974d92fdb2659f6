-- Update an assignment: append edits to the history, upsert step reviews, judgments and answers, set the new version, and
-- open the assignment if it is held. Returns the new version. Returns no row, and changes nothing, if the assignment is not as
-- expected.
--
-- Parameters
--   assignment, version, state, revision, submitted_revision, is_reopened   the expected assignment
--   new_version    its version after the update
--   edits, reviews, judgments, answers   lists in JSON, each row an object by column
--   client, now    the client that sent the edits, and their time of arrival
--   lease_ends_at  the new end of the lease; NULL leaves it unchanged
--
-- The row is locked only if it is as expected. Otherwise `mine` is empty, and so are all other parts. The section
-- `answers` is left out if there are none, as in most projects. submissions.py uses `changes` to record and submit at once.

-- section: expected
WITH mine AS MATERIALIZED (
  SELECT id, %(new_version)s::integer AS version, revision, state, project_id FROM labeling_assignment
  WHERE id = %(assignment)s AND version = %(version)s AND state = %(state)s AND revision = %(revision)s
    AND submitted_revision = %(submitted_revision)s AND (reopened_at IS NOT NULL) = %(is_reopened)s::boolean
  FOR NO KEY UPDATE),

-- section: answers
new_answers AS (
  INSERT INTO labeling_traceanswer (assignment_id, revision, question, value, active_ms)
  SELECT mine.id, mine.revision, n.* FROM mine, json_to_recordset(%(answers)s::json)
    AS n(question text, value text, active_ms int)
  ON CONFLICT (assignment_id, revision, question) DO UPDATE SET value = excluded.value, active_ms = excluded.active_ms),

-- section: changes
new_edits AS (
  INSERT INTO labeling_ratingedit (assignment_id, client, version, revision, arrived_at, sequence, seen, kind, step, option,
    question, rating, flagged, category, error_link, severity, evidence, citations, text, active_ms, made_at, was_late,
    was_applied)
  SELECT mine.id, %(client)s, mine.version, mine.revision, %(now)s::timestamptz, w.*
  FROM mine, json_to_recordset(%(edits)s::json)
    AS w(sequence int, seen int, kind text, step int, option int, question text, rating int, flagged boolean, category text,
         error_link text, severity int, evidence jsonb, citations jsonb, text text, active_ms int, made_at timestamptz, was_late boolean, was_applied boolean)),

new_reviews AS (
  INSERT INTO labeling_stepreview (assignment_id, revision, step_id, shown, chosen, written_text, comment, active_ms, missing)
  SELECT mine.id, mine.revision, u.* FROM mine, json_to_recordset(%(reviews)s::json)
    AS u(step_id bigint, shown text, chosen int, written_text text, comment text, active_ms int, missing text)
  ON CONFLICT (assignment_id, revision, step_id) DO UPDATE SET shown = excluded.shown, chosen = excluded.chosen,
    written_text = excluded.written_text, comment = excluded.comment, active_ms = excluded.active_ms,
    missing = excluded.missing
  RETURNING id, step_id),

-- Every judgment of a batch has its step review in the same batch.
new_judgments AS (
  INSERT INTO labeling_judgment (turn_id, option_id, rating, flagged, category, reason, error_link, severity, evidence,
    citations)
  SELECT new_reviews.id, j.option_id, j.rating, j.flagged, j.category, j.reason, j.error_link, j.severity, j.evidence,
    j.citations
  FROM json_to_recordset(%(judgments)s::json)
    AS j(step_id bigint, option_id bigint, rating int, flagged boolean, category text, reason text,
         error_link text, severity int, evidence jsonb, citations jsonb)
  JOIN new_reviews USING (step_id)
  ON CONFLICT (turn_id, option_id) DO UPDATE SET rating = excluded.rating, flagged = excluded.flagged,
    category = excluded.category, reason = excluded.reason, error_link = excluded.error_link,
    severity = excluded.severity, evidence = excluded.evidence, citations = excluded.citations)

-- section: update
-- Opening fixes the guideline and what the rater can see. `claim.sql` sets the same columns for a new assignment.
UPDATE labeling_assignment a SET version = mine.version,
  state = CASE WHEN a.state = 'held' THEN 'opened' ELSE a.state END,
  opened_at = CASE WHEN a.state = 'held' THEN %(now)s::timestamptz ELSE a.opened_at END,
  guideline_id = CASE WHEN a.state = 'held' THEN p.guideline_id ELSE a.guideline_id END,
  saw_reference_answer = CASE WHEN a.state = 'held' THEN p.shows_reference_answer ELSE a.saw_reference_answer END,
  saw_final_verdict = CASE WHEN a.state = 'held' THEN p.shows_final_verdict ELSE a.saw_final_verdict END,
  lease_ends_at = COALESCE(%(lease_ends_at)s::timestamptz, a.lease_ends_at)
FROM mine JOIN labeling_project p ON p.id = mine.project_id WHERE a.id = mine.id RETURNING a.version

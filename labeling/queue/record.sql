-- Record work on an assignment: add writes to the history, put turns and judgments in place, move the assignment to its
-- new version, and open it if it was only held. Returns the new version, or no row, and then changes nothing, if the
-- assignment is no longer as it was read.
--
-- Parameters
--   assignment, version, state, revision, submitted_revision, is_reopened   the assignment as it was read
--   new_version    its version afterwards
--   content        JSON with the lists `writes`, `turns`, and `judgments`, each row an object by column
--   client, now    who sent the writes, and when they arrived
--   lease_ends_at  until when the trace stays with the rater; NULL leaves it as it is
--
-- The row is locked only if it still is as it was read: otherwise `mine` is empty, and so is everything else.
WITH mine AS MATERIALIZED (
  SELECT id, %(new_version)s::integer AS version, revision, state, project_id FROM labeling_assignment
  WHERE id = %(assignment)s AND version = %(version)s AND state = %(state)s AND revision = %(revision)s
    AND submitted_revision = %(submitted_revision)s AND (reopened_at IS NOT NULL) = %(is_reopened)s::boolean
  FOR NO KEY UPDATE),

content AS MATERIALIZED (SELECT %(content)s::json AS it),

written AS (
  INSERT INTO labeling_ratingedit (assignment_id, client, version, revision, arrived_at, sequence, seen, kind, step, option,
    rating, flagged, category, text, active_ms, made_at, was_late, was_applied)
  SELECT mine.id, %(client)s, mine.version, mine.revision, %(now)s::timestamptz, w.*
  FROM mine, content, json_to_recordset(content.it -> 'writes')
    AS w(sequence int, seen int, kind text, step int, option int, rating int, flagged boolean, category text, text text,
         active_ms int, made_at timestamptz, was_late boolean, was_applied boolean)),

turned AS (
  INSERT INTO labeling_stepreview (assignment_id, revision, step_id, shown, chosen, written_text, comment, active_ms)
  SELECT mine.id, mine.revision, u.* FROM mine, content, json_to_recordset(content.it -> 'turns')
    AS u(step_id bigint, shown text, chosen int, written_text text, comment text, active_ms int)
  ON CONFLICT (assignment_id, revision, step_id) DO UPDATE SET shown = excluded.shown, chosen = excluded.chosen,
    written_text = excluded.written_text, comment = excluded.comment, active_ms = excluded.active_ms
  RETURNING id, step_id),

-- A judgment finds its turn among those of this statement: every rated step has its turn in the batch.
judged AS (
  INSERT INTO labeling_judgment (turn_id, option_id, rating, flagged, category, reason)
  SELECT turned.id, j.option_id, j.rating, j.flagged, j.category, j.reason
  FROM content, json_to_recordset(content.it -> 'judgments')
    AS j(step_id bigint, option_id bigint, rating int, flagged boolean, category text, reason text)
  JOIN turned USING (step_id)
  ON CONFLICT (turn_id, option_id) DO UPDATE SET rating = excluded.rating, flagged = excluded.flagged,
    category = excluded.category, reason = excluded.reason)

-- Opening fixes the guideline and what the rater can see. `claim.sql` opens a new assignment at once in the same way.
UPDATE labeling_assignment a SET version = mine.version,
  state = CASE WHEN a.state = 'held' THEN 'opened' ELSE a.state END,
  opened_at = CASE WHEN a.state = 'held' THEN %(now)s::timestamptz ELSE a.opened_at END,
  guideline_id = CASE WHEN a.state = 'held' THEN p.guideline_id ELSE a.guideline_id END,
  saw_reference_answer = CASE WHEN a.state = 'held' THEN p.shows_reference_answer ELSE a.saw_reference_answer END,
  saw_final_verdict = CASE WHEN a.state = 'held' THEN p.shows_final_verdict ELSE a.saw_final_verdict END,
  lease_ends_at = COALESCE(%(lease_ends_at)s::timestamptz, a.lease_ends_at)
FROM mine JOIN labeling_project p ON p.id = mine.project_id WHERE a.id = mine.id RETURNING a.version

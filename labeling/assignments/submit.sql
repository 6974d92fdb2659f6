-- Submit an assignment: insert the submission and set the state `submitted`. Returns the id of the submission. Returns no
-- row, and changes nothing, if the assignment is not as expected.
--
-- Parameters
--   edited_version   its version after the edits that the same statement records; `version` if it records none
--   assignment, state, version, revision, submitted_revision, is_reopened   the expected assignment
--   now, finish_reason, finish_note, total_ms, is_quality_control, is_screening, protocol
--     the submission
--   population, holds_slot   how a late submission counts; NULL leaves both unchanged
--   first_reason   the finish reason of the submission, if it differs from that of the assignment
--   is_due   whether the submission is counted or scored in the background
--
-- submissions.py makes two statements of these sections. The one for the usual submit also has the edits of the message,
-- the event, the pay and the opening of the next trace: each statement of its own would cost as much again as its work.
--
-- The assignment is locked only if it is as expected, and its trace with it, so that submissions of a trace cannot change
-- while it is counted or settled.

-- section: expected
WITH mine AS MATERIALIZED (
  SELECT a.id, a.project_id, a.revision, %(edited_version)s::integer AS version
  FROM labeling_assignment a JOIN labeling_trace t ON t.id = a.trace_id
  WHERE a.id = %(assignment)s AND a.state = %(state)s AND a.version = %(version)s AND a.revision = %(revision)s
    AND a.submitted_revision = %(submitted_revision)s AND (a.reopened_at IS NOT NULL) = %(is_reopened)s::boolean
  FOR NO KEY UPDATE OF a, t),

-- section: submission
new_submission AS (
  INSERT INTO labeling_submission (assignment_id, project_id, revision, submitted_at, finish_reason, finish_note,
    total_ms, is_quality_control, is_screening, protocol)
  SELECT id, project_id, revision, %(now)s::timestamptz, %(first_reason)s::varchar, %(finish_note)s, %(total_ms)s,
    %(is_quality_control)s, %(is_screening)s, %(protocol)s
  FROM mine RETURNING id)

-- section: update
-- `submitted_at` stays that of the first submission. Each correction has its own time in its submission.
UPDATE labeling_assignment AS a SET state = 'submitted', submitted_at = COALESCE(a.submitted_at, %(now)s::timestamptz),
  finish_reason = %(finish_reason)s::varchar, submitted_revision = a.revision, reopened_at = NULL,
  version = mine.version + 1, population = COALESCE(%(population)s, a.population),
  holds_slot = COALESCE(%(holds_slot)s, a.holds_slot),
  due_at = CASE WHEN %(is_due)s::boolean THEN %(now)s::timestamptz END
FROM mine, new_submission n WHERE a.id = mine.id RETURNING n.id

-- Submit an assignment: make its submission and move it to `submitted`. Returns the submission's id, or no row, and then
-- changes nothing, if the assignment is no longer as it was read.
--
-- Parameters
--   assignment, state, version, revision, submitted_revision, is_reopened   the assignment as it was read
--   now, finish_reason, finish_note, total_ms, is_quality_control, is_screening   the submission
--   population, holds_slot   what a late submission counts as; NULL leaves both as they are
--
-- The assignment is locked only as it was read, and its trace with it: of two submits of one trace, the later counts
-- both.
WITH mine AS MATERIALIZED (
  SELECT a.id, a.project_id, a.revision FROM labeling_assignment a JOIN labeling_trace t ON t.id = a.trace_id
  WHERE a.id = %(assignment)s AND a.state = %(state)s AND a.version = %(version)s AND a.revision = %(revision)s
    AND a.submitted_revision = %(submitted_revision)s AND (a.reopened_at IS NOT NULL) = %(is_reopened)s::boolean
  FOR NO KEY UPDATE OF a, t),

made AS (
  INSERT INTO labeling_submission (assignment_id, project_id, revision, submitted_at, finish_reason, finish_note,
    total_ms, is_quality_control, is_screening)
  SELECT id, project_id, revision, %(now)s::timestamptz, %(finish_reason)s::varchar, %(finish_note)s, %(total_ms)s,
    %(is_quality_control)s, %(is_screening)s
  FROM mine RETURNING id)

-- The time of the first submission stays: corrections have their own in their submissions.
UPDATE labeling_assignment AS a SET state = 'submitted', submitted_at = COALESCE(a.submitted_at, %(now)s::timestamptz),
  finish_reason = %(finish_reason)s::varchar, submitted_revision = a.revision, reopened_at = NULL,
  version = a.version + 1, population = COALESCE(%(population)s, a.population),
  holds_slot = COALESCE(%(holds_slot)s, a.holds_slot)
FROM mine, made WHERE a.id = mine.id RETURNING made.id

-- The answer sheet of an assignment as one row: columns of assignment, project, trace and rater, and as JSON the steps
-- with their options, the step reviews with their judgments, the answers to questions on the whole trace, and the earlier
-- edits. Steps that the rater does not see cannot be rated: `labeling.projects.visibility` applies the same rule.
--
-- Parameters
--   assignment, rater      the assignment, which must belong to the rater
--   first_step, last_step  the range of positions to read: every plan uses the index for a range, but not for a list
--   client, sequences      edits of this client that are also read, because the batch may repeat them
--   cited_versions         the versions of the guideline whose clauses the batch cites
SELECT a.id, a.project_id, a.trace_id, a.version, a.state, a.revision, a.submitted_revision,
  a.reopened_at IS NOT NULL AS is_reopened, a.holds_slot, a.purpose, p.protocol,
  p.asks_error_category AND p.needs_error_category AS requires_kind,
  CASE WHEN p.asks_clauses <> '' AND EXISTS (
    SELECT 1 FROM labeling_guideline g WHERE g.taxonomy -> 'clauses' IS NOT NULL
      AND g.id = CASE WHEN a.state = 'held' THEN p.guideline_id ELSE a.guideline_id END)
    THEN p.asks_clauses ELSE '' END AS clause_rule,
  CASE WHEN cardinality(%(cited_versions)s::integer[]) > 0 THEN
    (SELECT json_agg(json_build_array(g.version, g.taxonomy -> 'clauses'))::text FROM labeling_guideline g
     WHERE g.project_id = p.id AND g.version = ANY (%(cited_versions)s::integer[])) END AS clauses,
  NULLIF(p.trace_questions, '[]')::text AS questions, p.lease_seconds, t.kind AS trace_kind,
  r.removed_at IS NOT NULL AS is_removed, t.withdrawn_at IS NOT NULL AS is_withdrawn, a.lease_ends_at, a.first_held_at,
  a.opened_at, a.is_assisted,
  (SELECT json_agg(json_build_array(s.id, s.position,
     s.is_rateable AND NOT COALESCE(v.condition = 'reasoning' AND s.kind IN ('action', 'observation', 'answer')
                                    OR v.condition = 'actions' AND s.kind = 'reasoning', false),
     (SELECT json_agg(json_build_array(o.position, o.id)) FROM labeling_option o WHERE o.step_id = s.id)))::text
   FROM labeling_step s
   WHERE s.trace_id = a.trace_id
     AND s.position BETWEEN %(first_step)s::bigint AND %(last_step)s::bigint) AS steps,
  (SELECT json_agg(json_build_array(s.position, u.shown, u.chosen, u.written_text, u.comment, u.active_ms, u.missing,
     (SELECT json_agg(json_build_array(o.position, j.rating, j.flagged, j.category, j.reason, j.error_link,
        j.severity, j.evidence, j.citations))
      FROM labeling_judgment j JOIN labeling_option o ON o.id = j.option_id WHERE j.turn_id = u.id)))::text
   FROM labeling_stepreview u JOIN labeling_step s ON s.id = u.step_id
   WHERE u.assignment_id = a.id AND u.revision = a.revision
     AND s.position BETWEEN %(first_step)s::bigint AND %(last_step)s::bigint) AS reviews,
  CASE WHEN p.trace_questions <> '[]' THEN
    (SELECT json_agg(json_build_array(n.question, n.value, n.active_ms))::text FROM labeling_traceanswer n
     WHERE n.assignment_id = a.id AND n.revision = a.revision) END AS answers,
  (SELECT json_agg(json_build_array(w.client, w.sequence, w.seen, w.version, w.kind, w.step, w.option, w.question,
     w.was_applied))::text
   FROM labeling_ratingedit w
   WHERE w.assignment_id = a.id
     AND (w.step BETWEEN %(first_step)s::bigint AND %(last_step)s::bigint OR w.kind = 'answer'
          OR w.client = %(client)s AND w.sequence = ANY (%(sequences)s::bigint[]))) AS edits
FROM labeling_assignment a
JOIN labeling_project p ON p.id = a.project_id
JOIN labeling_trace t ON t.id = a.trace_id
JOIN labeling_rater r ON r.id = a.rater_id
LEFT JOIN labeling_visibilitydraw v ON v.assignment_id = a.id
WHERE a.id = %(assignment)s AND a.rater_id = %(rater)s

-- Load an assignment for the work page: one row with its project, trace and problem, the steps as JSON, and the news of its
-- rater (work_page.py puts news.sql there).
--
-- Opening a trace fixes whether the reference answer and the verdict are shown; until then, the project's settings
-- apply. What is not shown is NULL.
--
-- Parameter: assignment
SELECT /* news */, a.trace_id, a.purpose, p.protocol,
  (SELECT v.condition FROM labeling_visibilitydraw v WHERE v.assignment_id = a.id),
  EXISTS (SELECT 1 FROM labeling_step s JOIN labeling_option o ON o.step_id = s.id
          JOIN labeling_optionpart c ON c.option_id = o.id WHERE s.trace_id = a.trace_id),
  (SELECT json_agg(json_build_array(s.position, s.kind, s.is_rateable, s.agent, o.position, o.text))::text
   FROM labeling_step s JOIN labeling_option o ON o.step_id = s.id WHERE s.trace_id = a.trace_id),
  NULLIF(p.trace_questions, '[]')::text,
  CASE WHEN p.asks_clauses <> '' THEN
    (SELECT json_build_array(g.version, g.taxonomy -> 'clauses')::text FROM labeling_guideline g
     WHERE g.id = CASE WHEN a.state = 'held' THEN p.guideline_id ELSE a.guideline_id END
       AND g.taxonomy -> 'clauses' IS NOT NULL) END,
  a.is_assisted, a.id, a.version, a.revision, a.state, a.reopened_at IS NOT NULL, a.lease_ends_at, a.submitted_at,
  p.reveals_one_step_at_a_time, p.asks_error_category,
  p.asks_error_category AND p.needs_error_category, p.asks_severity, p.asks_reason, p.asks_corrected_step, p.asks_evidence,
  p.asks_omissions, p.asks_clauses,
  (SELECT json_agg(json_build_array(i.digest, i.width, i.height, m.description) ORDER BY m.position)::text
   FROM labeling_problemimage m JOIN labeling_storedimage i ON i.id = m.image_id WHERE m.problem_id = b.id),
  b.text, b.domain,
  CASE WHEN COALESCE(a.saw_reference_answer, p.shows_reference_answer) THEN b.reference_answer END,
  CASE WHEN COALESCE(a.saw_final_verdict, p.shows_final_verdict) THEN t.is_right END
FROM labeling_assignment a
JOIN labeling_project p ON p.id = a.project_id
JOIN labeling_trace t ON t.id = a.trace_id
JOIN labeling_problem b ON b.id = t.problem_id
WHERE a.id = %(assignment)s

-- The rows of a manifest from position `start` up to `stop`, without steps and ratings. The columns are the fields of
-- `formats.rows.RowFacts`, by name and in the same order.
--
-- An imported labeler's name is replaced by a pseudonym, unless it is one already or `names` is true. The bytes of the
-- record have the name too, so they are left out with it.
--
-- `identity` is null here: packages above this one know the machines.
--
-- Parameters: manifest, start, stop, names
SELECT m.position, u.id AS submission, u.revision, m.consensus_revision, m.score_version, m.is_contested,
  m.trace_id AS trace, q.normal_digest AS problem_digest, a.purpose, a.population, a.origin, a.is_assisted, 
  COALESCE(CASE y.condition WHEN 'reasoning' THEN 'reasoning_only' WHEN 'actions' THEN 'actions_only' END, x.arm) AS exposure,
  a.saw_reference_answer, a.saw_final_verdict, g.version AS guideline, l.generation AS round, a.opened_at,
  d.arm AS draw_arm, l.arm AS lane_arm, d.batch, d.rank, d.q, d.n_left, d.prm, d.score AS prm_score,
  s.name AS source, s.licence, u.submitted_at, u.finish_reason, u.finish_note, u.protocol, u.total_ms, u.generation,
  u.is_quality_control, u.is_screening,
  CASE WHEN (SELECT EXISTS (SELECT 1 FROM labeling_traceanswer)) THEN
    (SELECT json_object_agg(n.question, n.value ORDER BY n.question)::text FROM labeling_traceanswer n
     WHERE n.assignment_id = u.assignment_id AND n.revision = u.revision) END AS answers,
  CASE WHEN h.is_hidden THEN NULL ELSE u.residue END AS residue,
  CASE WHEN h.is_hidden THEN r.pseudonym::text ELSE r.labeler END AS labeler, r.machine, r.kind AS rater_kind,
  v.name AS label_source, v.labels_are AS label_kind, NULL AS identity, t.kind, t.n_steps, t.answer,
  t.verifier_score, t.is_right, NULLIF(t.metadata, '{}')::text AS metadata, t.ref, t.outcome_by, t.outcome_grader, p.base_model, p.policy, p.scaffold,
  p.segmenter, p.reasoning, p.reasoning_by, paired.pair, paired.half AS pair_half, q.text, q.reference_answer, q.reference_solution, q.has_reference_answer,
  q.has_reference_solution, q.ref AS problem_ref, q.domain,
  CASE WHEN (SELECT EXISTS (SELECT 1 FROM labeling_problemimage)) THEN
    (SELECT json_agg(json_build_array(i.digest, pi.description) ORDER BY pi.position)::text
     FROM labeling_problemimage pi JOIN labeling_storedimage i ON i.id = pi.image_id
     WHERE pi.problem_id = q.id) END AS images
FROM labeling_manifestrow m
JOIN labeling_trace t ON t.id = m.trace_id
JOIN labeling_problem q ON q.id = t.problem_id
LEFT JOIN labeling_submission u ON u.id = m.submission_id
LEFT JOIN labeling_assignment a ON a.id = u.assignment_id
LEFT JOIN labeling_exposure x ON x.assignment_id = a.id AND (x.arm = 'blind' OR a.is_assisted)
LEFT JOIN labeling_visibilitydraw y ON y.assignment_id = a.id
LEFT JOIN labeling_rater r ON r.id = a.rater_id
LEFT JOIN LATERAL (
  SELECT r.kind = 'imported' AND NOT %(names)s
    AND r.labeler !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' AS is_hidden) AS h ON true
LEFT JOIN labeling_source v ON v.id = u.source_id
LEFT JOIN labeling_provenance p ON p.id = t.provenance_id
LEFT JOIN labeling_pairedtrace paired ON paired.trace_id = t.id
LEFT JOIN labeling_source s ON s.id = t.source_id
LEFT JOIN labeling_guideline g ON g.id = a.guideline_id
LEFT JOIN labeling_tracedraw d ON d.id = a.draw_id
LEFT JOIN labeling_lane l ON l.id = a.lane_id
WHERE m.manifest_id = %(manifest)s AND m.position >= %(start)s AND m.position < %(stop)s
ORDER BY m.position

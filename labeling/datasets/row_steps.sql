-- Every option of every step of some rows of a manifest, for `manifest._Step`. A step without options has one
-- row without an option.
--
-- Parameters: manifest, positions
SELECT m.position, s.id AS step, s.position AS step_position, s.kind, s.is_rateable, s.agent,
  s.separator, s.source_position, o.id AS option, o.text
FROM labeling_manifestrow m
JOIN labeling_step s ON s.trace_id = m.trace_id
LEFT JOIN labeling_option o ON o.step_id = s.id
WHERE m.manifest_id = %(manifest)s AND m.position = ANY (%(positions)s)
ORDER BY m.position, s.position, o.position

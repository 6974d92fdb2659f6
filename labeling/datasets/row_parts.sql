-- The parts of the options of some rows of a manifest, in their order, for `manifest._load_parts`.
--
-- Parameters: manifest, positions
SELECT m.position, c.option_id, c.kind, c.text, c.name, c.call_ref, c.media_type, COALESCE(i.digest, '')
FROM labeling_manifestrow m
JOIN labeling_step s ON s.trace_id = m.trace_id
JOIN labeling_option o ON o.step_id = s.id
JOIN labeling_optionpart c ON c.option_id = o.id
LEFT JOIN labeling_storedimage i ON i.id = c.image_id
WHERE m.manifest_id = %(manifest)s AND m.position = ANY (%(positions)s)
ORDER BY m.position, c.option_id, c.position

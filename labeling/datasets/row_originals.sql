-- The original records of the traces of some rows of a manifest, without labels, for `manifest._rebuild_rows`.
--
-- Parameters: manifest, positions
SELECT m.position, o.format, o.content
FROM labeling_manifestrow m
JOIN labeling_traceoriginal o ON o.trace_id = m.trace_id
WHERE m.manifest_id = %(manifest)s AND m.position = ANY (%(positions)s)

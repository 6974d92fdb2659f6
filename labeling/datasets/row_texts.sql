-- The texts of the rows of a manifest from position `start` up to `stop`, for `manifest.RowTexts`:
--   n_options   options, or -1 if the row is not compact because some step has no first option
--   n_texts     texts in `joined`
--   first_step, last   lowest and highest `step id - position`: equal if the ids follow the positions
--   n_others    steps that are not reasoning, not rateable, made by a subagent, or parts of a message
--   extra       "step_id:option_id" of each option that is not its step's first
--   joined      all texts, separated by CHR(31)
--
-- The options of a trace whose step ids are consecutive are neighbors in the index and are read as one range, because
-- each index lookup has a cost. Other traces are not compact. Each range is sorted below the aggregates, in the order of
-- its index: an ORDER BY inside the aggregates would sort once more in each.
--
-- Parameters: manifest, start, stop
SELECT m.position, CASE WHEN y.n_first = x.n THEN y.n ELSE -1 END AS n_options, y.n AS n_texts, x.first_step, x.last,
  x.n_others, y.extra, y.joined
FROM labeling_manifestrow m
CROSS JOIN LATERAL (
  SELECT COUNT(*) AS n, MIN(s.id) AS low, MAX(s.id) AS high, MIN(s.id - s.position) AS first_step,
    MAX(s.id - s.position) AS last, COUNT(*) FILTER (WHERE s.kind <> 'reasoning' OR NOT s.is_rateable OR s.agent <> ''
      OR s.source_position IS NOT NULL) AS n_others
  FROM labeling_step s WHERE s.trace_id = m.trace_id) AS x
CROSS JOIN LATERAL (
  SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE o.position = 0) AS n_first,
    STRING_AGG(CASE WHEN o.position > 0 THEN o.step_id || ':' || o.id END, ' ') AS extra,
    STRING_AGG(o.text, CHR(31)) AS joined
  FROM (
    SELECT o.id, o.step_id, o.position, o.text FROM labeling_option o
    WHERE o.step_id BETWEEN x.low AND x.high AND x.high - x.low = x.n - 1 ORDER BY o.step_id, o.position) AS o) AS y
WHERE m.manifest_id = %(manifest)s AND m.position >= %(start)s AND m.position < %(stop)s AND x.n > 0

-- The texts of the rows of a manifest, from position `start` up to `stop`: how many rows and texts, between which numbers
-- `step id - position` lies (one number, where ids follow the positions), how many steps are more than reasoning, the
-- options beside the first ones, and all texts as one.
--
-- The options of a trace whose steps follow each other are neighbors in the index and are read as one range: each lookup
-- in an index costs. Other traces are not plain, and have -1 here. Each range comes in the order of its index, below the
-- aggregates: an ORDER BY inside the aggregates would sort once more in each.
--
-- Parameters: manifest, start, stop
SELECT m.position, CASE WHEN y.n_first = x.n THEN y.n ELSE -1 END, y.n, x.first_step, x.last,
  x.n_others, y.more, y.joined
FROM labeling_manifestrow m
CROSS JOIN LATERAL (
  SELECT COUNT(*) AS n, MIN(s.id) AS low, MAX(s.id) AS high, MIN(s.id - s.position) AS first_step,
    MAX(s.id - s.position) AS last, COUNT(*) FILTER (WHERE s.kind <> 'reasoning' OR NOT s.is_rateable) AS n_others
  FROM labeling_step s WHERE s.trace_id = m.trace_id) AS x
CROSS JOIN LATERAL (
  SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE o.position = 0) AS n_first,
    STRING_AGG(CASE WHEN o.position > 0 THEN o.step_id || ':' || o.id END, ' ') AS more,
    STRING_AGG(o.text, CHR(31)) AS joined
  FROM (
    SELECT o.id, o.step_id, o.position, o.text FROM labeling_option o
    WHERE o.step_id BETWEEN x.low AND x.high AND x.high - x.low = x.n - 1 ORDER BY o.step_id, o.position) AS o) AS y
WHERE m.manifest_id = %(manifest)s AND m.position >= %(start)s AND m.position < %(stop)s AND x.n > 0

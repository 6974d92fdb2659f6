-- What the list of traces shows of each trace beside its own row: gold, labels, tags, and queue entries.
-- One statement, because Django took longer to build four queries and read their rows than to render the list.
SELECT trace.id AS trace_id,
  EXISTS (SELECT 1 FROM labeling_gold gold WHERE gold.trace_id = trace.id AND gold.retired_at IS NULL) AS is_gold,
  labels.n_by_people, labels.n_by_machines,
  ARRAY(SELECT tag.name::text FROM labeling_tracetag tag WHERE tag.trace_id = trace.id ORDER BY tag.name) AS tags,
  queue.arms, queue.slots_left
FROM unnest(%(traces)s::bigint[]) AS trace (id)
CROSS JOIN LATERAL (
  -- as AssignmentQuerySet.counted
  SELECT count(*) FILTER (WHERE rater.kind <> 'machine') AS n_by_people,
    count(*) FILTER (WHERE rater.kind = 'machine') AS n_by_machines
  FROM labeling_assignment work JOIN labeling_rater rater ON rater.id = work.rater_id
  WHERE work.trace_id = trace.id AND work.purpose = 'work' AND work.state = 'submitted' AND work.set_aside_id IS NULL
) AS labels
CROSS JOIN LATERAL (
  SELECT array_agg(lane.arm::text ORDER BY entry.id) AS arms,
    array_agg(entry.slots_left ORDER BY entry.id) AS slots_left
  FROM labeling_queueentry entry JOIN labeling_lane lane ON lane.id = entry.lane_id WHERE entry.trace_id = trace.id
) AS queue

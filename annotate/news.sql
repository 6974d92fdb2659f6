-- Name the notices that annotate/_unread.html shows for a rater. `annotate.todo` loads them. This runs with every claim,
-- so each part reads an index that has no entry for a rater without notices.
--
-- Parameter: rater
SELECT concat_ws(' ',
  (SELECT 'm' || min(m.id) FROM people_membership s JOIN people_membermessage m ON m.membership_id = s.id
   WHERE s.project_id = r.project_id AND s.user_id = r.user_id AND s.left_at IS NULL
     AND m.kind = 'message' AND m.read_at IS NULL),
  (SELECT 'r' || string_agg(a.id::text, ',' ORDER BY a.id) FROM labeling_assignment a
   WHERE a.rater_id = r.id AND a.is_end_news AND a.state IN ('released', 'lapsed')),
  (SELECT 'q' || string_agg(DISTINCT a.id::text, ',') FROM people_membership s
   JOIN people_membermessage m ON m.membership_id = s.id AND m.kind <> 'message'
   JOIN labeling_assignment a ON a.trace_id = m.trace_id AND a.rater_id = r.id AND a.state = 'opened'
   WHERE s.project_id = r.project_id AND s.user_id = r.user_id),
  (SELECT 'c' || string_agg(c.id::text, ',' ORDER BY c.id)
   FROM labeling_assignment a JOIN labeling_correctionrequest c ON c.assignment_id = a.id AND c.answered_at IS NULL
   WHERE a.project_id = r.project_id AND a.reopened_at IS NOT NULL AND a.rater_id = r.id))
FROM labeling_rater r WHERE r.id = %(rater)s

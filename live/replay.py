"""Send recorded requests again with their seeds, and count the options that come back unchanged.

The prompt is rendered again from policy, problem and path. If its digest differs from the recorded one, the record does
not belong to the prompt, and the request is counted as changed instead of being sent.
"""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from labeling.models import Project
from live import completions, option_requests, policies, prompts
from live.completions import ReplayCount
from live.models import LiveOption, OptionRequest, OptionRequestState
from machines.chat_endpoint import EndpointProblem

_PAGE = 200


def list_recorded(project: Project, *, session_id: int | None = None) -> QuerySet[OptionRequest]:
    """Return the answered requests of a project, or of one session, in the order in which they were made."""
    rows = OptionRequest.objects.filter(session__project=project, state=OptionRequestState.ANSWERED)
    rows = rows.select_related("session__policy", "session__problem").order_by("pk")
    return rows if session_id is None else rows.filter(session=session_id)


def replay_requests(requests: QuerySet[OptionRequest]) -> dict[str, ReplayCount]:
    """Return what the server reproduces, by mode and server: "completions vllm"."""
    counts: dict[str, ReplayCount] = {}
    for request in requests.iterator(chunk_size=_PAGE):
        policy = request.session.policy
        count = counts.setdefault(f"{policy.mode} {policy.family}", ReplayCount())
        _replay_request(request, count)
    return counts


def _replay_request(request: OptionRequest, count: ReplayCount) -> None:
    policy = request.session.policy
    recorded = list(LiveOption.objects.filter(request=request).values_list("index", "text"))
    count.n_requests += 1
    prompt = option_requests.render_path(request.session, request.path)
    if prompts.digest_text(prompt) != request.prompt_digest:
        count.n_changed_prompts += 1
        count.n_options += len(recorded)
        count.differing.append(request.pk)
        return
    if not policies.is_replayable(policy):
        count.n_unseeded += 1
        return
    try:
        answer = option_requests.send_request(policy, request, prompt)
    except EndpointProblem:
        count.n_unanswered += 1
        return
    found = completions.read_options(policies.make_sampler(policy), answer.response.content, prompt)
    same = completions.compare_options(recorded, found)
    count.n_options += len(recorded)
    count.n_reproduced += same
    if same < len(recorded):
        count.differing.append(request.pk)


def describe_counts(counts: dict[str, ReplayCount]) -> Iterator[dict[str, Any]]:
    for name, count in sorted(counts.items()):
        yield {
            "mode": name.partition(" ")[0],
            "server": name.partition(" ")[2],
            "requests": count.n_requests,
            "options": count.n_options,
            "reproduced": count.n_reproduced,
            "share": None if count.share is None else round(count.share, 4),
            "unanswered": count.n_unanswered,
            "unseeded": count.n_unseeded,
            "changed_prompts": count.n_changed_prompts,
            "differing_requests": count.differing[:20],
        }

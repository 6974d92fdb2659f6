"""Which fields can contain personal data, and what an erasure does with each of them.

Every field of every model that takes text is listed here exactly once; a test compares these lists with the models.
`docs/privacy.md` explains the personal fields to people.
"""

from typing import NamedTuple


class PersonalTexts(NamedTuple):
    """Texts that a person wrote, or that others wrote about them."""

    paths: tuple[str, ...]  # lookups from the row to the person
    fields: tuple[str, ...]


# Rows that are deleted, by their lookups to the person.
DELETED_ROWS: dict[str, tuple[str, ...]] = {
    "accounts.Session": ("user",),
    "accounts.LoginLink": ("user",),
    "accounts.ApiToken": ("user",),
    "account.EmailConfirmation": ("email_address__user",),
    "account.EmailAddress": ("user",),
    "mfa.Authenticator": ("user",),
    "socialaccount.SocialToken": ("account__user",),
    "socialaccount.SocialAccount": ("user",),
    "people.WorkerDevice": ("worker__user",),
    "people.WorkerId": ("user",),
    "people.MemberMessage": ("membership__user", "written_by"),
    "notices.MailChoice": ("membership__user",),
    "notices.NoticeDelivery": ("membership__user",),
    "api.IdempotentRequest": ("user",),
}

# Fields that are cleared by separate functions: `users.erase_user` and `origins.erase_origins`.
CLEARED_FIELDS: dict[str, tuple[str, ...]] = {
    "accounts.User": ("password", "username", "email", "name", "work_keys"),
    "events.EventOrigin": ("address", "browser"),
}

# Texts that are replaced by a tombstone in the rows of the person.
REPLACED_TEXTS: dict[str, PersonalTexts] = {
    "labeling.Rater": PersonalTexts(("user",), ("paused_reason", "paused_note")),
    "labeling.Assignment": PersonalTexts(("rater__user",), ("ended_reason",)),
    "labeling.Submission": PersonalTexts(("assignment__rater__user",), ("finish_note",)),
    "labeling.StepReview": PersonalTexts(("assignment__rater__user",), ("comment", "missing")),
    "labeling.Judgment": PersonalTexts(("turn__assignment__rater__user",), ("reason",)),
    "labeling.RatingEdit": PersonalTexts(("assignment__rater__user",), ("text",)),
    "live.LiveSession": PersonalTexts(("rater__user",), ("finish_note",)),
    "labeling.CorrectionRequest": PersonalTexts(("assignment__rater__user", "asked_by"), ("note",)),
    "labeling.SetAside": PersonalTexts(("rater__user", "made_by"), ("reason",)),
    "labeling.Consensus": PersonalTexts(("made_by",), ("note",)),
    "prm.ArenaEdit": PersonalTexts(("rater__user",), ("reason",)),
}

# Texts of the whole project. Email addresses, worker IDs and full names of the person are replaced in them.
# `events.Event.detail` and `notices.Notice.content` also lose the typed texts of events by or about the person.
SEARCHED_TEXTS: dict[str, tuple[str, ...]] = {
    "events.Event": ("detail",),
    "notices.Notice": ("content",),
    "notices.Webhook": ("address",),
    "jobs.Job": ("arguments", "result", "failure"),
    "labeling.Project": (
        "name",
        "description",
        "completion_url",
        "completion_code",
        "screened_out_url",
        "screened_out_code",
        "no_consent_url",
        "no_consent_code",
        "failed_checks_url",
        "failed_checks_code",
    ),
    "labeling.Guideline": ("body", "changes", "taxonomy"),  # the taxonomy has the clauses of the body
    "labeling.ConsentText": ("body",),
    "labeling.Source": ("name", "licence", "statement", "labels_by", "report"),
    "labeling.Trace": ("withdrawn_reason",),
    "labeling.TraceTag": ("name",),
    "labeling.RaterGroup": ("name",),
    "labeling.SteeringRule": ("domain", "source_name"),
    "labeling.StepReview": ("written_text",),  # part of the label
    "labeling.TraceAnswer": ("value",),  # part of the label
    "labeling.Judgment": ("evidence",),  # quotes of a trace, some of them typed
    "labeling.RatingEdit": ("evidence",),
    "prm.ArenaEdit": ("text",),  # as above
    "labeling.Gold": ("explanation",),
    "labeling.GoldRating": ("explanation",),
    "people.Invitation": ("note",),
    "prm.FileEvaluation": ("name",),
    "machines.Judge": ("name", "prompt"),
    "live.LiveTurn": ("written_text", "draft"),  # part of the label
    "live.OptionRequest": ("path",),  # with the steps that the rater wrote
    "live.LivePolicy": ("template",),
    "machines.MachinePassport": ("content", "identity"),
    "machines.MachineLicense": ("domain",),
    "machines.ConsensusRoute": ("strata",),
    "exports.ProjectDisclosure": (
        "process_supervised",
        "base_model",
        "policy",
        "orm",
        "prm",
        "judge",
        "human_source",
        "scaffold",
        "deployment_monitor",
        "where_tested",
        "known_failures",
        "raters",
        "pay",
        "domains_not_covered",
        "licence",
    ),
    "exports.Snapshot": ("order", "plan", "statement", "figures"),
    "exports.Delivery": ("address",),
}

# Content of imported files. Undo the import to remove it.
IMPORTED_TEXTS: dict[str, tuple[str, ...]] = {
    "labeling.Problem": ("ref", "domain", "text", "reference_answer", "reference_solution"),
    "labeling.Trace": ("ref", "answer", "outcome_grader", "metadata"),
    "labeling.Step": ("agent", "separator"),
    "labeling.Option": ("text",),
    "labeling.OptionPart": ("text", "name", "call_ref", "media_type"),
    "labeling.ProblemImage": ("description",),
    "labeling.StoredImage": ("data",),
    "prm.GamingCanary": ("problem", "steps"),
    "labeling.Provenance": ("base_model", "policy", "sampler", "scaffold", "segmenter", "reasoning_by"),
    "labeling.PairedTrace": ("pair",),
    "labeling.TraceOriginal": ("content",),
    "labeling.PairReader": ("pair",),
    "labeling.PairReviewer": ("pair",),
    "labeling.Rater": ("labeler", "machine"),  # the names of imported labelers and machines
    "labeling.Submission": ("residue",),
}

# Codes, checksums, numbers, and secrets of the platform. No person types them.
TECHNICAL_FIELDS: dict[str, tuple[str, ...]] = {
    "labeling.Rater": ("pending_pause",),  # figures and fixed texts of a check
    "events.Event": ("what", "subject"),
    "jobs.Job": ("kind", "subject", "checkpoint"),
    "labeling.Project": (
        "slug",
        "rating_rules",
        "trace_questions",
        "worker_parameter",
        "study_parameter",
        "session_parameter",
        "signature_parameter",
        "currency",
        "past_pay_rates",
    ),
    "labeling.Source": ("format", "sha256"),
    "labeling.Provenance": ("digest",),
    "labeling.Problem": ("digest", "normal_digest"),
    "labeling.BenchmarkProblem": ("normal_digest",),
    "labeling.StoredImage": ("digest", "original_sha256"),
    "labeling.Trace": ("digest",),
    "labeling.TraceOriginal": ("format",),
    "labeling.TraceDraw": ("prm",),
    "labeling.SuggestionPlan": ("seed",),
    "labeling.VisibilityPlan": ("seed",),
    "labeling.EarlierSettlement": ("state", "reason"),
    "labeling.Assignment": ("finish_reason",),
    "labeling.Submission": ("finish_reason", "record_digest", "protocol"),
    "labeling.StepReview": ("shown",),
    "labeling.Judgment": ("category", "citations"),
    "labeling.RatingEdit": ("client", "category", "citations", "question"),
    "labeling.TraceAnswer": ("question",),
    "labeling.Settlement": ("reason",),
    "labeling.RaterModelFit": ("rates", "hazards", "temperature_reason", "threshold_reason"),
    "labeling.Consensus": ("posterior", "assisted_votes", "assisted_posterior", "labels"),
    "labeling.ProjectStats": ("content",),
    "labeling.DailyProjectStats": ("content",),
    "labeling.Gold": ("accepted_first_errors",),
    "labeling.Manifest": ("purpose", "code_version", "filters", "left_out"),
    "labeling.ManifestRow": ("score_version",),
    "people.Invitation": ("token_digest",),
    "prm.PRM": (
        "model",
        "digest",
        "address",
        "options",
        "secret",
        "weights",
        "trained",
        "evaluation",
        "audits",
        "calibration",
    ),
    "machines.Judge": ("address", "model", "model_digest", "key", "prompt_digest", "rollouts"),
    "machines.JudgeRun": ("pause_line",),
    "machines.JudgeVote": ("answer", "finish_reason", "served_model"),  # what a model wrote
    "machines.JudgedTrace": ("first_errors", "values"),
    "live.LivePolicy": (
        "address",
        "model",
        "model_digest",
        "tokenizer_digest",
        "key",
        "template_digest",
        "step_end",
    ),
    "live.LiveSession": ("finish_reason",),
    "live.OptionRequest": (  # what a model wrote, and how it was asked
        "prompt_digest",
        "sent",
        "problem",
        "server_version",
        "served_model",
        "fingerprint",
        "dropped",
        "answer",
    ),
    "live.LiveOption": ("text", "finish_reason", "stop_reason", "token_ids"),
    "live.LiveTurn": ("shown",),
    "machines.CanaryVote": ("answer", "finish_reason", "served_model"),
    "machines.CanaryVerdict": ("first_errors",),
    "prm.GamingCanary": ("places", "original_places"),
    "prm.CanaryScore": ("numbers",),
    "prm.Score": ("numbers",),
    "prm.FileEvaluation": ("digest", "figures"),
    "prm.Generation": ("gate", "acquisition", "reading", "payoff"),
    "prm.LoopRules": ("acquisition",),
    "exports.SplitAssignment": ("digest", "normal_digest", "signature"),
    "exports.Snapshot": ("name",),
    "exports.Shard": ("figures",),
    "exports.SnapshotFile": ("name", "format", "split", "sha256"),
    "exports.Delivery": ("destination",),
    "notices.Webhook": ("kinds", "key"),
    "notices.Notice": ("kind",),
    "socialaccount.SocialApp": ("provider", "provider_id", "name", "client_id", "secret", "key", "settings"),
    "auth.Permission": ("name", "codename"),
    "auth.Group": ("name",),
    "contenttypes.ContentType": ("app_label", "model"),
}

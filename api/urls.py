"""URLs of the REST API under /api/. The schema at /api/schema is generated from the views."""

from django.urls import path

from api.views import (
    api_schema,
    arena,
    canaries,
    consensus,
    imports,
    judges,
    live,
    machine_consensus,
    machines,
    monitors,
    prms,
    projects,
    security,
    snapshots,
    steering_orders,
    suggestions,
    taxonomy,
    trace_steps,
    traces,
)
from api.views.unknown_addresses import UnknownAddressView

app_name = "api"
urlpatterns = [
    path("schema", api_schema.ApiSchemaView.as_view(), name="schema"),
    path("projects", projects.ProjectListView.as_view(), name="projects"),
    path("projects/<slug:slug>", projects.ProjectDetailView.as_view(), name="project"),
    path("projects/<slug:slug>/agreement", projects.AgreementView.as_view(), name="agreement"),
    path("projects/<slug:slug>/consensus", consensus.ConsensusListView.as_view(), name="consensus"),
    path("security-events", security.SecurityEventView.as_view(), name="security_events"),
    path("prm/score", prms.ScoreTracesView.as_view(), name="score_traces"),
    path("prm/rank", prms.RankCandidatesView.as_view(), name="rank_candidates"),
    path("projects/<slug:slug>/traces", traces.TraceListView.as_view(), name="traces"),
    path("projects/<slug:slug>/traces/steer", steering_orders.SteerTracesView.as_view(), name="steer_traces"),
    path("projects/<slug:slug>/traces/<int:trace>/steps", trace_steps.TraceStepsView.as_view(), name="trace_steps"),
    path("projects/<slug:slug>/groups", steering_orders.GroupListView.as_view(), name="groups"),
    path("projects/<slug:slug>/groups/<str:name>", steering_orders.GroupDetailView.as_view(), name="group"),
    path("projects/<slug:slug>/rules", steering_orders.RuleListView.as_view(), name="rules"),
    path("projects/<slug:slug>/rules/<int:rule>", steering_orders.RuleDetailView.as_view(), name="rule"),
    path("projects/<slug:slug>/pay", steering_orders.PayView.as_view(), name="pay"),
    path("projects/<slug:slug>/scores", prms.PushScoresView.as_view(), name="push_scores"),
    path("projects/<slug:slug>/imports", imports.ImportListView.as_view(), name="imports"),
    path("projects/<slug:slug>/imports/<int:job>", imports.ImportDetailView.as_view(), name="import"),
    path("projects/<slug:slug>/imports/<int:job>/bad-lines", imports.BadLinesView.as_view(), name="bad_lines"),
    path("projects/<slug:slug>/judges", judges.JudgeListView.as_view(), name="judges"),
    path("projects/<slug:slug>/judges/<int:judge>/runs", judges.JudgeRunListView.as_view(), name="judge_runs"),
    path("projects/<slug:slug>/judge-runs/<int:run>", judges.JudgeRunDetailView.as_view(), name="judge_run"),
    path(
        "projects/<slug:slug>/judge-runs/<int:run>/resume", judges.ResumeJudgeRunView.as_view(), name="resume_judge_run"
    ),
    path("projects/<slug:slug>/live", live.LiveLabelingView.as_view(), name="live_labeling"),
    path(
        "projects/<slug:slug>/machine-consensus",
        machine_consensus.MachineConsensusView.as_view(),
        name="machine_consensus",
    ),
    path(
        "projects/<slug:slug>/consensus-routes",
        machine_consensus.ConsensusRouteListView.as_view(),
        name="consensus_routes",
    ),
    path(
        "projects/<slug:slug>/consensus-routes/<int:route>/close",
        machine_consensus.CloseConsensusRouteView.as_view(),
        name="close_consensus_route",
    ),
    path("projects/<slug:slug>/canaries", canaries.CanarySetView.as_view(), name="canaries"),
    path("projects/<slug:slug>/canaries/scores", canaries.CanaryScoresView.as_view(), name="canary_scores"),
    path("projects/<slug:slug>/hard-negatives", arena.HardNegativesView.as_view(), name="hard_negatives"),
    path("projects/<slug:slug>/machines", machines.MachineListView.as_view(), name="machines"),
    path("projects/<slug:slug>/machines/<int:rater>/passport", machines.PassportView.as_view(), name="passport"),
    path(
        "projects/<slug:slug>/machines/<int:rater>/passports", machines.PassportHistoryView.as_view(), name="passports"
    ),
    path("projects/<slug:slug>/machines/<int:rater>/licenses", machines.LicenseListView.as_view(), name="licenses"),
    path(
        "projects/<slug:slug>/machine-licenses/<int:license>/revoke",
        machines.LicenseRevocationView.as_view(),
        name="revoke_license",
    ),
    path("projects/<slug:slug>/assisted-results", machines.AssistedResultView.as_view(), name="assisted_results"),
    path("projects/<slug:slug>/suggestions", suggestions.SuggestionsView.as_view(), name="suggestions"),
    path("projects/<slug:slug>/taxonomy", taxonomy.TaxonomyView.as_view(), name="taxonomy"),
    path("projects/<slug:slug>/guideline", taxonomy.GuidelineView.as_view(), name="guideline"),
    path("projects/<slug:slug>/monitors", monitors.MonitorsView.as_view(), name="monitors"),
    path("projects/<slug:slug>/machine-budget", judges.MachineBudgetView.as_view(), name="machine_budget"),
    path("projects/<slug:slug>/snapshots", snapshots.SnapshotListView.as_view(), name="snapshots"),
    path("projects/<slug:slug>/snapshots/<slug:name>", snapshots.SnapshotDetailView.as_view(), name="snapshot"),
    path(
        "projects/<slug:slug>/snapshots/<slug:name>/files/<path:file>",
        snapshots.SnapshotFileView.as_view(),
        name="file",
    ),
    path("<path:rest>", UnknownAddressView.as_view(), name="unknown_address"),
]

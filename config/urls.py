"""URLs of all apps."""

from django.urls import URLPattern, URLResolver, include, path

from config import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("health/live", health.live, name="live"),
    path("health/ready", health.ready, name="ready"),
    path("metrics", health.show_metrics, name="metrics"),
    path("api/", include("api.urls")),
    path("", include("annotate.urls")),  # first, because raters send most requests
    path("", include("accounts.urls")),
    path("", include("dashboard.urls")),
]

handler400 = "config.bad_requests.render_bad_request"
handler500 = "config.bad_requests.render_server_error"

"""REST for programs, under /api/. The schema is made from the views: GET /api/schema."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView

from api.views import projects

app_name = "api"
urlpatterns = [
    path("schema", SpectacularAPIView.as_view(authentication_classes=[], permission_classes=[]), name="schema"),
    path("projects", projects.Projects.as_view(), name="projects"),
    path("projects/<slug:slug>", projects.OneProject.as_view(), name="project"),
]

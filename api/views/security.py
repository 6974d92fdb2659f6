"""The security log as JSON lines, for the log collector of the operator."""

from typing import Any, ClassVar, cast

from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts import security_log
from accounts.models import ApiToken, Scope, User


class SecurityEventChoices(serializers.Serializer[Any]):
    after = serializers.IntegerField(
        default=0, min_value=0, max_value=2**63 - 1, help_text="Only events with a greater `id`."
    )


class SecurityEventView(APIView):
    scopes: ClassVar = {"GET": Scope.AUDIT}

    @extend_schema(
        operation_id="stream_security_events",
        parameters=[SecurityEventChoices],
        responses={(200, "application/x-ndjson"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Events of the security log, oldest first, one JSON object per line. Store the last `id` and send it as
        `after` next time. An event appears ten seconds after it happened."""
        if not cast(User, request.user).is_staff or cast(ApiToken, request.auth).project is not None:
            raise exceptions.PermissionDenied(_("Only operators can read the security log."))
        choices = SecurityEventChoices(data=request.query_params)
        choices.is_valid(raise_exception=True)
        lines = security_log.stream_json_lines(
            security_log.list_security_events(), after=choices.validated_data["after"], now=timezone.now()
        )
        return StreamingHttpResponse(lines, content_type="application/x-ndjson")

"""Answer requests to addresses of the API that do not exist, as a problem document."""

from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.views import APIView


class UnknownAddressView(APIView):
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse every method."""
        raise NotFound

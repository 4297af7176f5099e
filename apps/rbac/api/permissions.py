"""DRF's view of the 15 permission codes."""

from __future__ import annotations

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.rbac.api.authentication import caller_of


class HasCode(BasePermission):
    """Asks for the code that the view's `required_codes` names for the request's method (or for `*`).

    A method without an entry only needs a signed-in user.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        codes: dict[str, str] = getattr(view, "required_codes", {})
        code = codes.get(request.method or "", codes.get("*"))
        return code is None or caller_of(request).has_code(code)

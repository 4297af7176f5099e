"""What every API endpoint shares: the one error shape, pagination, and errors turned into responses."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404, HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from rest_framework import exceptions, pagination, status
from rest_framework.response import Response

from docmind.errors import DocMindError, PermanentError, TransientError
from docmind.telemetry import get_logger

logger = get_logger(__name__)


class PageNumberPagination(pagination.PageNumberPagination):
    page_size_query_param = "page_size"
    max_page_size = 200


def error_body(code: str, message: str, details: Any = None) -> dict[str, Any]:
    """The one error shape: {"error": {"code", "message", "details"}}."""
    return {"error": {"code": code, "message": message, "details": details if details is not None else {}}}


_STATUS_OF_CODE = {
    "not_found": status.HTTP_404_NOT_FOUND,
    "permission_denied": status.HTTP_403_FORBIDDEN,
    "conflict": status.HTTP_409_CONFLICT,
    "file_too_large": status.HTTP_413_REQUEST_ENTITY_TOO_LARGE,
    "unsupported_file": status.HTTP_415_UNSUPPORTED_MEDIA_TYPE,
}


def describe_error(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """HTTP status, body and headers for an error; anything not foreseen is logged and becomes a bare 500."""
    match error:
        case Http404():
            return 404, error_body("not_found", _("Not found.")), {}
        case PermissionDenied():
            return 403, error_body("permission_denied", _("You are not allowed to do this.")), {}
        case RequestDataTooBig():
            return 413, error_body("request_too_large", _("The request is too large.")), {}
        case SuspiciousOperation():
            return 400, error_body("invalid", _("The request is not valid.")), {}
        case DjangoValidationError():
            return 400, error_body("invalid", " ".join(error.messages), getattr(error, "message_dict", {})), {}
        case exceptions.ValidationError():
            return 400, error_body("invalid", _first_message(error.detail), error.detail), {}
        case exceptions.APIException():
            headers: dict[str, str] = {}
            if (wait := getattr(error, "wait", None)) is not None:
                headers["Retry-After"] = str(int(wait) + 1)
            if challenge := getattr(error, "auth_header", None):
                headers["WWW-Authenticate"] = challenge
            codes = error.get_codes()
            code = codes if isinstance(codes, str) else error.default_code
            return error.status_code, error_body(code, _first_message(error.detail)), headers
        case TransientError():
            return 503, error_body(error.code, error.message), {"Retry-After": "5"}
        case PermanentError() | DocMindError():
            return _STATUS_OF_CODE.get(error.code, 400), error_body(error.code, error.message), {}
        case _:
            logger.error("request_failed", exc_info=error)
            return 500, error_body("internal_error", _("Something went wrong on the server. It has been logged.")), {}


def _first_message(detail: Any) -> str:
    """The first readable message in DRF's nested error detail, with its field in front."""
    if isinstance(detail, dict):
        for field, inner in detail.items():
            text = _first_message(inner)
            return text if field in {"detail", "non_field_errors"} else f"{field}: {text}"
        return ""
    if isinstance(detail, list):
        return _first_message(detail[0]) if detail else ""
    return str(detail)


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's EXCEPTION_HANDLER."""
    code, body, headers = describe_error(error)
    return Response(body, status=code, headers=headers)


def error_response(error: Exception) -> JsonResponse:
    """The same for plain Django views."""
    return json_error(*describe_error(error))


def json_error(code: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> JsonResponse:
    """An error's body as the response of a plain Django view."""
    return JsonResponse(body, status=code, headers=headers or {}, json_dumps_params={"ensure_ascii": False})


def is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")

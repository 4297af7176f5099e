"""Errors that no view has answered: the API's error shape below /api/, a readable page elsewhere."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.views import defaults
from rest_framework import status

from docmind.api import error_body, is_api, json_error


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_api(request):
        return json_error(status.HTTP_400_BAD_REQUEST, error_body("invalid", _("The request is not valid.")))
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_api(request):
        body = error_body("permission_denied", _("You are not allowed to do this."))
        return json_error(status.HTTP_403_FORBIDDEN, body)
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_api(request):
        return json_error(status.HTTP_404_NOT_FOUND, error_body("not_found", _("Not found.")))
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    if is_api(request):
        message = _("Something went wrong on the server. It has been logged.")
        return json_error(status.HTTP_500_INTERNAL_SERVER_ERROR, error_body("internal_error", message))
    return defaults.server_error(request)

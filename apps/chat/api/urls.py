from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from apps.chat.api import stream_views, views

router = SimpleRouter()
router.register("conversations", views.ConversationViewSet, basename="conversation-api")

urlpatterns = [
    path("ask/", stream_views.ask, name="ask"),
    path("runs/<uuid:run_id>/events/", stream_views.run_events, name="run-events"),
    path("runs/<uuid:run_id>/stop/", stream_views.stop_run, name="run-stop"),
    path("messages/<int:message_id>/feedback/", views.FeedbackView.as_view(), name="message-feedback"),
    *router.urls,
]

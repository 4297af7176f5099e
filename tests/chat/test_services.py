from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone
from django_q.models import Schedule

from apps.chat import services
from apps.chat.models import Conversation, Message
from apps.chat.presentation import current_status
from apps.chat.services import Turn
from apps.kb.access import resolve_scope
from apps.rbac.models import User
from docmind.errors import PermanentError
from tests.chat.support import QUESTION


def begin(user: User, question: str = QUESTION, **fields: object) -> Turn:
    return services.begin_turn(
        user,
        scope=resolve_scope(user),
        question=question,
        process_id="test:1",
        **fields,  # type: ignore[arg-type]
    )


def test_it_writes_the_question_and_an_empty_answer(user: User) -> None:
    turn = begin(user)
    question, answer = Message.objects.filter(run_id=turn.run_id).order_by("id")
    assert (question.role, question.content, question.status) == ("user", QUESTION, "done")
    assert (answer.role, answer.content, answer.status) == ("assistant", "", "streaming")
    assert answer.reply_to == question
    assert answer.heartbeat_at is not None


@pytest.mark.parametrize(
    ("question", "title"),
    [("  How do  I\nstart? ", "How do I start?"), ("长" * 100, "长" * 59 + "…")],
)
def test_it_titles_a_conversation_by_its_question(user: User, question: str, title: str) -> None:
    turn = begin(user, question)
    assert Conversation.objects.get(pk=turn.conversation_id).title == title


def test_an_untitled_conversation_gets_its_title_with_the_first_question(user: User) -> None:
    conversation = services.create_conversation(user, scope=resolve_scope(user))
    begin(user, conversation_id=conversation.pk)
    conversation.refresh_from_db()
    assert conversation.title == QUESTION


def test_a_refused_question_writes_nothing(user: User) -> None:
    with pytest.raises(PermanentError):
        begin(user, conversation_id=999_999)
    with pytest.raises(PermanentError):
        begin(user, kb_ids=[999_999])
    assert not Conversation.objects.exists()
    assert not Message.objects.exists()


def test_the_history_holds_the_latest_finished_messages(user: User) -> None:
    turn = begin(user, "first")
    Message.objects.filter(pk=turn.message_id).update(status="done", content="one [1]")
    failed = begin(user, "second", conversation_id=turn.conversation_id)
    Message.objects.filter(pk=failed.message_id).update(status="failed", content="half")
    begin(user, "third", conversation_id=turn.conversation_id)
    last = begin(user, "fourth", conversation_id=turn.conversation_id, history_limit=3)
    assert [message.content for message in last.history] == ["one [1]", "second", "third"]
    assert begin(user, "x", conversation_id=turn.conversation_id, history_limit=0).history == ()


def lost(user: User) -> Message:
    turn = begin(user)
    Message.objects.filter(pk=turn.message_id).update(
        content="half an ans", heartbeat_at=timezone.now() - timedelta(seconds=61)
    )
    return Message.objects.get(pk=turn.message_id)


def test_the_sweep_closes_answers_of_dead_processes_and_keeps_their_text(user: User) -> None:
    dead, alive = lost(user), begin(user)
    assert services.fail_lost_runs() == 1
    dead.refresh_from_db()
    assert (dead.status, dead.error_code, dead.content) == ("failed", "run_lost", "half an ans")
    assert Message.objects.get(pk=alive.message_id).status == "streaming"
    assert services.fail_lost_runs() == 0


def test_an_answer_whose_run_is_unknown_is_closed_sooner(user: User) -> None:
    message = Message.objects.get(pk=begin(user).message_id)
    assert services.fail_unknown_run(message).status == "streaming"
    Message.objects.filter(pk=message.pk).update(heartbeat_at=timezone.now() - timedelta(seconds=6))
    assert services.fail_unknown_run(message).status == "failed"


def test_a_dead_answer_shows_as_failed_before_the_sweep(user: User) -> None:
    assert current_status(lost(user)) == "failed"
    assert current_status(Message.objects.get(pk=begin(user).message_id)) == "streaming"


def test_the_sweep_is_a_command_and_a_schedule(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    lost(user)
    call_command("fail_lost_runs")
    assert "1 answers closed" in capsys.readouterr().out
    schedule = Schedule.objects.get(func="apps.chat.tasks.fail_lost_runs")
    assert (schedule.schedule_type, schedule.minutes) == (Schedule.MINUTES, 1)

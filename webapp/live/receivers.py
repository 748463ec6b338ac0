"""What happens elsewhere and shows here: changes of state, log-outs."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_out
from django.db.models.signals import post_save
from django.dispatch import receiver

from webapp.audit.models import Entry
from webapp.collaborations.models import Collaboration
from webapp.core.push import push
from webapp.live.models import Event
from webapp.live.services import HUB_GROUP, add_event, tell
from webapp.live.viewer_sockets import login_name

STORIES = {
    "collaboration.open": "opened",
    "collaboration.started": "The first round is done: it is running",
    "collaboration.pause": "paused",
    "collaboration.resume": "resumed",
    "collaboration.finish": "finished",
    "collaboration.fail": "failed",
}


@receiver(post_save, sender=Entry)
def note_state(instance: Entry, created: bool, **kwargs: Any) -> None:
    """Each act on a collaboration has one audit row; it becomes one line of the event list."""
    story = STORIES.get(instance.action)
    if not created or story is None:
        return
    collaboration = Collaboration.objects.filter(slug=instance.subject.partition(" ")[2]).first()
    if collaboration is not None:
        reason = instance.detail.get("reason")
        text = f"{story}: {reason}" if reason else story
        tell(add_event(collaboration, Event.What.STATE, text))


@receiver(user_logged_out)
def end_private_frames(request: Any, **kwargs: Any) -> None:
    """The signal comes before the session is emptied, so its key still names the browser."""
    key = getattr(getattr(request, "session", None), "session_key", None)
    if key:
        push(HUB_GROUP, {"type": "hub.logged_out", "login": login_name(key)})

"""Mail is sent by a job, once the request that wrote it has committed."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from functools import partial
from smtplib import SMTPException
from typing import Any

from celery import Task, shared_task
from django.conf import settings
from django.core.cache import cache
from django.core.mail import EmailMessage, EmailMultiAlternatives, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db import transaction

logger = logging.getLogger(__name__)
FIELDS = ("subject", "body", "from_email", "to", "cc", "bcc", "reply_to")
ONCE_S = 600  # shorter than the broker's hour, so that a job lost with its process is done again


class QueuedBackend(BaseEmailBackend):
    """Queues on commit: nothing is sent for a transaction that was rolled back."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        for message in email_messages:
            transaction.on_commit(partial(deliver.delay, uuid.uuid4().hex, _packed(message)))
        return len(email_messages)


def _packed(message: EmailMessage) -> dict[str, Any]:
    """As plain values for the queue. Raises ValueError for attachments: the site sends none."""
    if message.attachments:
        raise ValueError("mail with attachments cannot be queued")
    fields = {name: getattr(message, name) for name in FIELDS}
    alternatives = getattr(message, "alternatives", [])
    return fields | {"alternatives": [tuple(part) for part in alternatives]}


@shared_task(bind=True, max_retries=6)
def deliver(self: Task, key: str, fields: dict[str, Any]) -> None:
    """Sends one mail, once for one `key`; tried again for about half an hour."""
    if not cache.add(f"mail:{key}", 1, timeout=ONCE_S):
        return
    parts = fields.pop("alternatives")
    connection = get_connection(settings.EMAIL_DELIVERY_BACKEND)
    message = EmailMultiAlternatives(**fields, connection=connection)
    for content, mimetype in parts:
        message.attach_alternative(content, mimetype)
    try:
        message.send()
    except (SMTPException, OSError) as error:
        cache.delete(f"mail:{key}")
        wait_s = 30 * 2**self.request.retries
        logger.warning("mail not sent, next attempt in %s s: %s", wait_s, error)
        raise self.retry(
            args=(key, fields | {"alternatives": parts}), exc=error, countdown=wait_s
        ) from error

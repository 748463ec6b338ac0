"""The job runner and its timetable.

Start it with `-P threads`: our jobs wait for the database, a mail server or a program that
computes; they do not compute themselves.
"""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("potluck")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.conf.beat_schedule = {
    # A lease lasts 60 s, so a lost device is known to be lost within 90 s.
    "close dead sessions": {"task": "webapp.live.tasks.close_dead_sessions", "schedule": 30.0},
    # After each round the rules are checked at once; this catches what a restart missed.
    "check finish rules": {
        "task": "webapp.collaborations.tasks.check_finish_rules",
        "schedule": 60.0,
    },
    "tend the lab": {"task": "webapp.lab.tasks.tend_lab", "schedule": 60.0},
    "tend tokenizers": {"task": "webapp.tokenizers.tasks.tend_tokenizers", "schedule": 60.0},
    "tend evaluations": {"task": "webapp.evaluations.tasks.tend_evaluations", "schedule": 60.0},
    "tend checkpoints": {"task": "webapp.registry.tasks.tend_checkpoints", "schedule": 60.0},
    "tend models": {"task": "webapp.registry.tasks.tend_models", "schedule": 60.0},
    "thin old metrics": {"task": "webapp.live.tasks.thin_metrics", "schedule": 3600.0},
    "delete expired codes": {
        "task": "webapp.devices.tasks.delete_expired_codes",
        "schedule": 3600.0,
    },
    "forget deleted devices": {
        "task": "webapp.devices.tasks.forget_deleted_devices",
        "schedule": 3600.0,
    },
}

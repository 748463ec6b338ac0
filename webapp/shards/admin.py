from __future__ import annotations

from django.contrib import admin

from webapp.core.admin import ReadOnly
from webapp.shards.models import Pool, Shard


@admin.register(Pool)
class PoolAdmin(ReadOnly):
    list_display = ("revision", "text", "num_shards", "heard_at")
    list_filter = ("revision__collaboration",)
    list_select_related = ("revision__collaboration",)


@admin.register(Shard)
class ShardAdmin(ReadOnly):
    list_display = ("pool", "number", "passes", "position", "device", "expires_at")
    list_filter = (("device", admin.EmptyFieldListFilter), "pool__revision__collaboration")
    search_fields = ("device__name", "device__owner__name")
    list_select_related = ("pool__revision__collaboration", "device")

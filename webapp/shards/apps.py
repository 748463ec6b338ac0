from django.apps import AppConfig


class ShardsConfig(AppConfig):
    name = "webapp.shards"
    label = "shards"

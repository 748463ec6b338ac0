from django.apps import AppConfig


class CollaborationsConfig(AppConfig):
    name = "webapp.collaborations"
    label = "collaborations"

from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    name = "webapp.artifacts"
    label = "artifacts"

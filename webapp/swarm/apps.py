from django.apps import AppConfig


class SwarmConfig(AppConfig):
    name = "webapp.swarm"
    label = "swarm"

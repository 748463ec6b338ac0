from django.apps import AppConfig


class TokenizersConfig(AppConfig):
    name = "webapp.tokenizers"
    label = "tokenizers"

from django.apps import AppConfig


class PrmConfig(AppConfig):
    name = "prm"

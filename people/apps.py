from django.apps import AppConfig


class PeopleConfig(AppConfig):
    name = "people"

    def ready(self) -> None:
        from accounts import single_sign_on
        from people import group_roles

        single_sign_on.call_with_groups(group_roles.synchronize_roles)

"""URLs for login, passwords and API tokens. Only the allauth pages listed here exist.

allauth looks up the names that start with `account_`."""

from allauth.account import views as allauth_views
from django.contrib.auth.decorators import login_not_required
from django.urls import path
from django.views.generic import TemplateView

from accounts import rate_limits, views

# Accounts are created through invitations, and the platform sends no email: these pages explain what to do instead.
_explain_sign_up = login_not_required(TemplateView.as_view(template_name="accounts/sign_up.html"))
_explain_forgotten_password = login_not_required(TemplateView.as_view(template_name="accounts/forgot_password.html"))

urlpatterns = [
    path("accounts/login/", rate_limits.limit_posts("login")(allauth_views.login), name="account_login"),
    path("accounts/logout/", allauth_views.logout, name="account_logout"),
    path("accounts/inactive/", allauth_views.account_inactive, name="account_inactive"),
    path("accounts/sign-up/", _explain_sign_up, name="account_signup"),
    path("accounts/forgotten/", _explain_forgotten_password, name="account_reset_password"),
    path("accounts/password/", views.change_password, name="account_change_password"),
    path("accounts/sign-ins/", views.show_sign_ins, name="sign_ins"),
    path("accounts/tokens/", views.manage_api_tokens, name="tokens"),
    path("accounts/tokens/<int:token>/withdraw", views.revoke_api_token, name="withdraw_token"),
    path("login-link/<str:token>", views.login_link, name="login_link"),
    path("new-password/<str:token>", views.new_password, name="new_password"),
    path("theme/", views.set_theme, name="theme"),
]

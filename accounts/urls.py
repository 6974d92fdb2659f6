"""URLs for login, passwords and API tokens. Only the allauth pages listed here exist.

allauth looks up the names that start with `account_`."""

from allauth.account import views as allauth_views
from allauth.mfa.base import views as factor_views
from allauth.mfa.webauthn import views as passkey_views
from django.contrib.auth.decorators import login_not_required
from django.urls import path
from django.views.generic import TemplateView

from accounts import rate_limits, views
from accounts.views import security, sso

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
    path("accounts/two-step/", rate_limits.limit_posts("login")(factor_views.authenticate), name="mfa_authenticate"),
    path(
        "accounts/login/passkey/",
        login_not_required(rate_limits.limit_posts("login")(passkey_views.login_webauthn)),
        name="mfa_login_webauthn",
    ),
    path("accounts/confirm/", security.confirm, name="account_reauthenticate"),
    path("accounts/security/", security.show_security, name="mfa_index"),
    path("accounts/security/details/", security.change_details, name="change_details"),
    path("accounts/security/app/add/", security.add_app, name="mfa_activate_totp"),
    path("accounts/security/app/remove/", security.remove_app, name="mfa_deactivate_totp"),
    path("accounts/security/codes/", security.show_codes, name="mfa_view_recovery_codes"),
    path("accounts/security/codes/download/", security.download_codes, name="mfa_download_recovery_codes"),
    path("accounts/security/codes/replace/", security.replace_codes, name="mfa_generate_recovery_codes"),
    path("accounts/security/passkeys/add/", security.add_passkey, name="mfa_add_webauthn"),
    path("accounts/security/passkeys/<int:pk>/remove/", security.remove_passkey, name="mfa_remove_webauthn"),
    path("accounts/security/sessions/<str:reference>/end", security.end_session, name="end_session"),
    path("accounts/security/sessions/end-others", security.end_other_sessions, name="end_other_sessions"),
    path("accounts/sso/login", sso.start_login, name="sso_login"),
    path("accounts/sso/confirm", sso.start_confirmation, name="sso_confirm"),
    path("accounts/sso/connect", sso.connect_identity, name="sso_connect"),
    path("accounts/sso/disconnect", sso.disconnect_identity, name="sso_disconnect"),
    path("accounts/sso/callback/", sso.finish, name="sso_callback"),
    path("accounts/sign-ins/", views.show_sign_ins, name="sign_ins"),
    path("accounts/tokens/", views.manage_api_tokens, name="tokens"),
    path("accounts/tokens/<int:token>/withdraw", views.revoke_api_token, name="withdraw_token"),
    path("login-link/<str:token>", views.login_link, name="login_link"),
    path("new-password/<str:token>", views.new_password, name="new_password"),
    path("theme/", views.set_theme, name="theme"),
]

"""All settings, each environment value read once. docs/operations.md describes every variable."""

import datetime as dt
import logging
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from celery.schedules import crontab
from csp.constants import NONE, SELF
from redis.backoff import NoBackoff
from redis.retry import Retry

from config import env, logs
from host import socket_paths

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(env.read_text("STEPMARK_DATA", str(BASE_DIR / "data"))).resolve()

# --- location -----------------------------------------------------------------------------------------------
# One machine: an embedded PostgreSQL and Valkey in DATA_DIR. Many machines: PostgreSQL and Redis by their URLs.
_database = env.read_database("DATABASE_URL")
EMBEDDED = _database is None
ORIGIN = (env.read_text("STEPMARK_ORIGIN", "") or env.read_noted_origin(DATA_DIR)).rstrip("/")
DEBUG = env.read_bool("STEPMARK_DEBUG", default=False)
IS_ONE_MACHINE = EMBEDDED or bool(env.read_text("STEPMARK_SUPERVISOR", ""))  # started by ./run, whatever its database
SECRET_KEY = env.read_text("SECRET_KEY", "") or env.load_secret_key(DATA_DIR, may_make_one=IS_ONE_MACHINE)
ALLOWED_HOSTS = [
    *env.read_list("STEPMARK_HOSTS", "127.0.0.1,localhost,[::1]"),
    urlsplit(ORIGIN).hostname or "localhost",
]
CODE_VERSION = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]  # manifests name it
# Besides uploads, files can be imported from this folder and these object-store addresses.
INCOMING_DIR = Path(_incoming).resolve() if (_incoming := env.read_text("STEPMARK_INCOMING_DIR", "")) else None
INCOMING_ADDRESSES = env.read_list("STEPMARK_INCOMING_ADDRESSES", "")
# Hosts, addresses and networks that scorers and webhooks may use although they are not public.
OUTBOUND_HOSTS = env.read_list("STEPMARK_OUTBOUND_HOSTS", "")
# Named destinations to which leads can deliver snapshots: `lake=s3://bucket/prefix,hub=hf://owner`.
DESTINATIONS = env.read_mapping("STEPMARK_DESTINATIONS")

# --- apps -------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "accounts",
    "events",
    "jobs",
    "labeling",
    "people",
    "prm",
    "machines",
    "live",
    "exports",
    "notices",
    "privacy",
    "demo",
    "annotate",
    "dashboard",
    "api",
    "drf_spectacular",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "django_structlog",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "config.middleware.SecurityHeadersMiddleware",
    "config.middleware.ApiProblemMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.RatingRequestMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.middleware.EventOriginMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "config.uploads.UploadMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "accounts.sessions.SessionUserMiddleware",
    "config.middleware.TimeZoneMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "people.required_factors.RequiredFactorMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
# Requests of the work page's scripts; see config/middleware.py.
RATING_REQUEST_PREFIX = "/work/"
RATING_REQUEST_MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "config.uploads.UploadMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "accounts.sessions.SessionUserMiddleware",
    "config.middleware.ErrorLogMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "people.required_factors.RequiredFactorMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "builtins": ["config.template_components"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    ["django.template.loaders.filesystem.Loader", "django.template.loaders.app_directories.Loader"],
                )
            ],
        },
    }
]

FORM_RENDERER = "config.form_renderer.WidgetRenderer"

# --- data --------------------------------------------------------------------------------------------------------
# The embedded PostgreSQL listens on a socket in the data folder, which admits its owner only.
_embedded = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": "postgres",
    "USER": "stepmark",
    "HOST": str(socket_paths.database_folder(DATA_DIR)),
}
DATABASES = {
    "default": {
        # Persistent connections write twice as many labels per second as a pool, and three times as many as none.
        # A new connection costs as much processor time as several requests, because it plans all statements again.
        # Each thread of web server and worker has one.
        "CONN_MAX_AGE": 3600,
        "CONN_HEALTH_CHECKS": True,  # a connection recovers after the server was restarted
        **(_database or _embedded),
    }
}
# The prepared statements of `rawsql` find rows by key, so one generic plan fits all; planning each time took PostgreSQL
# as long as recording a rating (measured). Django's own statements are not prepared.
DATABASES["default"]["OPTIONS"] = {
    "options": " ".join(
        [
            "-c plan_cache_mode=force_generic_plan",
            # A merge join is expected to stop early if the statistics of a small table lack its newest keys, and
            # then reads the whole large table: a submit read all options after an import.
            "-c enable_mergejoin=off",
            "-c synchronous_commit=on",  # a confirmed write is on disk, whatever the server's default
            # A process that hangs in a transaction would hold its locks forever.
            "-c idle_in_transaction_session_timeout=10min",
        ]
    ),
    **DATABASES["default"].get("OPTIONS", {}),
}
WEB_STATEMENT_SECONDS = env.read_int("STEPMARK_WEB_STATEMENT_SECONDS", default=15, least=1)
LEAST_FREE_BYTES = 2**20 * env.read_int("STEPMARK_LEAST_FREE_MB", default=500)  # imports and exports leave this much
ACCEPTS_DATA_LOSS = env.read_bool("STEPMARK_ACCEPT_DATA_LOSS", default=False)
# A page that expects a file uses another handler; see config.uploads. /tmp may be memory.
FILE_UPLOAD_HANDLERS = ["config.uploads.RefuseFiles"]
FILE_UPLOAD_TEMP_DIR = DATA_DIR / "uploading"
# Multiplies the limits of accounts.rate_limits; 0 turns them off.
RATE_LIMIT_FACTOR = env.read_int("STEPMARK_RATE_LIMIT_FACTOR", default=1)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.read_text("REDIS_URL", "") or f"unix://{socket_paths.broker_socket_path(DATA_DIR)}"
# The client waits for seconds by default; a request without a cache must continue quickly.
REDIS_CACHE_OPTIONS = {"retry": Retry(NoBackoff(), 1), "socket_timeout": 2, "socket_connect_timeout": 2}
CACHES = {
    # Falls back to the memory of the process without Redis.
    "default": {"BACKEND": "config.cache.FallbackRedisCache", "LOCATION": REDIS_URL, "OPTIONS": REDIS_CACHE_OPTIONS},
}

# --- background work (jobs are rows; Celery only wakes workers) -------------------------------------------
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker waits for its broker indefinitely
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A message of a lost worker is delivered again after this time. Longer work is a job, whose row shows that it is
    # running, so that the second delivery is ignored.
    "visibility_timeout": 300,
    # A person may be waiting for the response: try once; the sweep publishes again.
    "max_retries": 0,
    # An idle worker asks again after this many seconds; a message arrives at once. A worker that stops waits for the
    # answer, and the supervisor kills it after ten seconds.
    "polling_interval": 10.0,
    "unacked_restore_interval": 60,
    "reauth_check_interval": 300,
    "socket_connect_timeout": 2,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_DEFAULT_QUEUE = "short"
# A worker serves both queues unless --queues names one. Separate workers keep long jobs from blocking short tasks.
CELERY_TASK_QUEUES: dict[str, dict[str, str]] = {"short": {}, "jobs": {}}
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 5  # then a job is interrupted after its last chunk and resumes elsewhere
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULER = "jobs.scheduler.QuietScheduler"
CELERY_BEAT_SCHEDULE = {
    # Whatever has work now: jobs, leases, notices, generations, and traces that wait for their consensus.
    "look for work": {"task": "jobs.look_for_work", "schedule": 30.0},
    "delete old uploads": {"task": "labeling.forget_uploads", "schedule": 24 * 3600.0},
    "delete old notices": {"task": "notices.delete_old", "schedule": crontab(hour="3", minute="25")},
    "recount everything": {"task": "labeling.recount_all", "schedule": crontab(hour="2", minute="10")},
    "delete scores of old PRMs": {"task": "prm.forget_scores", "schedule": crontab(hour="3", minute="35")},
    "delete old addresses of events": {"task": "events.delete_old_origins", "schedule": crontab(hour="3", minute="15")},
    "delete expired sessions": {"task": "accounts.forget_ended_sessions", "schedule": crontab(hour="3", minute="5")},
}

# --- logs and metrics -----------------------------------------------------------------------------------------------
LOGGING = logs.configure_logging(as_json=not EMBEDDED, level=env.read_text("STEPMARK_LOG_LEVEL", "INFO").upper())
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
# Successful requests are logged only at STEPMARK_LOG_LEVEL=DEBUG.
DJANGO_STRUCTLOG_STATUS_DEFAULT_LOG_LEVEL = DJANGO_STRUCTLOG_STATUS_START_LOG_LEVEL = logging.DEBUG
DJANGO_STRUCTLOG_STATUS_2XX_LOG_LEVEL = logging.DEBUG
DJANGO_STRUCTLOG_STATUS_4XX_LOG_LEVEL = logging.INFO
ORIGIN_DAYS = env.read_int("STEPMARK_ORIGIN_DAYS", default=180)  # how long events keep address and browser
MAX_TOKEN_DAYS = env.read_int("STEPMARK_MAX_TOKEN_DAYS", default=365)  # the longest life of an API token; 0: no limit
# Erasures, changed passwords and ended memberships, for a restore: keep it where it survives the loss of the database.
REVOCATIONS_FILE = Path(env.read_text("STEPMARK_REVOCATIONS_FILE", "") or DATA_DIR / "revocations.jsonl")
METRICS_TOKEN = env.read_text("STEPMARK_METRICS_TOKEN", "")

# --- people ------------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
# Extends allauth's backend, which accepts e-mail addresses; a second backend would hash each wrong password twice.
AUTHENTICATION_BACKENDS = ["accounts.sessions.PreloadedUserBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "accounts.passwords.PlatformWordValidator"},
]
LOGIN_REDIRECT_URL = "annotate:home"
LOGIN_URL = "account_login"
ACCOUNT_ADAPTER = "accounts.login.AccountAdapter"
ACCOUNT_FORMS = {"login": "accounts.forms.LogInForm"}
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"  # one machine sends no mail
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None, "change_password": None}  # see accounts.rate_limits
SESSION_ENGINE = "accounts.sessions"
SESSION_COOKIE_AGE = 3600 * env.read_int("STEPMARK_SESSION_HOURS", default=14 * 24, least=1)  # since the last login
SESSION_IDLE = dt.timedelta(hours=env.read_int("STEPMARK_SESSION_IDLE_HOURS", default=24, least=1))
# How long after a login or confirmation no new one is needed; see accounts.confirmation.
CONFIRMATION_LIFETIME = dt.timedelta(minutes=env.read_int("STEPMARK_CONFIRM_MINUTES", default=30, least=1))

# --- second factors and single sign-on -----------------------------------------------------------------------------
_roles = ("owner", "lead", "reviewer", "engineer", "viewer", "annotator")
SECOND_FACTOR_ROLES = env.read_choices("STEPMARK_SECOND_FACTOR_ROLES", [*_roles, "operator"])
MFA_ADAPTER = "accounts.factors.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_TOTP_TOLERANCE = 1  # a code is accepted for 30 more seconds before and after, because clocks differ
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_FORMS = {
    "authenticate": "accounts.forms.CodeForm",
    "activate_totp": "accounts.forms.NewAppForm",
    "add_webauthn": "accounts.forms.NewPasskeyForm",
    "authenticate_webauthn": "accounts.forms.PasskeyStepForm",
    "login_webauthn": "accounts.forms.PasskeyLogInForm",
}
MFA_RATE_LIMITS: dict[str, str | None] = {"webauthn_login": None}  # see accounts.rate_limits
SSO = env.make_single_sign_on(
    issuer=env.read_text("STEPMARK_OIDC_ISSUER", ""),
    client_id=env.read_text("STEPMARK_OIDC_CLIENT_ID", ""),
    client_secret=env.read_text("STEPMARK_OIDC_CLIENT_SECRET", ""),
    name=env.read_text("STEPMARK_OIDC_NAME", "single sign-on"),
    scopes=env.read_list("STEPMARK_OIDC_SCOPES", "openid,profile,email"),
    groups_claim=env.read_text("STEPMARK_OIDC_GROUPS_CLAIM", "groups"),
    group_roles=env.read_mapping("STEPMARK_OIDC_GROUPS"),
    roles=_roles,
)
SOCIALACCOUNT_ADAPTER = "accounts.single_sign_on.SingleSignOnAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False  # an email address that a person typed is no proof

# --- email -------------------------------------------------------------------------------------------------------
# Notices only. Without a mail server nothing is mailed.
_mail = env.read_mail_server("STEPMARK_MAIL")
EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.security == "starttls", _mail.security == "tls"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.read_text("STEPMARK_MAIL_FROM", f"stepmark@{urlsplit(ORIGIN).hostname}")

# --- browser security ----------------------------------------------------------------------------
# Trace content is hostile: only our own files load, without inline scripts, inline styles or frames.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "font-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        # Scripts set no HTML except through the policies of static/js/html.js and static/js/html_of_htmx.js.
        "require-trusted-types-for": ["'script'"],
        "trusted-types": ["stepmark", "default"],
    }
}
# Keeps login links out of the Referer header; "no-referrer" would also remove the origin from our own forms.
SECURE_REFERRER_POLICY = "same-origin"
# Of every response that has none of its own. Pages have a wider content policy; static files may be cached.
SECURITY_HEADERS = {
    "Cache-Control": "no-store, private",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
# Only of pages; a browser ignores it elsewhere.
PERMISSIONS_POLICY = ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer",
        "camera",
        "display-capture",
        "geolocation",
        "gyroscope",
        "hid",
        "local-fonts",
        "magnetometer",
        "microphone",
        "midi",
        "payment",
        "serial",
        "usb",
        "xr-spatial-tracking",
    )
)
CSRF_TRUSTED_ORIGINS = [ORIGIN]
CSRF_FAILURE_VIEW = "accounts.views.csrf_failure"
LANGUAGE_COOKIE_SAMESITE = "Lax"

# With an https origin, all requests are redirected to TLS and browsers remember it.
_secure = ORIGIN.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = _secure
COOKIE_PREFIX = "__Host-" if _secure else ""  # browsers then refuse these cookies from subdomains and without TLS
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}sessionid", f"{COOKIE_PREFIX}csrftoken"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not _secure  # http://localhost; browsers offer passkeys on no other http site
SECURE_SSL_REDIRECT = _secure
SECURE_REDIRECT_EXEMPT = [r"^health/"]  # asked by the machine itself, without TLS
SECURE_HSTS_SECONDS = env.read_int("STEPMARK_HSTS_SECONDS", default=365 * 24 * 3600) if _secure else 0
# Forwarded scheme and address are trusted from this many proxies only.
PROXIES = env.read_int("STEPMARK_PROXIES", default=0)
ALLAUTH_TRUSTED_PROXY_COUNT = PROXIES
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PROXIES else None
# Whether subdomains use TLS is for the proxy to declare.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SILENCED_SYSTEM_CHECKS += ["files.E001"]  # the first upload creates its folder

# --- REST API -------------------------------------------------------------------------------------------------
API_PREFIX = "/api/"
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["api.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["api.authentication.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["api.json_parser.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["api.authentication.RequestThrottle"],
    "EXCEPTION_HANDLER": "api.problems.problem_response",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,  # `?format=` names a file format
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Stepmark",
    "DESCRIPTION": "Import traces, export labels, and use the current PRM. Create tokens on your account page.",
    "VERSION": CODE_VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/",
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "api.problems.add_problems_to_schema"],
    "ENUM_NAME_OVERRIDES": {
        "SnapshotPurpose": "exports.models.SnapshotPurpose",
        "SourcePurpose": "labeling.models.trace.SourcePurpose",
        "PrmPurpose": "prm.models.prm.PRMUsagePurpose",
    },
}

# --- languages, time zone, static files ---------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
# With one language there is nothing to negotiate, and looking up translations is a tenth of the time of a page.
USE_I18N = len(LANGUAGES) > 1
RATING_REQUEST_MIDDLEWARE += ["django.middleware.locale.LocaleMiddleware"] if USE_I18N else []
NUMBER_GROUPING = 3  # of numbers with a "g" format
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"  # default; see config.middleware.TimeZoneMiddleware
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "build" / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_ALLOW_ALL_ORIGINS = False  # only our own pages use them
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "config.static_files.ModuleStaticStorage"},
}

# One image for all processes: web, worker, beat and the migration step differ only by their command.
FROM python:3.11-slim-trixie AS build
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
RUN pip install --no-cache-dir --disable-pip-version-check uv==0.13.8
WORKDIR /srv/stepmark
# Install the packages first: they rarely change, so this layer stays in the cache.
# requirements-stores.txt also has the packages for object stores and the Hugging Face hub.
ARG REQUIREMENTS=requirements.txt
COPY requirements.txt requirements-stores.txt ./
RUN uv venv /srv/venv && uv pip install --python /srv/venv/bin/python --no-cache --no-deps --require-hashes -r "${REQUIREMENTS}"
COPY . .
# Give static files their hashed names. The key and the data folder exist for this line only.
RUN SECRET_KEY=for-this-line-alone STEPMARK_DATA=/tmp/build /srv/venv/bin/python manage.py collectstatic --no-input \
    && python -m compileall -q .

FROM python:3.11-slim-trixie
ENV PATH=/srv/venv/bin:$PATH PYTHONUNBUFFERED=1 STEPMARK_DATA=/data
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin stepmark && install -d -o stepmark -m 0700 /data
COPY --from=build /srv/venv /srv/venv
COPY --from=build /srv/stepmark /srv/stepmark
WORKDIR /srv/stepmark
USER 10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=4)"]
CMD ["gunicorn", "--config", "config/gunicorn.py", "--bind", "0.0.0.0:8000", "config.wsgi"]

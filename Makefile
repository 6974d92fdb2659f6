# The same recipes for people, hooks and the build: nothing here is done otherwise elsewhere.
.PHONY: run test lint lock secrets pictures

run:
	./run

test:
	./test

# The quick part of ./test, and what can be put right by itself.
lint:
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/mypy .
	.venv/bin/lint-imports

# Both lists anew from pyproject.toml, every package with all its published hashes. The development list is held to the
# runtime's pins. A pin stays while it satisfies the table: delete a list to upgrade everything in it. Needs uv.
compile = uv pip compile pyproject.toml --quiet --generate-hashes --universal --python-version 3.11 --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"
lock:
	$(compile) --output-file requirements.txt
	$(compile) --all-extras --group dev --constraint requirements.txt --output-file requirements-dev.txt

# The three files that docker-compose.yml reads; what is there already stays. The folder keeps others out: the files
# themselves must be readable for the user inside the containers.
secrets:
	@umask 022 && mkdir -p -m 700 secrets && cd secrets && \
	for name in secret_key database_password; do \
		test -s $$name || LC_ALL=C tr -dc 'a-zA-Z0-9' </dev/urandom | head -c 50 >$$name; \
	done && \
	test -s database_url || printf 'postgresql://stepmark:%s@database:5432/stepmark' "$$(cat database_password)" >database_url

# The pictures of README and guides, from the demo. Needs Chromium.
pictures:
	.venv/bin/python -m pytest -q -p playwright -m "journey or not journey" tests/journeys/screenshots.py

# Recipes for people, hooks and builds. Each task has only this one recipe.
.PHONY: run test lint lock sbom audit secrets pictures

run:
	./run

test:
	./test

# The quick part of ./test. It fixes what ruff can fix.
lint:
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/mypy .
	.venv/bin/lint-imports

# Write the requirements files from pyproject.toml, with all published hashes of each package. They have the same pins. A pin stays as long as it satisfies pyproject.toml: delete a file to upgrade all of
# its packages. Needs uv.
compile = uv pip compile pyproject.toml --quiet --generate-hashes --universal --python-version 3.11 --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"
lock:
	$(compile) --output-file requirements.txt
	$(compile) --extra s3 --extra hf --constraint requirements.txt --output-file requirements-stores.txt
	$(compile) --all-extras --group dev --constraint requirements-stores.txt --output-file requirements-dev.txt

# Write the bill of materials of the locked packages and the vendored scripts (CycloneDX).
sbom:
	@mkdir -p build
	.venv/bin/python -m dependencies.sbom --output build/sbom.json

# Compare the locked packages with advisories: `make audit ADVISORIES=folder`. See docs/security.md.
audit:
	.venv/bin/python -m dependencies.audit $(ADVISORIES)

# Create the three files that docker-compose.yml reads, unless they exist. Only the owner can enter the folder, because
# the user inside the containers must be able to read the files.
secrets:
	@umask 022 && mkdir -p -m 700 secrets && cd secrets && \
	for name in secret_key database_password; do \
		test -s $$name || LC_ALL=C tr -dc 'a-zA-Z0-9' </dev/urandom | head -c 50 >$$name; \
	done && \
	test -s database_url || printf 'postgresql://stepmark:%s@database:5432/stepmark' "$$(cat database_password)" >database_url

# Take the pictures of the README and the guides from the demo. Needs Chromium.
pictures:
	.venv/bin/python -m pytest -q -p playwright -m "journey or not journey" tests/journeys/screenshots.py

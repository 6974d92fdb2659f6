"""The platform's bill of materials, and known vulnerabilities of its packages. Run by `make`.

The source is requirements.txt, which pins every package with its hashes, and the manifest of the vendored scripts.
"""

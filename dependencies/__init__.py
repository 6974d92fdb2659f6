"""What the platform is made of: its bill of materials, and known weaknesses of its packages. Run by `make`.

The source is requirements.txt, which pins every package with its hashes, and the manifest of the vendored scripts.
"""

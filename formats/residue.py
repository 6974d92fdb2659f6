"""The bytes of a record that columns alone do not give back, kept small. Pure."""

import zstandard

MAX_UNPACKED_BYTES = 64 * 1024 * 1024  # more than a line may be long: nothing larger was ever packed


def pack_residue(line: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=6).compress(line)


def unpack_residue(packed: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_UNPACKED_BYTES)

"""Bytes of event files: protocol buffers' wire format, CRC-32C, and records as TFRecord frames them."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

# ---- protocol buffers: a message is its fields, each behind a key of its number and the kind of its value ----


class Single(float):
    """A number that goes out in 32 bits."""


def _varint(n: int) -> bytes:
    n &= (1 << 64) - 1  # negative ones go out as 64 bits of two's complement
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number: int, value: Any) -> bytes:
    """Encode a field: an int or bool as varint, a float as 64 bits, text and messages as bytes, a list as repeats."""
    if value is None:
        return b""
    if isinstance(value, (list, tuple)):
        return b"".join(field(number, v) for v in value)
    if isinstance(value, Single):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def message(**fields: Any) -> bytes:
    """Encode a message from its fields, each named f and its number; None leaves one out."""
    return b"".join([field(int(name[1:]), value) for name, value in fields.items()])


def packed(values: list[float], kind: str = "d") -> bytes:
    """Encode repeated numbers in one field's bytes."""
    return struct.pack(f"<{len(values)}{kind}", *values)


# ---- CRC-32C (Castagnoli), bits reversed ----

_POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (_POLYNOMIAL if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _table()


@cache
def _power(j: int) -> int:
    """Return x ** 2 ** j modulo the polynomial; bit i stands for x ** (31 - i)."""
    if j == 0:
        return 1 << 30
    root = _power(j - 1)
    square = 0
    for i in range(32):
        if root >> i & 1:
            square ^= root << i  # 63 bits, where bit i stands for x ** (62 - i)
    for i in range(31):
        if square >> i & 1:
            square ^= (_POLYNOMIAL << 1 | 1) << i
    return square >> 31


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of bytes.

    Long ones are folded as whole integers: the front A of A * x**m + B is multiplied by x**m modulo the polynomial, which
    leaves a number of half the length with the same remainder. Then it goes byte by byte.
    """
    if len(data) < 256:
        crc = 0xFFFFFFFF
        for byte in data:
            crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
        return crc ^ 0xFFFFFFFF
    # The first bit is the lowest, and that of the highest power.
    bits, rest = len(data) * 8, int.from_bytes(data, "little") ^ 0xFFFFFFFF
    while bits > 1024:
        j = (bits - 1).bit_length() - 1
        if bits - (1 << j) + 31 >= bits:
            j -= 1
        front_bits = bits - (1 << j)
        front, rest = rest & ((1 << front_bits) - 1), rest >> front_bits
        power, product = _power(j), 0
        for i in range(32):
            if power >> i & 1:
                product ^= front << i
        length = max(1 << j, front_bits + 31)
        rest = rest << length - (1 << j) ^ product << length - (front_bits + 31)
        bits = length
    crc, bytes_left = 0, (bits + 7) // 8
    for byte in (rest << bytes_left * 8 - bits).to_bytes(bytes_left, "little"):
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """Frame a record: its length, a masked CRC of that, the record, a masked CRC of it."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)

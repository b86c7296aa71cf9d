"""What programs write and read, by the kernel's public header."""

import shutil
import subprocess

import pytest

from doors.mads.user_mad import (
    HEADER_BYTES,
    SHORT_HEADER_BYTES,
    Address,
    Ioctl,
    Registration,
    UserMad,
    packed_registration,
    unpacked_registration,
)

MAD = bytes(range(256))
ADDRESS = Address(lid=0x1234, qpn=1, sl=3, path_bits=2, p_key_index=5, q_key=0x80010000)

LAYOUT = """
#include <stddef.h>
#include <stdio.h>
#include <rdma/ib_user_mad.h>
int main(void) {
    printf("%lx %lx %lx %lx %zu %zu %zu %zu\\n", (long)IB_USER_MAD_REGISTER_AGENT, (long)IB_USER_MAD_UNREGISTER_AGENT,
           (long)IB_USER_MAD_ENABLE_PKEY, (long)IB_USER_MAD_REGISTER_AGENT2, sizeof(struct ib_user_mad_hdr),
           sizeof(struct ib_user_mad_hdr_old), offsetof(struct ib_user_mad_hdr, lid),
           offsetof(struct ib_user_mad_hdr, pkey_index));
}
"""


def test_numbers_and_places_are_those_of_the_kernels_header(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    (tmp_path / "layout.c").write_text(LAYOUT)
    subprocess.run(["gcc", "-o", "layout", "layout.c"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout.split()
    assert [int(word, 16) for word in printed[:4]] == [
        Ioctl.REGISTER_AGENT,
        Ioctl.UNREGISTER_AGENT,
        Ioctl.ENABLE_PKEY,
        Ioctl.REGISTER_AGENT2,
    ]
    packed = UserMad(0, 0, 0, 0, Address(0xABCD, 0, p_key_index=0x7788), b"").pack(HEADER_BYTES)
    lid_at, p_key_at = int(printed[6]), int(printed[7])
    assert [int(word) for word in printed[4:6]] == [HEADER_BYTES, SHORT_HEADER_BYTES]
    assert packed[lid_at : lid_at + 2] == b"\xab\xcd"
    assert packed[p_key_at : p_key_at + 2] == b"\x88\x77"


@pytest.mark.parametrize("header_bytes", [HEADER_BYTES, SHORT_HEADER_BYTES])
def test_what_is_written_is_read_back(header_bytes):
    address = ADDRESS if header_bytes == HEADER_BYTES else Address(0x1234, 1, 3, 2, 0, 0x80010000)
    written = UserMad(7, 0, 250, 3, address, MAD)
    assert UserMad.unpack(written.pack(header_bytes), header_bytes) == written


def test_a_read_says_how_long_it_is():
    packed = UserMad(0, 0, 0, 0, ADDRESS, MAD).pack(HEADER_BYTES)
    assert int.from_bytes(packed[16:20], "little") == HEADER_BYTES + len(MAD)


def test_too_short_a_write_is_refused():
    with pytest.raises(ValueError, match="64 bytes: expected 88 and more"):
        UserMad.unpack(bytes(64), HEADER_BYTES)


def test_an_agent_is_registered_in_two_ways():
    mask = (1 << 1 | 1 << 0x12).to_bytes(16, "little")
    first = bytes(4) + mask + bytes([1, 0x32, 1, 0, 0x14, 5, 1, 0])
    second = bytes(4) + bytes([1, 0, 0, 0, 0x32, 1, 0, 0]) + bytes(4) + mask + (0x1405).to_bytes(4, "little")
    second += bytes([1, 0, 0, 0])
    expected = Registration(1, 0x32, 1, 1 << 1 | 1 << 0x12, 0x1405, 1)
    assert unpacked_registration(Ioctl.REGISTER_AGENT, first) == expected
    assert unpacked_registration(Ioctl.REGISTER_AGENT2, second) == expected
    assert packed_registration(first, 9) == bytes([9, 0, 0, 0]) + first[4:]


def test_a_registration_of_another_length_is_refused():
    with pytest.raises(ValueError, match="27 bytes: expected 28"):
        unpacked_registration(Ioctl.REGISTER_AGENT, bytes(27))

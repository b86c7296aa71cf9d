"""The files in which a host finds its channel adapter."""

import pytest

from doors.rdma_cm.address_plan import AddressPlan
from doors.sysfs import HostFiles
from toolchain.atomic_files import OutputError


def test_a_full_disk_is_told_with_the_file_that_it_has_no_room_for(tmp_path):
    version = tmp_path / "sys" / "class" / "infiniband_mad" / "abi_version"
    version.parent.mkdir(parents=True)
    version.symlink_to("/dev/full")
    with pytest.raises(OutputError, match=f"^{version}: cannot be written: No space left on device$"):
        HostFiles(tmp_path, [], AddressPlan({}))

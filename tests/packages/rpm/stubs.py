"""Small packages for what is not to be had here: EL's own ones, and the former ovirt-scheduler-proxy."""

from __future__ import annotations

import subprocess
from pathlib import Path

_RPMBUILD = [
    "rpmbuild",
    "--quiet",
    "-bb",
    "--define",
    "_build_id_links none",
    "--define",
    "debug_package %{nil}",
]

#: What EL has: libraries, systemd, an interpreter; and that nothing is enabled by itself.
_DISTRIBUTION = """
Name: distribution
Version: 9
Release: 1
Summary: What the distribution has
License: none
BuildArch: noarch
AutoReqProv: no
{provides}
%description
It stands for the distribution's packages.
%install
install -d %{{buildroot}}/usr/lib/systemd/system-preset
echo 'disable *' > %{{buildroot}}/usr/lib/systemd/system-preset/99-default-disable.preset
%files
/usr/lib/systemd/system-preset/99-default-disable.preset
"""

#: As ovirt-scheduler-proxy.spec.in of oVirt has it, of its last release: files, users, and scriptlets.
_FORMER = """
Name: ovirt-scheduler-proxy
Version: 0.1.9
Release: 1
Summary: Scheduling Proxy for Open Virtualization
License: ASL 2.0
BuildArch: noarch
%description
The former proxy, without its code.
%install
install -d %{buildroot}/usr/share/ovirt-scheduler-proxy/plugins %{buildroot}/var/log/ovirt-scheduler-proxy
install -d %{buildroot}/usr/lib/systemd/system
cat > %{buildroot}/usr/lib/systemd/system/ovirt-scheduler-proxy.service <<EOF
[Service]
User=ovirt
WorkingDirectory=/usr/share/ovirt-scheduler-proxy
EnvironmentFile=-/etc/sysconfig/ovirt-scheduler-proxy
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
EOF
%pre
getent group ovirt >/dev/null || groupadd ovirt
getent passwd ovirt >/dev/null || useradd -g ovirt -s /sbin/nologin -d /usr/share/ovirt-scheduler-proxy ovirt
%post
if [ $1 -eq 1 ]; then systemctl --no-reload preset ovirt-scheduler-proxy.service || :; fi
%preun
if [ $1 -eq 0 ]; then systemctl --no-reload disable --now ovirt-scheduler-proxy.service || :; fi
%files
/usr/lib/systemd/system/ovirt-scheduler-proxy.service
/usr/share/ovirt-scheduler-proxy
%attr(-, ovirt, ovirt) /var/log/ovirt-scheduler-proxy
"""


def distribution(place: Path, provides: list[str]) -> Path:
    lines = "\n".join(f"Provides: {each}" for each in provides)
    return _built(place, "distribution", _DISTRIBUTION.format(provides=lines))


def former_proxy(place: Path) -> Path:
    return _built(place, "former", _FORMER)


def _built(place: Path, name: str, text: str) -> Path:
    top = place / name
    top.mkdir()
    (top / "stub.spec").write_text(text)
    subprocess.run(
        [*_RPMBUILD, "--define", f"_topdir {top}", str(top / "stub.spec")], check=True, capture_output=True
    )
    (package,) = top.rglob("*.rpm")
    return package

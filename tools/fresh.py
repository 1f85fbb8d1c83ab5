"""`make fresh`: runs the README's two commands on a machine that has nothing but what the README asks for.

That machine is a Debian root made by debootstrap under `.build/fresh`, with Python, make, git and CA certificates. It
uses the package sources, certificates and proxies of this machine. Everything runs in mount and PID namespaces of its
own: however this script ends, the kernel unmounts what was mounted and kills what still runs.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

CHECKOUT = Path(__file__).parent.parent
WORK = CHECKOUT / ".build" / "fresh"
ROOT = WORK / "root"
PACKAGES = "python3,make,git,ca-certificates"
COMMANDS = ("make demo", "make test")
#: How to reach a package registry from here. A value that is a path is copied into the root.
VARIABLES = frozenset(
    [
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "PIP_FIND_LINKS",
        "PIP_NO_INDEX",
        "PIP_TRUSTED_HOST",
        "PIP_CONFIG_FILE",
        "PIP_CERT",
        "PIP_CLIENT_CERT",
        "PIP_PROXY",
        "PIP_DEFAULT_TIMEOUT",
        "PIP_RETRIES",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
    ]
)
#: The same, as files.
FILES = (
    "/etc/apt",
    "/usr/share/keyrings",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pip.conf",
    "/etc/resolv.conf",
    "/etc/hosts",
)
PERSONAL_FILES = (".config/pip/pip.conf", ".pip/pip.conf")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def fail(message: str) -> NoReturn:
    sys.exit(f"make fresh: {message}")


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: sys.exit(143))
    require_privileges()
    require_debootstrap()
    suite, mirror = package_source()
    base = WORK / f"base-{suite}-{platform.machine()}"
    started = time.monotonic()
    if not base.exists():
        report(f"building a base system ({suite}: {PACKAGES})")
        build_base(base, suite, mirror)
        report(f"built in {time.monotonic() - started:.0f} s; the next `make fresh` uses it again")
    remove(ROOT)
    subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(ROOT)], check=True)
    environment = copy_configuration()
    copy_checkout(ROOT / "srv" / "ralph")
    for command in COMMANDS:
        started = time.monotonic()
        report(f"{command}, in a fresh {suite}")
        code = in_namespace(ENTER, str(ROOT), f"cd /srv/ralph && {command}", env=environment)
        report(f"{command} ended with {code} after {time.monotonic() - started:.0f} s")
        if code:
            report(f"its files are in {ROOT.relative_to(CHECKOUT)}")
            return 1
    remove(ROOT)
    return 0


def report(text: str) -> None:
    print(f"== {text}", flush=True)


def require_privileges() -> None:
    if platform.system() != "Linux" or os.geteuid() != 0:
        fail("needs Linux and root, because it makes a root file system and mounts /proc in it")
    if shutil.which("unshare") is None:
        fail("needs the program `unshare` (util-linux)")
    if in_namespace(f"mount -t tmpfs tmpfs {shlex.quote(str(CHECKOUT / 'tools'))}", stderr=subprocess.DEVNULL):
        fail("this machine allows no mount namespaces (in a container, start it with --privileged)")


def require_debootstrap() -> None:
    if shutil.which("debootstrap"):
        return
    if shutil.which("apt-get") is None:
        fail("needs debootstrap and apt-get (Debian or Ubuntu)")
    report("installing debootstrap")
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "debootstrap"]):
        if subprocess.run(command, check=False).returncode:
            fail("debootstrap could not be installed; install it and try again")


def package_source() -> tuple[str, str]:
    """The release of this machine and the mirror that its own apt takes it from."""
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for line in listed.splitlines():
        release, component, mirror = line.split(" ", 2)
        if (release, component) == (suite, "main"):
            return suite, mirror
    fail(f"apt has no source for '{suite}' main")


def build_base(base: Path, suite: str, mirror: str) -> None:
    part = base.with_name(f"{base.name}.part")
    remove(part)
    part.mkdir(parents=True)
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(part), mirror]
    log = WORK / "debootstrap.log"
    with log.open("wb") as output:
        if in_namespace('exec "$@"', *command, stdout=output, stderr=subprocess.STDOUT):
            sys.stderr.write(log.read_text(errors="replace")[-3000:])
            fail("debootstrap failed")
    for package in (part / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()
    part.rename(base)


#: In the namespaces, as their first process: mounts what a running system has, then runs a command as a login would.
#: `$1` is the root and `$2` the command. The first process of a PID namespace ignores signals that it does not trap.
ENTER = f"""
set -eu
trap 'exit 143' TERM HUP
trap 'exit 130' INT
mount -t proc proc "$1/proc"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
for name in {" ".join(DEVICES)}; do
    touch "$1/dev/$name"
    mount --bind "/dev/$name" "$1/dev/$name"
done
mkdir "$1/dev/pts" "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$1/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
ln -s pts/ptmx "$1/dev/ptmx"
ln -s /proc/self/fd "$1/dev/fd"
for stream in stdin:0 stdout:1 stderr:2; do ln -s "/proc/self/fd/${{stream#*:}}" "$1/dev/${{stream%:*}}"; done
chroot "$1" /bin/sh -c "$2"
"""


def in_namespace(script: str, *arguments: str, **options: object) -> int:
    """Runs a shell script in new mount and PID namespaces; its exit code. They end with it, and with us."""
    with_us = ["setpriv", "--pdeathsig", "KILL", "--"]  # even if somebody kills us
    command = [*with_us, "unshare", "--mount", "--pid", "--kill-child", "--", "/bin/sh", "-c", script, "sh", *arguments]
    process = subprocess.Popen(command, **options)  # type: ignore[call-overload]
    try:
        return int(process.wait())
    except BaseException:
        # `unshare` ignores SIGINT and SIGTERM. When it is killed, so is the first process of the PID namespace, and all
        # others with it.
        process.kill()
        process.wait()
        raise


def copy_configuration() -> dict[str, str]:
    """Copies what says how to reach the registries; returns the environment of a login."""
    environment = {"HOME": "/root", "PATH": PATH, "TERM": os.environ.get("TERM", "dumb")}
    for name, value in os.environ.items():
        if name.upper() in VARIABLES:
            environment[name] = value
            if value.startswith("/"):
                copy(Path(value), ROOT / value[1:])
    for file in FILES:
        copy(Path(file), ROOT / file[1:])
    for file in PERSONAL_FILES:
        copy(Path.home() / file, ROOT / "root" / file)
    return environment


def copy(source: Path, target: Path) -> None:
    """Replaces `target`: a link there could lead out of the root. Follows the links of `source`; it may be missing."""
    if not source.exists():
        return
    remove(target)
    if source.is_dir():
        shutil.copytree(source, target, ignore_dangling_symlinks=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def copy_checkout(target: Path) -> None:
    """A clone of this checkout, with its uncommitted changes to tracked files."""
    config = WORK / "gitconfig"
    config.write_text("[safe]\n\tdirectory = *\n")  # this is root, and the checkout may be somebody else's
    environment = os.environ | {"GIT_CONFIG_GLOBAL": str(config)}
    subprocess.run(
        ["git", "clone", "--quiet", "--no-hardlinks", str(CHECKOUT), str(target)], env=environment, check=True
    )
    changes = subprocess.run(
        ["git", "diff", "--binary", "HEAD"], cwd=CHECKOUT, env=environment, capture_output=True, check=True
    ).stdout
    if changes:
        subprocess.run(["git", "apply", "--index"], cwd=target, env=environment, input=changes, check=True)


def remove(path: Path) -> None:
    """Never follows a mount: nothing is mounted here unless somebody else mounted it."""
    subprocess.run(["rm", "-rf", "--one-file-system", str(path)], check=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

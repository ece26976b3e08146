# SPDX-License-Identifier: GPL-2.0
"""Debian's packages, kernel sources, configurations and images, from the host's own mirror.

apt runs with a private root below the store and leaves the host's configuration
alone. Its only sources are the Debian archives of the host's configuration, or
another suite of the same mirror. Each archive must be signed by the key that the
host's configuration names for it, or else by Debian's key. An archive that the
host trusts without a signature is refused.
"""

from __future__ import annotations

import contextlib
import lzma
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from firsttouch.building.store import Entry, locked, store_root
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE, Architecture, load_architecture
from firsttouch.catalog.experiments import ARM64, Packages
from firsttouch.catalog.releases import Release
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file, write_atomically
from firsttouch.processes import child_process, output
from firsttouch.progress import Reporter
from firsttouch.tables import dump_json, parse_json
from firsttouch.typed import read

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_URI = re.compile(r"'(?P<uri>[^']+)' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})")
# The path tells Debian's archives from others before their lists are fetched.
_DEBIANS = re.compile(r"/debian(-security)?/?$")
_LIST = "mirror+file:"
_SIGNED = (
    "-oAcquire::AllowInsecureRepositories=false",
    "-oAcquire::AllowWeakRepositories=false",
    "-oAPT::Get::AllowUnauthenticated=false",
    "-oAPT::Sandbox::User=root",
)
_INSTALL = ("-oAcquire::ForceHash=SHA256", "-y", "--no-install-recommends", "install")
# Where Debian's packages have the image: linux-image-* and linux-binary-*.
_IMAGES = ("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
# Prints a line ADDRESS TYPE NAME for each symbol of an image.
_SYMBOL_FINDER = "vmlinux_to_elf.scripts.kallsyms_finder"
# Where linux-image-* has the image's configuration; linux-binary-* has none.
_CONFIGURATION = "boot/config-*"
# Debian's name for what its arm64 kernels are built for: servers in virtual
# machines. The lab's kernels start from its configuration.
CLOUD = "cloud-arm64"
# The flavours that both releases have.
FLAVOURS = (CLOUD, "arm64", "arm64-16k")
# A flavour's file in the package that `Release.configuration` names.
_FILE = "config.{debian}_none_{flavour}.xz"


@dataclass(frozen=True)
class Archive:
    """A Debian archive of the host's configuration: where it is, its suite, its keyring.

    `types` is ``deb``, or ``deb-src`` for its sources.
    """

    uri: str
    suite: str
    keyring: str
    types: str = "deb"

    @property
    def source(self) -> str:
        """The archive as an entry of a deb822 sources file.

        It has no "Trusted" line, so that the signature decides: "Trusted: no"
        would refuse a good signature, too.
        """
        return (
            f"Types: {self.types}\nURIs: {self.uri}\nSuites: {self.suite}\nComponents: main\n"
            f"Signed-By: {self.keyring}\n"
        )


@dataclass(frozen=True)
class Listed:
    """A file of an archive: its name, size in bytes and SHA-256, from the signed lists."""

    file: str
    size: int
    sha256: str


def apt_get(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run apt-get and wait for it; HostError if this host has no apt-get."""
    try:
        return subprocess.run(
            ["apt-get", *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            # "download" says nothing of a package that the current directory holds.
            cwd="/",
        )
    except FileNotFoundError:
        raise HostError(
            "apt-get is missing, so Debian's packages cannot be fetched: "
            "give a kernel tree by --source, and Debian's configuration by "
            "`firsttouch kernel fetch --configuration FILE`."
        ) from None


def listed_files(output: str) -> list[Listed]:
    """Return the files in `output`, which ``apt-get --print-uris`` printed."""
    return [
        Listed(match["file"], int(match["size"]), match["sha256"])
        for match in _URI.finditer(output)
    ]


def host_archives() -> list[Archive]:
    """Return the Debian archives of the host's own configuration; HostError if it has none.

    An archive is Debian's if its URL ends in /debian or /debian-security, or if a
    Release file that is here has Debian as its origin. Others are not contacted.
    """
    of_debian = {(uri, suite) for uri, suite, name in _indexes("$(ORIGIN)") if name == "Debian"}
    archives = {}
    for uri, suite, keyring in _indexes("$(SIGNED_BY)", "--no-release-info"):
        if (uri, suite) in of_debian or any(_DEBIANS.search(mirror) for mirror in _mirrors(uri)):
            name = keyring if keyring.startswith("/") else _KEYRING
            archives[uri, suite] = Archive(uri, suite, name)
    if not archives:
        raise HostError(
            "this host's package sources name no Debian mirror: add one to /etc/apt, run "
            "`apt-get update` as root, or give a kernel tree by --source."
        )
    return list(archives.values())


def _indexes(field: str, *options: str) -> list[tuple[str, str, str]]:
    """Return the URI, the suite and one more field of each archive of the host's configuration."""
    listed = apt_get(
        ["indextargets", *options, "--format", f"$(REPO_URI)|$(RELEASE)|{field}",
         "Created-By: Packages", "Component: main"]
    ).stdout.splitlines()  # fmt: skip
    indexes = []
    for line in listed:
        uri, suite, value = (*line.split("|"), "", "")[:3]
        # apt ends a list's name in a slash, as that of a folder.
        indexes.append((uri.rstrip("/") if uri.startswith(_LIST) else uri, suite, value))
    return indexes


def _mirrors(uri: str) -> list[str]:
    """Return the mirrors that an archive's URI stands for: those of its list, or itself."""
    if not uri.startswith(_LIST):
        return [uri]
    try:
        lines = Path("/", uri.removeprefix(_LIST).lstrip("/")).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def mirror_archive(suite: str) -> Archive:
    """Return `suite` of this host's mirror; HostError if its configuration names no mirror."""
    for archive in host_archives():
        if not archive.suite.endswith("-security"):
            return Archive(archive.uri, suite, archive.keyring)
    raise HostError(
        "this host's package sources name no mirror of Debian's main archive: add one to "
        "/etc/apt, or give a kernel tree by --source."
    )


def private_root(archives: Sequence[Archive], *, architecture: str = "") -> list[str]:
    """Make a private root for apt with fresh lists of `archives` only; return apt's options.

    `architecture`, such as arm64, makes a root for it, with no package installed.
    Raises HostError if a list cannot be fetched, or is not signed.
    """
    names = ("Architecture", "Architectures") if architecture else ()
    more = tuple(f"-oAPT::{name}={architecture}" for name in names)
    text = "\n".join(archive.source for archive in archives)
    root = store_root() / "apt" / digest([text, *more])[:16]
    for folder in ("lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    sources = root / "mirror.sources"
    options = [
        *_SIGNED,
        f"-oDir::Etc::sourcelist={sources}",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State::lists={root / 'lists'}",
        f"-oDir::Cache={root / 'cache'}",
        *more,
    ]
    with locked(root / "lock"):
        write_atomically(sources, text)
        if architecture:
            write_atomically(root / "status", "")
            options.append(f"-oDir::State::status={root / 'status'}")
        done = apt_get([*options, "-oAPT::Update::Error-Mode=any", "update"])
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
        raise HostError(
            f"apt could not fetch the signed lists of {archives[0].uri} {archives[0].suite}: "
            "check the network and this host's package sources.",
            said[-5:],
        )
    return options


@dataclass(frozen=True)
class Package:
    """One version of a package: its file's name, size in bytes and SHA-256."""

    name: str
    file: str
    size: int
    sha256: str

    @property
    def version(self) -> str:
        """The Debian version, from the file's name."""
        return self.file.split("_")[1].replace("%3a", ":")

    @property
    def entry(self) -> Entry:
        """The entry of the store that holds the file."""
        return Entry("packages", {"package": self.sha256}, f"package {self.name} {self.version}")

    def unpack(self, workplace: Path) -> Path:
        """Unpack the file, which the store has, below `workplace`; return the folder."""
        folder = workplace / "package"
        shutil.rmtree(folder, ignore_errors=True)
        output(["dpkg-deb", "-x", self.entry.path / "package.deb", folder])
        return folder


def last_package(name: str) -> Package | None:
    """Return the version of `name` that was fetched last; None if none was."""
    try:
        table = parse_json(_pointer(name).read_text(), _pointer(name))
        return read(table, Package, strict=False, name=_name(table.take("file", str)))
    except (OSError, UserError):
        return None


def _name(file: str) -> str:
    """Return the name of the package that a .deb is of."""
    return file.split("_")[0]


def find_package(
    name: str, suites: Sequence[str], *, architecture: str = ""
) -> tuple[Package, list[str]]:
    """Find the newest version of `name`: in the host's own archives, then in each of `suites`.

    `name` may be a pattern that one package matches. The package is for Debian's
    `architecture`, or for this host. The suites are those of the host's mirror.
    Returns the package and the apt options that find it. Raises HostError if
    no archive has it.
    """
    for archives in (host_archives(), *([mirror_archive(suite)] for suite in suites)):
        options = private_root(archives, architecture=architecture)
        listed = apt_get([*options, "download", "--print-uris", name])
        files = listed_files(listed.stdout)
        if listed.returncode == 0 and files:
            newest = files[0]
            return Package(_name(newest.file), newest.file, newest.size, newest.sha256), options
    # A kernel tree is no remedy for what Debian has for one: a configuration, an image.
    tree = "" if architecture else ", or give a kernel tree by --source"
    raise HostError(
        f"no package source of this host offers {name}, nor does its mirror in "
        f"{', '.join(suites)}: check the network and /etc/apt{tree}."
    )


def fetch_package(
    name: str, suites: Sequence[str], reporter: Reporter, *, architecture: str = ""
) -> Package:
    """Download the newest version of package `name` into the store and return it."""
    package, options = find_package(name, suites, architecture=architecture)

    def download(workplace: Path, product: Path) -> None:
        folder = workplace / "download"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        title = f"Fetching {package.name} {package.version}"
        log = _run_apt([*options, "download", name], folder, title, package.size, reporter)
        files = list(folder.glob("*.deb"))
        if not files or digest_file(files[0]) != package.sha256:
            raise HostError(
                f"fetching {name} failed: check the network, then run the same command again.",
                log,
            )
        files[0].rename(product / "package.deb")

    package.entry.obtain(download, reporter.say)
    note_package(name, package)
    return package


def _run_apt(
    words: Sequence[str], folder: Path, title: str, size: int, reporter: Reporter
) -> list[str]:
    """Run apt-get, which fetches `size` bytes into `folder`; return the end of what it says."""
    with (
        (folder / "apt.log").open("w") as sink,
        reporter.step(title, "MiB", size >> 20) as step,
        child_process(["apt-get", *words], cwd=folder, stdout=sink) as apt,
    ):
        while apt.poll() is None:
            time.sleep(0.2)
            with contextlib.suppress(FileNotFoundError):
                there = sum(path.stat().st_size for path in folder.rglob("*.deb"))
                step.at(min(there, size) >> 20)
        step.at(size >> 20)
    return (folder / "apt.log").read_text().strip().splitlines()[-5:]


def note_package(name: str, package: Package) -> None:
    """Note `package` as the version of `name` that `last_package` returns."""
    write_atomically(_pointer(name), dump_json(asdict(package)))


def unpack_kernel(package: Package, workplace: Path, product: Path, reporter: Reporter) -> None:
    """Unpack the kernel tree, which `package` contains as an archive, into `product`."""
    archive = next(package.unpack(workplace).glob("usr/src/linux-source-*.tar.xz"))
    size = archive.stat().st_size
    with (
        reporter.step(f"Unpacking {package.name} {package.version}", "MiB", size >> 20) as step,
        archive.open("rb") as file,
        subprocess.Popen(
            ["tar", "-xJ", "--strip-components=1", "--no-same-owner", "-C", str(product)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as tar,
    ):
        assert tar.stdin is not None and tar.stderr is not None
        try:
            while chunk := file.read(1 << 20):
                tar.stdin.write(chunk)
                step.at(file.tell() >> 20)
            tar.stdin.close()
        except BrokenPipeError:
            pass
        message = tar.stderr.read().decode(errors="replace").strip().splitlines()
    if tar.returncode:
        raise HostError(
            f"unpacking {package.name} below {product.parent.parent} failed: see tar's message "
            "below.",
            message[-3:],
        )


@dataclass(frozen=True)
class Closure:
    """Packages of one suite and architecture, with all packages that they depend on, in `files`."""

    packages: Packages
    files: tuple[Listed, ...]

    def download(self, folder: Path, reporter: Reporter) -> list[Path]:
        """Download the packages that `folder` lacks; return the paths of all, in order.

        Raises HostError if the mirror cannot be reached, or replaced one of them meanwhile.
        """
        (folder / "partial").mkdir(parents=True, exist_ok=True)
        paths = [folder / listed.file for listed in self.files]
        words = [f"-oDir::Cache::Archives={folder}", "--download-only", *_INSTALL]
        log = _run_apt(
            [*_root_of(self.packages), *words, *self.packages.names], folder,
            f"Fetching {', '.join(self.packages.names)}",
            sum(listed.size for listed in self.files), reporter,
        )  # fmt: skip
        for path, listed in zip(paths, self.files, strict=True):
            if not path.exists() or digest_file(path) != listed.sha256:
                raise HostError(
                    f"fetching {listed.file} of {self.packages.suite} failed: check the network, "
                    "then run the same command again, which takes the version that is there now.",
                    log,
                )
        return paths

    def unpack(self, archives: Path, folder: Path, reporter: Reporter) -> None:
        """Download the packages into `archives`; unpack them in `folder`, without their scripts."""
        for package in self.download(archives, reporter):
            output(["dpkg-deb", "-x", package, folder])


def last_closure(packages: Packages) -> Closure | None:
    """Return what `find_closure` found last for these packages; None if it never did."""
    place = _closure_pointer(packages)
    try:
        table = parse_json(place.read_text(), place)
        return Closure(packages, tuple(read(entry, Listed) for entry in table.tables("files")))
    except (OSError, UserError):
        return None


def find_closure(packages: Packages) -> Closure:
    """Find packages and their dependencies in the archive; HostError if it lacks one."""
    root = _root_of(packages)
    listed = apt_get([*root, "--print-uris", *_INSTALL, *packages.names])
    closure = Closure(packages, tuple(listed_files(listed.stdout)))
    if listed.returncode or not closure.files:
        raise HostError(
            f"{packages.suite} of this host's mirror does not offer {', '.join(packages.names)} "
            f"for {packages.architecture}: check the network and /etc/apt.",
            listed.stderr.strip().splitlines()[-3:],
        )
    files = [asdict(listed) for listed in closure.files]
    write_atomically(_closure_pointer(packages), dump_json({"files": files}))
    return closure


def obtain_from_closure(
    packages: Packages,
    entry: Callable[[Closure], Entry],
    make: Callable[[Closure, Path, Path], None],
    reporter: Reporter,
) -> Path:
    """Return the directory of what `make` makes from packages, as Entry.obtain does.

    A stored entry is used again as it is, without the network. Raises HostError
    if the packages cannot be fetched.
    """
    last = last_closure(packages)
    if last and (stored := entry(last).use()):
        return stored
    closure = find_closure(packages)
    return entry(closure).obtain(partial(make, closure), reporter.say)


def unpack(packages: Packages, reporter: Reporter) -> Path:
    """Return a folder with packages and their dependencies, unpacked.

    The host runs none of their scripts. Raises HostError if they cannot be fetched.
    """

    def entry(closure: Closure) -> Entry:
        recipe = {"unpacked": [listed.sha256 for listed in closure.files]}
        return Entry(
            "packages", recipe, f"{', '.join(packages.names)} for {packages.architecture}, unpacked"
        )

    def make(closure: Closure, workplace: Path, product: Path) -> None:
        closure.unpack(workplace / "archives", product, reporter)

    return obtain_from_closure(packages, entry, make, reporter)


def _root_of(packages: Packages) -> list[str]:
    archive = mirror_archive(packages.suite)
    return private_root([archive], architecture=packages.architecture)


def _closure_pointer(packages: Packages) -> Path:
    other = [] if packages.architecture == ARM64 else [packages.architecture]
    name = digest([packages.suite, *packages.names, *other])[:32]
    return store_root() / "packages" / f"closure-{name}.json"


def _pointer(name: str) -> Path:
    # A pattern's characters stay out of the file's name.
    plain = re.sub(r"[^\w.+-]", "_", name)
    return store_root() / "packages" / f"{plain}.json"


@dataclass(frozen=True)
class DebianKernel:
    """The image that Debian distributes for the cloud, built from source `version`."""

    release: Release
    version: str
    architecture: str = DEFAULT_ARCHITECTURE

    @property
    def _package(self) -> str:
        cloud = load_architecture(self.architecture).cloud
        return self.release.binary.format(version=self.version, cloud=cloud)

    def stored(self) -> Path | None:
        """Return the directory that `obtain` returns, if the store has it."""
        package = last_package(self._package)
        return _image_entry(package).use() if package else None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the directory with ``Image`` and ``System.map``, and ``config`` if it is packed.

        The symbols are those that the image itself holds for its messages.
        Raises HostError if the archive lacks the package.
        """
        package = last_package(self._package)
        if package and (stored := _image_entry(package).use()):
            return stored
        try:
            debian = load_architecture(self.architecture).debian
            package = fetch_package(
                self._package, self.release.suites, reporter, architecture=debian
            )
        except HostError as error:
            raise HostError(
                f"{error} If the archive has a newer one than {self.version}, "
                f"`firsttouch kernel fetch --release {self.release.name}` moves on to it.",
                error.detail,
            ) from None

        def make(workplace: Path, product: Path) -> None:
            folder = package.unpack(workplace)
            images = [image for pattern in _IMAGES for image in folder.glob(pattern)]
            if len(images) != 1:
                raise HostError(
                    f"{package.file} holds {len(images)} kernel images, not 1: correct `binary` "
                    f"in {self.release.hooks / 'source.toml'}."
                )
            shutil.copyfile(images[0], product / "Image")
            symbols = output([sys.executable, "-m", _SYMBOL_FINDER, product / "Image"]).splitlines()
            (product / "System.map").write_text("".join(f"{line}\n" for line in sorted(symbols)))
            for configuration in folder.glob(_CONFIGURATION):
                shutil.copyfile(configuration, product / "config")

        return _image_entry(package).obtain(make, reporter.say)


def _image_entry(package: Package) -> Entry:
    return Entry(
        "images", {"image, symbols and configuration": package.sha256}, f"kernel of {package.file}"
    )


def stored_configuration(
    release: Release, flavour: str = "", architecture: str = DEFAULT_ARCHITECTURE
) -> Path | None:
    """Return what `debian_configuration` returns, if the store has it."""
    wanted = load_architecture(architecture)
    package = last_package(wanted.package(release.configuration))
    directory = _entry(package, flavour or wanted.cloud, wanted).use() if package else None
    return directory / "config" if directory else None


def debian_configuration(
    release: Release,
    version: str,
    reporter: Reporter,
    architecture: str = DEFAULT_ARCHITECTURE,
    *,
    flavour: str = "",
    newest: bool = False,
) -> Path:
    """Return Debian's configuration of `release` for one of FLAVOURS, or that of the cloud.

    It is of the package that was fetched before, unless `newest` asks for what
    the archive has now. If the archive lacks the package, that of the cloud
    comes from the image that Debian distributes of source `version`. Raises
    HostError if the archive has neither.
    """
    wanted = load_architecture(architecture)
    flavour = flavour or wanted.cloud
    if not newest and (stored := stored_configuration(release, flavour, architecture)):
        return stored
    name = wanted.package(release.configuration)
    package = None if newest else last_package(name)
    if package is None or package.entry.use() is None:
        try:
            package = fetch_package(name, release.suites, reporter, architecture=wanted.debian)
        except HostError:
            beside = (
                _beside_image(release, version, reporter, architecture)
                if flavour == wanted.cloud
                else None
            )
            if beside is None:
                raise
            return given_configuration(release, beside, reporter, architecture)
    return _extract(package, flavour, release, wanted, reporter)


def _extract(
    package: Package, flavour: str, release: Release, wanted: Architecture, reporter: Reporter
) -> Path:
    """Return the configuration of a flavour in `package`, which the store has."""
    file = _FILE.format(debian=wanted.debian, flavour=flavour)

    def make(workplace: Path, product: Path) -> None:
        packed = package.unpack(workplace) / "usr/src" / release.configuration / file
        (product / "config").write_bytes(lzma.decompress(packed.read_bytes()))

    return _entry(package, flavour, wanted).obtain(make, reporter.say) / "config"


def given_configuration(
    release: Release, file: Path, reporter: Reporter, architecture: str = DEFAULT_ARCHITECTURE
) -> Path:
    """Take `file` as Debian's configuration of `release`, and return the store's copy of it.

    For a host whose archive cannot be asked. `file` is a kernel's configuration
    for `architecture`, which may be packed by xz, as in the package that
    `Release.configuration` names. Raises UserError if it is not.
    """
    wanted = load_architecture(architecture)
    cloud = _FILE.format(debian=wanted.debian, flavour=wanted.cloud)
    try:
        data = file.read_bytes()
        text = lzma.decompress(data) if file.suffix == ".xz" else data
    except (OSError, lzma.LZMAError) as error:
        raise UserError(f"{file} cannot be read ({error}): give {cloud}, or its text.") from None
    if not re.search(rf"^CONFIG_{wanted.option}=y$".encode(), text, re.M):
        raise UserError(
            f"{file} is no configuration of an {architecture} kernel: give {cloud} of Debian's "
            f"package {release.configuration}, or its text."
        )
    package = Package(release.configuration, file.name, len(data), digest_file(file))

    def make(_: Path, product: Path) -> None:
        (product / "config").write_bytes(text)

    product = _entry(package, wanted.cloud, wanted).obtain(make, reporter.say) / "config"
    note_package(wanted.package(release.configuration), package)
    return product


def _beside_image(
    release: Release, version: str, reporter: Reporter, architecture: str
) -> Path | None:
    """Return the configuration in the package of Debian's image; None if there is none."""
    try:
        file = DebianKernel(release, version, architecture).obtain(reporter) / "config"
    except HostError:
        return None
    return file if file.exists() else None


def _entry(package: Package, flavour: str, wanted: Architecture) -> Entry:
    more = {} if flavour == wanted.cloud else {"flavour": flavour}
    recipe = {"configuration": package.sha256, **more}
    return Entry("packages", recipe, f"configuration {flavour} of {package.file}")

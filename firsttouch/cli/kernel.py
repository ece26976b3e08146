# SPDX-License-Identifier: GPL-2.0
"""`firsttouch kernel`: fetch a source, build an image or a package, write the series."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path

from firsttouch.building.debian import CLOUD, FLAVOURS, Configuration
from firsttouch.building.kernel import KernelImage, obtain_image
from firsttouch.building.overlay import all_series, write_series
from firsttouch.building.source import KernelSource, debian_source, user_source
from firsttouch.catalog.architectures import load_architecture
from firsttouch.catalog.arms import Kernel, load_arm
from firsttouch.catalog.releases import load_release
from firsttouch.cli import add_command
from firsttouch.cli.options import add_architecture, add_source, option, release_of
from firsttouch.errors import HostError, UserError
from firsttouch.lab.plan import DEFAULT_RELEASE
from firsttouch.processes import output
from firsttouch.progress import Reporter


def add_options(kernel: argparse.ArgumentParser) -> None:
    actions = kernel.add_subparsers(required=True, metavar="ACTION")
    fetch = add_command(actions, "fetch", "fetch the newest source of a release")
    fetch.add_argument("--release", default=DEFAULT_RELEASE, metavar="R")
    option(
        fetch, "--configuration FILE",
        "use Debian's configuration from FILE and fetch nothing, for a host without apt",
        kind=Path,
    )  # fmt: skip
    add_architecture(fetch)
    fetch.set_defaults(run=_fetch)
    build = add_command(actions, "build", "build one image and print its path")
    add_source(build)
    option(build, "--stock", "without the features")
    option(build, "--arm A", "the kernel that this arm boots")
    add_architecture(build)
    build.set_defaults(run=_build)
    package = add_command(
        actions, "package", "build a Debian package to install on a machine, and print its path"
    )
    add_source(package)
    option(
        package, "--flavour", "Debian's configuration (default: %(default)s)",
        choices=FLAVOURS, default=CLOUD,
    )  # fmt: skip
    option(package, "--stock", "without the features")
    package.set_defaults(run=_package)
    series = add_command(actions, "series", "write the series, for git am")
    add_source(series)
    option(
        series, "--feature NAME...",
        "only the series of this feature; repeat for more (default: each)",
    )  # fmt: skip
    option(
        series, "--out DIR",
        "each series goes to DIR/FEATURE (default DIR: series); numbered patches there "
        "are replaced",
        default=Path("series"), kind=Path,
    )  # fmt: skip
    option(
        series, "--author NAME <ADDRESS>",
        "sign off the patches, as maintainer of the new files (default: git's user)",
        kind=_identity,
    )  # fmt: skip
    series.set_defaults(run=_series)


def _source(options: argparse.Namespace, reporter: Reporter) -> KernelSource:
    if options.source:
        return user_source(options.source, reporter)
    return debian_source(load_release(release_of(options)), reporter)


def _fetch(options: argparse.Namespace, reporter: Reporter) -> int:
    release = load_release(options.release)
    arch = load_architecture(options.arch).name
    configuration = Configuration(release, arch)
    if options.configuration:
        print(configuration.give(options.configuration, reporter))
        return 0
    source = debian_source(release, reporter, newest=True)
    source.tree()
    configuration.fetch(reporter)
    print(source.version)
    return 0


def _build(options: argparse.Namespace, reporter: Reporter) -> int:
    kernel = (
        load_arm(options.arm).kernel
        if options.arm
        else Kernel("stock" if options.stock else "changed")
    )
    kernel = replace(kernel, architecture=load_architecture(options.arch).name)
    print(obtain_image(kernel, _source(options, reporter), reporter))
    return 0


def _package(options: argparse.Namespace, reporter: Reporter) -> int:
    source = _source(options, reporter)
    package = KernelImage(source, changed=not options.stock, flavour=options.flavour)
    print(next(package.obtain(reporter).glob("*.deb")))
    return 0


def _series(options: argparse.Namespace, reporter: Reporter) -> int:
    series = all_series()
    for name in options.feature:
        if name not in series:
            raise UserError(f"--feature {name}: no such series; use one of {', '.join(series)}.")
    author = options.author or _git_user()
    source = _source(options, reporter)
    for name in options.feature or series:
        for file in write_series(source, series[name], options.out / name, author):
            print(file)
    return 0


def _identity(text: str) -> str:
    if not re.fullmatch(r"[^<>\n]*[^<>\s] <[^<>\s]+@[^<>\s]+>", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no author: write 'Name <address>'")
    return text


def _git_user() -> str:
    """Return git's user, who was named: git would otherwise make up an address of the host."""
    try:
        return output(["git", "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"]).rsplit(
            " ", 2
        )[0]
    except HostError:
        raise UserError(
            "a series needs an author, and git has no user here: add --author 'Name <address>'."
        ) from None

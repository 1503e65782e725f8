"""Crawl a site without any configuration, and say how to search it."""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from searchcrawl import urls
from searchcrawl.cli.command import Command as BaseCommand
from searchcrawl.cli.command import UsageError
from searchcrawl.cli.output import print_line, print_object
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.exit_codes import Exit
from searchcrawl.sources.loading import PROJECT_VARIABLE
from searchcrawl.urls import Url

_SOURCE: Final = "site"
_PAGES: Final = 100
#: The delay between requests to a site of others; none on networks of the user.
_DELAY_SECONDS: Final = 1.0
_SETTINGS_VARIABLE: Final = "SCRAPY_SETTINGS_MODULE"

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Command(BaseCommand):
    arguments = (1, 1)
    shown_arguments = "URL"
    example = "searchcrawl quick https://example.org/ --pages 20"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--pages", type=int, default=_PAGES, metavar="N", help=f"at most so many pages (default {_PAGES})"
        )
        parser.add_argument(
            "--allow-private",
            action="append",
            default=[],
            metavar="CIDR",
            help="a network of yours that may be reached, as 127.0.0.1/32 (may be repeated)",
        )

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check_use(args, opts)
        if opts.pages < 1:
            raise UsageError(f"--pages: must be at least 1 (got {opts.pages})")
        try:
            opts.networks = [ipaddress.ip_network(text) for text in opts.allow_private]
        except ValueError as error:
            raise UsageError(f'--allow-private: not a network in CIDR form, as "10.0.0.0/8" ({error})') from None
        try:
            opts.url = urls.parse(urls.resolve_typed(args[0]))
        except InvalidUrl as error:
            raise UsageError(str(error)) from None

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        root = Path(tempfile.mkdtemp(prefix="searchcrawl-quick-"))
        _write_project(root, opts.url, opts.networks)
        command = [sys.executable, "-m", "searchcrawl", "crawl", _SOURCE, "-a", f"pages={opts.pages}"]
        if opts.json:
            exit_code, output = _run([*command, "--json"], root, captured=True)
            status: Mapping[str, Any] = orjson.loads(output) if output else {"source": _SOURCE}
            print_object({"project": str(root), **status})
            return exit_code
        exit_code, _ = _run(command, root, captured=False)
        where = shlex.quote(str(root))
        print_line(f"The project is kept in {root}. Search it with:")
        print_line(f"  cd {where} && searchcrawl search WORDS")
        print_line("or, from anywhere:")
        print_line(f"  {PROJECT_VARIABLE}={where} searchcrawl search WORDS")
        if exit_code not in {Exit.DONE, Exit.ENDED_EARLY}:
            print_line("What became of each URL:")
            print_line(f"  {PROJECT_VARIABLE}={where} searchcrawl urls {_SOURCE}")
        return exit_code


def _write_project(root: Path, url: Url, networks: Sequence[_Network]) -> None:
    """Writes a project with the local index and one source, in the form that ``init`` writes."""
    hosts = [f"={host}" for host in _hosts_of_site(url.host)]
    delay_seconds = 0 if _is_own(url, networks) else _DELAY_SECONDS
    files = {
        "scrapy.cfg": "[settings]\ndefault = searchcrawl.settings\n",
        # The only known contact is the site itself.
        "searchcrawl.toml": f'contact = {_toml(url.origin + "/")}\n\n[index]\ntype = "local"\n',
        f"sources/{_SOURCE}.toml": (
            f'type = "web"\ntitle = {_toml(url.host)}\n\n'
            f"[start]\nurls = [{_toml(url.href)}]\n\n"
            f"[scope]\ninclude_hosts = [{', '.join(map(_toml, hosts))}]\n\n"
            f"[fetch]\ndelay_seconds = {delay_seconds}\n"
            f"private_networks = [{', '.join(_toml(str(network)) for network in networks)}]\n"
        ),
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def _hosts_of_site(host: str) -> list[str]:
    """The host, and its name with or without www: many sites redirect to the other one."""
    if host.startswith("["):
        return [host]
    if re.fullmatch(r"[0-9.]+", host) or "." not in host:
        return [host]
    return [host, host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"]


def _is_own(url: Url, networks: Sequence[_Network]) -> bool:
    """Whether all addresses of the host are private ones on networks that the user named."""
    try:
        found = socket.getaddrinfo(url.host.strip("[]"), url.port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    return bool(addresses) and all(
        address.is_private and any(address in network for network in networks) for address in addresses
    )


def _toml(text: str) -> str:
    """A text as a basic string of TOML, which JSON strings are, too."""
    return json.dumps(text)


def _run(command: Sequence[str], root: Path, *, captured: bool) -> tuple[int, bytes]:
    """Runs the crawl in the project to its end; returns its exit code and, if ``captured``, its output."""
    package = str(Path(urls.__file__).resolve().parents[1])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {name: value for name, value in os.environ.items() if name != _SETTINGS_VARIABLE}
    environment |= {PROJECT_VARIABLE: str(root), "PYTHONPATH": os.pathsep.join(paths)}
    output_to = subprocess.PIPE if captured else None
    process = subprocess.Popen(command, cwd=root, env=environment, stdout=output_to)  # noqa: S603 (our own command)
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        while True:
            try:
                output, _ = process.communicate()
                break
            except KeyboardInterrupt:
                # The crawl got the same signal and ends by itself.
                continue
    finally:
        signal.signal(signal.SIGTERM, before)
    return process.returncode, output or b""

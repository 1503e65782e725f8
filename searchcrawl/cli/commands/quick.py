"""Crawl a site without any configuration, and say how to search it."""

from __future__ import annotations

import argparse
import ipaddress
import json
import re
import shlex
import shutil
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
from searchcrawl.api.child_process import build_environment
from searchcrawl.cli.command import BaseCommand, Option, UsageError, require_free, whole_number
from searchcrawl.cli.commands.init import write_files
from searchcrawl.cli.leaving import handling
from searchcrawl.cli.output import print_line, print_note, print_object
from searchcrawl.exceptions import Exit, InvalidUrl
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.queries.source_findings import find_private
from searchcrawl.sources.loading import PROJECT_VARIABLE
from searchcrawl.store.states import EndReason
from searchcrawl.urls import ParsedUrl

_SOURCE: Final = "site"
_PAGES: Final = 100
#: A text as a basic string of TOML, which JSON strings are, too.
_toml: Final = json.dumps
#: The delay between requests to a site of others; none on networks of the user.
_DELAY_SECONDS: Final = 1.0

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Command(BaseCommand):
    requires_project = False
    shown_arguments = "URL"
    example = "searchcrawl quick https://example.org/ --pages 20"
    options = (
        Option("--pages N", f"at most so many pages (default {_PAGES})", kind=whole_number, default=_PAGES),
        Option(
            "--allow-private CIDR",
            "a network of yours that may be reached, as 127.0.0.1/32 (may be repeated)",
            repeatable=True,
        ),
        Option(
            "--keep DIR",
            "make the project in DIR, and keep it whatever happens; else it is in a new folder, and goes if nothing is found",
        ),
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
        if opts.keep is not None:
            require_free(Path(opts.keep), option="--keep: ")

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        root = Path(tempfile.mkdtemp(prefix="searchcrawl-quick-")) if opts.keep is None else Path(opts.keep).resolve()
        kept = opts.keep is not None
        try:
            _write_project(root, opts.url, opts.networks)
            command = [sys.executable, "-m", "searchcrawl", "crawl", _SOURCE, "-a", f"pages={opts.pages}", "--json"]
            exit_code, output = _run(command, root)
            status: dict[str, Any] = orjson.loads(output) if output else {}
            if exit_code == Exit.ENDED_EARLY and status.get("run", {}).get("end_reason") == EndReason.LIMIT:
                # So many pages were asked for.
                exit_code = Exit.DONE
            found = exit_code in {Exit.DONE, Exit.ENDED_EARLY} and bool(status.get("documents"))
            kept = kept or found
        finally:
            if not kept:
                shutil.rmtree(root)
        if opts.json:
            print_object({"project": str(root) if kept else None, **(status or {"source": _SOURCE})})
        else:
            _show(status, root if kept else None, found=found)
            _name_option(opts.url, opts.networks)
        return exit_code


def _show(status: Mapping[str, Any], root: Path | None, *, found: bool) -> None:
    """Prints how it went, and how to search what was found; ``root`` is the project, None where it is not kept."""
    if status:
        # It loads the store, which the crawl had in a process of its own.
        from searchcrawl.cli.commands.status import show_summary  # noqa: PLC0415

        # A warning names a command of the project.
        show_summary(status, warnings=root is not None)
    if root is None:
        print_line(
            "Nothing was found, and nothing is kept: --keep DIR keeps the project. What became of each URL, in DIR:"
        )
        print_line(f"  searchcrawl urls {_SOURCE}")
        return
    where = shlex.quote(str(root))
    if found:
        print_line(f"The project is kept in {root}. Search it with:")
        print_line(f"  cd {where} && searchcrawl search WORDS")
        print_line("or, from anywhere:")
        print_line(f"  {PROJECT_VARIABLE}={where} searchcrawl search WORDS")
    else:
        print_line(f"The project is kept in {root}. What became of each URL:")
        print_line(f"  {PROJECT_VARIABLE}={where} searchcrawl urls {_SOURCE}")


def _name_option(url: ParsedUrl, networks: Sequence[_Network]) -> None:
    """Says how a private address may be reached: there is no file of a source that the user could edit."""
    guard = AddressGuard(private_networks=networks, resolve={}, reason="--allow-private CIDR allows a network of yours")
    reason = find_private(url.origin, guard)
    if reason is not None:
        print_note(f"searchcrawl quick: {reason}")


def _write_project(root: Path, url: ParsedUrl, networks: Sequence[_Network]) -> None:
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
    write_files(root, files)


def _hosts_of_site(host: str) -> list[str]:
    """The host, and its name with or without www: many sites redirect to the other one."""
    if host.startswith("["):
        return [host]
    if re.fullmatch(r"[0-9.]+", host) or "." not in host:
        return [host]
    return [host, host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"]


def _is_own(url: ParsedUrl, networks: Sequence[_Network]) -> bool:
    """Whether all addresses of the host are private ones on networks that the user named."""
    try:
        found = socket.getaddrinfo(url.host.strip("[]"), url.port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    return bool(addresses) and all(
        address.is_private and any(address in network for network in networks) for address in addresses
    )


def _run(command: Sequence[str], root: Path) -> tuple[int, bytes]:
    """Runs the crawl in the project to its end; returns its exit code and its output."""
    environment = build_environment(root)
    process = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE)  # noqa: S603 (our own command)
    # The crawl gets a Ctrl-C of the terminal itself.
    with handling({signal.SIGTERM: lambda *_: process.terminate(), signal.SIGINT: lambda *_: None}):
        output, _ = process.communicate()
    return process.returncode, output

"""Keys of ``[fetch]`` that name windows, a time zone, a proxy and files for TLS: bad values are refused by key (C2, C10)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from searchcrawl.politeness.host_registry import build_delay_schedule
from searchcrawl.sources.effective import list_effective_values
from searchcrawl.sources.loading import load_project, load_source
from searchcrawl.sources.secrets import redact
from tests.certificates import write_certificate
from tests.source_files import GOOD, find_error_of_project, loaded, write_project, write_source
from tests.unit.sources.test_loading import lines_of


def lines_of_fetch(root: Path, addition: str) -> list[str]:
    return lines_of(root, GOOD + addition + "\n")


@pytest.mark.parametrize(
    ("addition", "line"),
    [
        ('[fetch]\nca_file = "sources/demo.toml"', "fetch.ca_file: has no certificates in PEM form"),
        ('[fetch]\nclient_certificate = "x.pem"', 'fetch.client_certificate: no such file (got "x.pem")'),
        ('[fetch]\nclient_certificate = "sources/demo.toml"', "fetch.client_certificate: has no certificate in PEM form"),
        ('[fetch]\nclient_key = "sources/demo.toml"', "fetch.client_key: is of no use without client_certificate"),
        ('[fetch]\nheaders_to = ["api.test"]', "fetch.headers_to: not an http or https origin"),
        ('[fetch]\nheaders_to = ["https://api.test/path"]', "fetch.headers_to: must be an origin, as "),
        ('[fetch]\nheaders_to = ["https://me@api.test"]', "fetch.headers_to: must be an origin, as "),
        ('[fetch]\nheaders_to = "https://api.test"', "fetch.headers_to: must be a list"),
        ('[fetch]\nproxy = "http://p/"', "fetch.proxy: must be http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (got "),
        ('[fetch]\nproxy = "https://p:3128"', "fetch.proxy: must be http://HOST:PORT or "),
        ('[fetch]\nproxy = "http://p:99999"', "fetch.proxy: must be http://HOST:PORT or "),
        ('[fetch]\nproxy = "http://p:3128/path"', "fetch.proxy: must be http://HOST:PORT or "),
        ('[fetch]\nproxy = "http://:s3cret@p:3128"', "fetch.proxy: must be http://HOST:PORT or "),
        ("[fetch]\nsites = -1", "fetch.sites: must not be negative (got -1)"),
        ("[fetch]\naddress_concurrency = -1", "fetch.address_concurrency: must not be negative (got -1)"),
        ('[fetch]\naddress_concurrency = "2"', "fetch.address_concurrency: must be a whole number (got "),
        ("[fetch]\naddress_concurrency = 1.5", "fetch.address_concurrency: must be a whole number (got 1.5)"),
        ('[fetch]\ntimezone = "Europe/Atlantis"', 'fetch.timezone: not a time zone of IANA, as "Europe/Berlin" (got '),
        ('[fetch]\ntimezone = "../UTC"', 'fetch.timezone: not a time zone of IANA, as "Europe/Berlin" (got '),
        ('[fetch]\nwindows = [{from = "08:00", to = "18:00"}]', "fetch.windows[0].delay_seconds: is required"),
        ("[fetch]\ndns_per_second = 0.001", "fetch.dns_per_second: must be 0, or at least 0.1 (got 0.001)"),
        ("[fetch]\ndns_per_second = -1", "fetch.dns_per_second: must "),
        ('[fetch]\nwindows = [{to = "18:00", delay_seconds = 1}]', "fetch.windows[0].from: is required"),
        ('[fetch]\nwindows = [{from = "8:00", to = "18:00", delay_seconds = 1}]', "fetch.windows[0].from: not a time of day"),
        ('[fetch]\nwindows = [{from = "08:00", to = "24:00", delay_seconds = 1}]', "fetch.windows[0].to: not a time of day"),
        ('[fetch]\nwindows = [{days = "mo", from = "08:00", to = "18:00", delay_seconds = 1}]', "fetch.windows[0].days: "),
        ('[fetch]\nwindows = [{from = "08:00", to = "18:00", delay_seconds = -1}]', "fetch.windows[0].delay_seconds: must "),
        ('[fetch]\nwindows = [{from = "08:00", to = "18:00", delay_seconds = 1, day = "mon"}]', "fetch.windows[0].day: unknown"),
        ('[fetch.windows]\nfrom = "08:00"', "fetch.windows: must be a list: write [[fetch.windows]] (got "),
        ("[fetch]\nheaders_to = {a = 1}", "fetch.headers_to: must be a list (got "),
        ("[fetch]\ndelay = 1", "fetch.delay: unknown key (did you mean delay_seconds?)"),
    ],
)  # fmt: skip
def test_load_source_when_a_value_of_fetch_is_wrong_then_one_line_says_so(root: Path, addition: str, line: str) -> None:
    lines = lines_of_fetch(root, addition)

    assert len(lines) == 1
    assert lines[0].startswith(f"sources/demo.toml: {line}")
    assert "s3cret" not in lines[0]


def test_load_source_when_the_proxy_has_a_password_then_nothing_shows_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXY_URL", "http://me:c4n4ry-of-the-proxy@proxy.test:3128")
    write_source(root, GOOD + '[fetch]\nproxy = {env = "PROXY_URL"}')
    project = load_project(root)

    source = load_source(project, "demo")
    shown = list_effective_values(project, source)["fetch.proxy"]["value"]
    write_source(root, GOOD + '[fetch]\nproxy = "http://me:c4n4ry-in-the-file@proxy.test:3128"')
    written = load_source(project, "demo")

    assert str(source.fetch.proxy).endswith("@proxy.test:3128")
    assert shown == {"env": "PROXY_URL"}
    assert list_effective_values(project, written)["fetch.proxy"]["value"] == "http://me:***@proxy.test:3128"
    assert redact("c4n4ry-of-the-proxy and c4n4ry-in-the-file") == "*** and ***"


def test_load_source_when_a_key_belongs_to_another_certificate_then_refused_by_its_name(root: Path) -> None:
    write_certificate(root, host="one.test")
    write_certificate(root, host="two.test")
    plain = '[fetch]\nclient_certificate = "one.test-0.pem"'

    lines = lines_of_fetch(root, f'{plain}\nclient_key = "two.test-0.pem"')
    garbage = lines_of_fetch(root, f'{plain}\nclient_key = "searchcrawl.toml"')

    assert lines == ['sources/demo.toml: fetch.client_key: is not the key of client_certificate (got "two.test-0.pem")']
    assert garbage == [
        'sources/demo.toml: fetch.client_key: has no unencrypted key in PEM form (got "searchcrawl.toml")'
    ]
    assert lines_of_fetch(root, plain) == []


def test_load_source_when_a_key_has_a_password_then_refused_without_asking_for_it(root: Path) -> None:
    certificate = write_certificate(root, host="one.test").read_bytes()
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    (root / "own.pem").write_bytes(certificate.partition(b"-----BEGIN PRIVATE")[0])
    (root / "own.key").write_bytes(key)

    without = lines_of_fetch(root, '[fetch]\nclient_certificate = "own.pem"')
    encrypted = lines_of_fetch(root, '[fetch]\nclient_certificate = "own.pem"\nclient_key = "own.key"')

    assert without == [
        'sources/demo.toml: fetch.client_certificate: has no usable key: name its file in client_key (got "own.pem")'
    ]
    assert encrypted == ['sources/demo.toml: fetch.client_key: has no unencrypted key in PEM form (got "own.key")']


def test_pace_when_windows_are_named_then_the_source_has_a_plan_and_else_none(root: Path) -> None:
    windows = 'windows = [{days = "mon-fri", from = "08:00", to = "18:00", delay_seconds = 5}]'
    write_source(root, GOOD + f'[fetch]\n{windows}\ntimezone = "Europe/Berlin"')
    fetch = loaded(root).fetch

    plan = build_delay_schedule(fetch.windows, fetch.timezone, otherwise_seconds=fetch.delay_seconds)

    assert plan is not None
    assert plan.delay_seconds(datetime(2025, 6, 2, 15, 59, tzinfo=UTC)) == 5.0
    assert plan.delay_seconds(datetime(2025, 6, 2, 16, 0, tzinfo=UTC)) == 1.0
    assert build_delay_schedule((), None, otherwise_seconds=1.0) is None


def test_load_project_when_a_default_of_fetch_is_wrong_then_its_table_is_named(root: Path) -> None:
    write_project(root, 'contact = "crawler@example.org"\n[defaults.fetch]\nproxy = "p"\n')

    said = "searchcrawl.toml: defaults.fetch.proxy: must be http://HOST:PORT"
    assert str(find_error_of_project(root)).startswith(said)

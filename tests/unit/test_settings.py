"""The settings that every project starts from."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings


@pytest.fixture
def settings() -> Settings:
    loaded = Settings()
    loaded.setmodule("searchcrawl.settings", priority="project")
    return loaded


def test_settings_when_loaded_then_nothing_listens_or_runs_what_it_is_sent(settings: Settings) -> None:
    assert not settings.getbool("TELNETCONSOLE_ENABLED")
    assert not settings.getbool("REMOTE_CONTROL_ENABLED")


def test_settings_when_loaded_then_only_the_web_can_be_asked(settings: Settings) -> None:
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")

    assert {scheme for scheme, handler in handlers.items() if handler is not None} <= {"http", "https"}


def test_settings_when_loaded_then_certificates_count_and_answers_are_bounded(settings: Settings) -> None:
    assert settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES")
    assert settings.getint("DOWNLOAD_MAXSIZE") == 32 * 1024 * 1024
    assert settings.getfloat("DOWNLOAD_TIMEOUT") == 30
    assert settings.getint("MEMUSAGE_LIMIT_MB") > 0


@pytest.mark.parametrize(
    "name",
    [
        "RETRY_ENABLED", "REDIRECT_ENABLED", "METAREFRESH_ENABLED", "ROBOTSTXT_OBEY", "COOKIES_ENABLED",
        "HTTPPROXY_ENABLED", "AUTOTHROTTLE_ENABLED", "HTTPCACHE_ENABLED",
    ],
)  # fmt: skip
def test_settings_when_loaded_then_what_we_do_ourselves_is_off(settings: Settings, name: str) -> None:
    assert not settings.getbool(name)


def test_settings_when_loaded_then_delays_are_left_to_the_host_table(settings: Settings) -> None:
    assert settings.getfloat("DOWNLOAD_DELAY") == 0
    assert settings.getfloat("DOWNLOAD_DELAY_JITTER") == 0
    assert settings.getint("CONCURRENT_ITEMS") == 1

"""The order of the components, which is written in one place."""

from __future__ import annotations

import pytest

from searchcrawl.addon import COMPONENTS


@pytest.mark.parametrize("name", COMPONENTS)
def test_components_when_listed_then_in_the_order_in_which_they_run(name: str) -> None:
    numbers = [number for _, number in COMPONENTS[name]]

    assert numbers == sorted(set(numbers))


def test_item_pipelines_when_listed_then_read_decide_and_digest_before_the_writer() -> None:
    assert [component.__name__ for component, _ in COMPONENTS["ITEM_PIPELINES"]] == [
        "FetchedFilterPipeline",
        "BodyDigestPipeline",
        "ConvertPipeline",
        "PlaceholderPagePipeline",
        "FieldsPipeline",
        "PageFilterPipeline",
        "FieldsDigestPipeline",
        "CachePipeline",
    ]

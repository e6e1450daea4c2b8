"""The Ajax side, inside the Ajax environment."""

import pytest

from tests.inside import report_inside


@pytest.mark.sides
def test_checks_inside_the_ajax_environment(subtests: pytest.Subtests) -> None:
    report_inside("ajax", "ajax_side", subtests)

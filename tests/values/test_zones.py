"""Zones by name."""

import pytest

from tailgate.lake.errors import InvalidParameterValue
from tailgate.values.times import zones


@pytest.mark.parametrize("name", ["x18:30", "x-18:00:01", "x24", "x24:59:59"])
def test_offsets_beyond_18_hours_are_refused(name: str) -> None:
    with pytest.raises(InvalidParameterValue, match=f'time zone "{name}" not recognized'):
        zones.zone(name)
    assert zones.zone("x18:00").utcoffset(None) == -zones.OFFSET_MAX

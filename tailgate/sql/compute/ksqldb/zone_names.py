"""Names of time zones in texts: the short names and the full ones of some zones.

Source: Unicode CLDR, time zone names in English, as Java has them.
"""

from __future__ import annotations

AMERICA = {"E": "New_York", "C": "Chicago", "M": "Denver", "P": "Los_Angeles"}  # the first letters of names such as EST and EDT
# zones of the names that z reads, other than those of ids
ZONES = {
    **{f"{letter}{kind}T": f"America/{city}" for letter, city in AMERICA.items() for kind in "SD"},
    "CET": "Europe/Paris",
    "CEST": "Europe/Paris",
    "BST": "Europe/London",
    "JST": "Asia/Tokyo",
    "IST": "Asia/Kolkata",
}
# the full names of those names, without Time at their end
FULL_NAMES = {
    **{f"{name[0]}ST": f"{name} Standard" for name in ("Eastern", "Central", "Mountain", "Pacific")},
    **{f"{name[0]}DT": f"{name} Daylight" for name in ("Eastern", "Central", "Mountain", "Pacific")},
    "CET": "Central European Standard",
    "CEST": "Central European Summer",
    "BST": "British Summer",
    "GMT": "Greenwich Mean",
    "JST": "Japan Standard",
    "IST": "India Standard",
    "UTC": "Coordinated Universal",
}
OF_FULL_NAMES = {f"{full} Time": name for name, full in FULL_NAMES.items()}
FULL_ZONE = "|".join((*OF_FULL_NAMES, "UTC", "GMT", "[+-][0-9]{2}:[0-9]{2}", "[A-Za-z_]+/[A-Za-z0-9_/+-]+"))

"""Range and multirange types: their names, their oids and those of their array types.

Source: PostgreSQL 15, catalogs pg_type and pg_range.
"""

from __future__ import annotations

RANGES: dict[str, tuple[int, int]] = {
    "int4range": (3904, 3905),
    "int8range": (3926, 3927),
    "numrange": (3906, 3907),
    "daterange": (3912, 3913),
    "tsrange": (3908, 3909),
    "tstzrange": (3910, 3911),
}
MULTIRANGES: dict[str, tuple[int, int]] = {  # in the order of their range types
    "int4multirange": (4451, 6150),
    "int8multirange": (4536, 6157),
    "nummultirange": (4532, 6151),
    "datemultirange": (4535, 6155),
    "tsmultirange": (4533, 6152),
    "tstzmultirange": (4534, 6153),
}
ALL_RANGES = RANGES | MULTIRANGES
MULTIRANGE_OF = dict(zip(RANGES, MULTIRANGES, strict=True))
RANGE_OF = dict(zip(MULTIRANGES, RANGES, strict=True))

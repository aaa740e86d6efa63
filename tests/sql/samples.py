"""Values at the edges of every type, as PostgreSQL reads them; None is NULL."""

from __future__ import annotations

SAMPLES: dict[str, list[str | None]] = {
    "bool": [None, "true", "false"],
    "int2": [None, "0", "1", "-1", "2", "7", "-7", "32767", "-32768"],
    "int4": [None, "0", "1", "-1", "2", "-3", "7", "-7", "100", "2147483647", "-2147483648"],
    "int8": [None, "0", "1", "-1", "2", "7", "-7", "10000000000", "9223372036854775807", "-9223372036854775808"],
    "float4": [None, "0", "-0", "1", "-1", "0.5", "2.5", "-2.5", "1.5e10", "3.4e38", "1e-45", "NaN", "Infinity", "-Infinity"],
    "float8": [None, "0", "-0", "1", "-1", "0.5", "1.5", "2.5", "-2.5", "0.1", "1e308", "-1e308", "5e-324", "NaN", "Infinity", "-Infinity"],
    "numeric": [None, "0", "1", "-1", "0.5", "2.5", "-2.5", "3.14", "-7", "10", "123456789.12", "-0.01", "9999999999.99"],
    "text": [None, "", "a", "abc", "ABC", "a,b,,c", "  x y ", "äöü", "日本語", "a%b_c", "%b%", "_b_", "12", "-7", "o'k",
        "\\", "true", "😀x"],
    "varchar": [None, "", "abc", " x "],
    "bpchar": [None, "", "abc", "ab  "],
    "bytea": [None, "", "abc", "\\x00ff", "\\xc3a4", "\\xff", '{"a": 1}'],
    "date": [None, "2020-01-01", "2020-02-29", "1969-12-31", "2021-12-31", "1900-03-01", "2000-01-03", "0001-01-01", "9999-12-31"],
    "time": [None, "00:00", "12:34:56.789", "23:59:59.999999"],
    "timestamp": [
        None, "2020-01-01", "2020-02-29 12:34:56.789", "1969-12-31 23:59:59.999999", "2021-12-31 23:59:59", "2000-01-03 00:00:00.000001",
        "1900-03-01 01:02:03",
    ],
    "timestamptz": [
        None, "2020-01-01Z", "2020-02-29 12:34:56.789+02", "1969-12-31 23:59:59.999999Z", "2021-12-31 23:59:59-08", "2000-01-03 00:00:00Z",
    ],
    "interval": [None, "0", "1 day", "24 hours", "1 mon", "30 days", "-1 day", "1 year 2 mons 3 days 04:05:06.7", "-00:00:01"],
    "uuid": [None, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"],
    "jsonb": [
        None, "null", "true", "1", "1.50", "-0", "1e3", '"a"', '"12"', "[]", "{}", '{"a": 1, "b": {"c": [1, 2, null]}, "": 3}',
        '[1, "a", null, {"a": 2}]', '["a", "b"]', '{"a": null}', "99999999999", "2147483648", '"\\u00e4\\n"', "[[1], 2]", "0.5", "-2.5",
    ],
    "text[]": [None, "{}", "{a}", "{a,b}", "{b,c,1}", "{0}", "{-1}", "{3,a}", "{b,NULL}"],
    "int4[]": [None, "{}", "{1}", "{1,2,3}", "{3,NULL,1}", "{NULL}", "{2,2,2}", "{0,-7,2147483647}"],
    "oid": [None, "0", "1", "4294967295"],
    "name": [None, "a", "abc"],
}  # fmt: skip

PATTERNS: list[str | None] = [
    None, "", "a", "b", "^a", "c$", "[a-c]", "[^a-z]", "(a)(b)?", "a.c", "x*", "a+", "\\d+", "\\s", "\\mx", "[[:alpha:]]+", "(", "[",
    "a{2}", "b|c", "(?i)AB", "\\.", ",", "é", "(\\w)\\1",
]  # fmt: skip
FLAGS: list[str | None] = [None, "", "i", "g", "n", "gi", "z"]
COUNTS: list[str | None] = [None, "1", "2", "3", "0", "-1"]
FORMATS: list[str | None] = [
    None, "", "YYYY-MM-DD HH24:MI:SS.US", "FMDay, FMDD FMMonth YYYY", "Dy Mon DDth HH12:MI AM", "IYYY-IW-ID", "Q WW W DDD J CC",
        "SSSS MS FF3",
    '"text" YY Y,YYY', "RM rm day DAY", "D ID IDDD", "FMHH24 FMMI", "a.m. AD", "DDth ddTH",
]  # fmt: skip
NUMBER_FORMATS: list[str | None] = [
    None, "", "999", "000", "9,999.99", "FM9,999.99", "S999.9", "999.9S", "999MI", "FM999.99PR", "999.99PR", "0.99", "FM0.00", "L999",
        "RN", "FMrn",
    "9.99EEEE", "99V99", "999th", "SG99", "PL99", "B999", "FM99.9", "0999.0", '"x"9"y"', "999999999999999.99",
]  # fmt: skip
UNITS: list[str | None] = [None, "hour", "DAY", "week", "month", "quarter", "decade", "century", "millennium", "milliseconds", "dow", "x"]
ZONES: list[str | None] = [None, "UTC", "Europe/Prague", "america/new_york", "EST", "+02", "-05:30", "Nowhere/City"]
# for arguments that are of a certain form, or would make results too large with the samples of their type
SMALL: dict[str, dict[int, list[str | None]]] = {
    "repeat": {1: [None, "-1", "0", "1", "3"]},
    "lpad": {1: [None, "-1", "0", "2", "9"]},
    "rpad": {1: [None, "-1", "0", "2", "9"]},
    **{sign: {1: ["%", "", "a%", "%b%", "A%", "_b_", "%\\\\%", "a\\b%b%", "__", None]} for sign in ("~~", "~~*", "!~~", "!~~*")},
    **{sign: {1: PATTERNS} for sign in ("~", "~*", "!~", "!~*")},
    **{f"{name}/2": {1: PATTERNS} for name in ("regexp_like", "regexp_match", "regexp_split_to_array", "regexp_count", "regexp_substr")},
    **{f"{name}/3": {1: PATTERNS, 2: FLAGS} for name in ("regexp_like", "regexp_match", "regexp_split_to_array")},
    **{f"{name}/{n}": {1: PATTERNS, 2: COUNTS, 3: COUNTS if name != "regexp_count" else FLAGS,
        4: FLAGS if name == "regexp_substr" else COUNTS,
        5: COUNTS if name == "regexp_substr" else FLAGS, 6: COUNTS}
       for name in ("regexp_count", "regexp_substr", "regexp_instr") for n in (2, 3, 4, 5, 6, 7)},
    "regexp_replace/3": {1: PATTERNS, 2: [None, "", "x", "<\\1>", "\\&\\&", "$1"]},
    "regexp_replace/4": {1: PATTERNS, 2: [None, "", "x", "<\\1>", "\\&\\&"], 3: [*FLAGS, "1"]},
    "regexp_replace/5": {1: PATTERNS, 2: ["x"], 3: COUNTS, 4: COUNTS},
    "regexp_replace/6": {1: PATTERNS, 2: ["x"], 3: COUNTS, 4: COUNTS, 5: ["", "i", "n"]},
    "substring/2": {1: [*PATTERNS, *COUNTS]},
    "substring/3": {1: ["%", "a#\"%#\"c", "%b#\"_%#\"", "abc", None], 2: ["#", None]},
    # how other letters change case is the server's locale's business
    "lower": {0: [None, "", "ABC", "aB1"]},
    "upper": {0: [None, "", "abc", "Ab1"]},
    "initcap": {0: [None, "", "abc def", "Ab1 x-y_z O'NEIL"]},
    "convert_from": {1: ["utf8", "UTF-8", "UTF8"]},
    "convert_to": {1: ["utf8", "UTF-8", "latin1", "x"]},
    "length/2": {1: ["utf8"]},
    "encode": {1: [None, "hex", "base64", "escape", "HEX", "x"]},
    "decode": {0: [None, "", "0aFF", "abc", "zz", "YWJj", "YWJ=", "YQ==", "a\\\\b", "\\001", "\\9", "Y Q = ="], 1: [None, "hex",
        "base64", "escape"]},
    "chr": {0: [None, "65", "0", "-1", "228", "128512", "1114112", "55296"]},
    "get_byte": {1: ["0", "1", "-1", "7"]},
    "set_byte": {1: ["0", "1", "-1"], 2: ["0", "255", "256", "-1"]},
    "get_bit": {1: ["0", "1", "15", "-1", "64"]},
    "set_bit": {1: ["0", "9", "-1"], 2: ["0", "1", "2"]},
    "overlay": {2: COUNTS, 3: COUNTS},
    "format": {0: [None, "", "x%%", "%s|%s", "%I %L", "%2$s %1$s", "%5s|%-5s", "%", "%d"]},
    "normalize": {},
    "unistr": {0: [None, "", "a\\0061", "\\+000061", "\\u00e9\\U0001F600", "\\\\", "\\x", "\\d83d\\de00"]},
    "similar_to_escape": {0: [None, "", "a%b_", "(a|b)*", "[a%]", "a.b", "x#%"], 1: ["#", "", "ab"]},
    "quote_ident": {0: [None, "", "a", "Ab", "select", "a b", 'a"b', "year", "int"]},
    "timezone": {0: ZONES},
    "make_timestamptz": {0: ["2024", "1", "2000"], 1: COUNTS, 2: COUNTS, 3: ["0", "12", "24"], 4: ["0", "59"], 5: ["0", "1.5", "60"],
        6: ZONES},
    "make_timestamp": {0: ["2024", "1", "2000", "0"], 1: COUNTS, 2: ["1", "31"], 3: ["0", "23", "24"], 4: ["0", "59", "60"], 5: ["0",
        "1.5", "60"]},
    "make_date": {0: ["2024", "1", "2000", "0"], 1: [*COUNTS, "13"], 2: [*COUNTS, "30", "32"]},
    "make_time": {0: ["0", "23", "24", "25", "-1"], 1: ["0", "59", "60"], 2: ["0", "1.5", "59.9999999", "60", "-1", "NaN"]},
    "make_interval": {i: [None, "0", "1", "-7", "100"] for i in range(6)} | {6: ["0", "1.5", "-0.25"]},
    "date_bin": {1: ["2020-02-29 12:34:56.789", "2024-01-01", None], 2: ["2000-01-01", "2001-01-01 02:30", "2025-03-03"]},
    "date_trunc": {0: UNITS, 2: ZONES},
    **{f"date_trunc:{u}/1": {0: [None, "1 year 2 mons 3 days 04:05:06.7", "-1 year -5 mons", "100 years", "-00:00:01.5"]} for u in ()},
    "to_char": {1: FORMATS},
    "to_date": {0: [None, "", "2024-08-07", "07 Aug 2024", "2024-220", "20240807", "x", "2024-13-01", "99-1-1"],
        1: [None, "YYYY-MM-DD", "DD Mon YYYY", "YYYY-DDD", "YYYYMMDD", "YY-MM-DD", "FMYYYY-FMMM-FMDD"]},
    "to_timestamp/2": {0: [None, "", "2024-08-07 13:07:09", "07-08-2024 01:07 PM", "2024-08-07 13:07:09.123", "2024-08-07", "25:00"],
        1: [None, "YYYY-MM-DD HH24:MI:SS", "DD-MM-YYYY HH12:MI PM", "YYYY-MM-DD HH24:MI:SS.MS", "YYYY-MM-DD HH24:MI:SS.US"]},
    "to_number": {0: [None, "", "12", "1,234.5", "-12.5", "12-", "$5", "<7>", " 42", "abc", "1.2.3"],
        1: [None, "999", "9,999.99", "S99.9", "99.9S", "L999", "999PR", "99MI", "99.9"]},
    "numeric_power": {}, "power": {1: [None, "0", "1", "2", "-1", "0.5", "3"]}, "pow": {1: [None, "0", "1", "2", "-1", "0.5", "3"]},
    "^": {1: [None, "0", "1", "2", "-1", "0.5", "3"]},
    "exp": {0: [None, "0", "1", "-1", "0.5", "2.5", "-2.5", "10"]},
    "factorial": {0: [None, "0", "1", "5", "20", "33", "-1"]},
    "round/2": {1: [None, "0", "1", "2", "-1", "-3", "5"]}, "trunc/2": {1: [None, "0", "1", "2", "-1", "-3", "5"]},
    "width_bucket": {3: [None, "1", "5", "0", "-1"]},
    "<<": {1: [None, "0", "1", "5", "31", "33", "-1"]}, ">>": {1: [None, "0", "1", "5", "31", "33", "-1"]},
    "width_bucket/2": {1: ["{}", "{1}", "{1,2,3}", "{NULL}", "{2,2,2}", "{-7,0,2147483647}"]},
    "array_fill": {1: ["{2}", "{0}", "{3}"]},
    "trim_array": {1: ["0", "1", "3", "-1"]},
    "[]": {1: COUNTS}, "[:]": {1: COUNTS, 2: COUNTS},
    "array_length": {1: COUNTS}, "array_upper": {1: COUNTS}, "array_lower": {1: COUNTS}, "array_position": {2: ["1", "2", "3"]},
    "string_to_array": {1: [None, "", ",", "b"], 2: [None, "", "a"]},
    "jsonb_object": {0: ["{a,1}", "{}", "{a}", "{a,b,c,NULL}", "{NULL,1}", None], 1: ["{1}", "{}", "{x,NULL}", None]},
    "jsonb_set": {1: ["{a}", "{b,c}", "{b,c,0}", "{0}", "{-1}", "{3}", "{x}", "{}", "{NULL}", None], 2: ["1", '"x"', "null", None]},
    "jsonb_insert": {1: ["{a}", "{b,c}", "{b,c,0}", "{0}", "{-1}", "{3}", "{x}", "{}", "{NULL}", None], 2: ["1", '"x"', "null", None]},
    "#-": {1: ["{a}", "{b,c}", "{b,c,0}", "{0}", "{-1}", "{3}", "{x}", "{}", "{NULL}", None]},
    **{f: {0: [None, "0", "0.5", "1", "-1", "30", "45", "90", "180", "-270", "NaN", "2"]}
       for f in ("sind", "cosd", "tand", "cotd", "asind", "acosd", "atand")},
}  # fmt: skip

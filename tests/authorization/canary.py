"""The canary: values that only their owner may read, in all the forms in which bytes can show them."""

from __future__ import annotations

import base64
from struct import pack

from tailgate.lake.passwords import verifier

NUMBER = 7382194650183726541  # int8; no other value of these tests begins with these digits
WORD = "cnry-8f2e61d7"
VERIFIER = str(verifier("of nobody"))  # a password's verifier, in pg_authid, which only superusers may read


def spellings() -> list[bytes]:
    """Returns the byte forms of the canary: text, binary formats, hexadecimal digits, base64."""
    digits = str(NUMBER)
    result = [
        VERIFIER.encode(),
        VERIFIER.encode().hex().encode(),
        digits[:10].encode(),
        f"{digits[0]}.{digits[1:10]}".encode(),
        pack(">q", NUMBER),
        pack(">d", float(NUMBER)),
    ]
    result.append(b"".join(pack(">h", int(part)) for part in ("738", "2194", "6501", "8372")))  # numeric
    result += [WORD.encode(), WORD.upper().encode(), WORD[::-1].encode(), WORD.encode().hex().encode(), digits.encode().hex().encode()]
    # in base64, only the letters that do not depend on the position in the text
    result += [base64.b64encode(b"." * shift + WORD.encode())[4 if shift else 0 : -4] for shift in range(3)]
    return result


SPELLINGS = spellings()

"""Raw slices of a JSON text.

json.loads() tells what a text means; these functions also tell where each
part stands, so that a test can compare the bytes that a client sent.  Only
the levels that somebody asks for are scanned, and the C decoder of the
standard library finds the end of each value, so a body of megabytes is cheap.
"""

import json
import re

WS = re.compile(r"[ \t\n\r]*")


def _constant(name):
    raise ValueError("not JSON: " + name)


DECODER = json.JSONDecoder(strict=True, parse_constant=_constant)


class Raw:
    """One value: its text (exact), its meaning, and the text around it."""

    def __init__(self, text, value):
        self.text = text
        self.value = value
        self._members = None

    def __repr__(self):
        return "Raw(%s)" % (self.text if len(self.text) < 70
                            else self.text[:66] + "...")

    @property
    def bytes(self):
        return self.text.encode("utf-8")

    def items(self):
        """List elements as Raw values."""
        return [Raw(self.text[a:b], v) for a, b, v in _elements(self.text)]

    def members(self):
        """Object members as a list of (key, Raw), in order, doubles kept."""
        if self._members is None:
            self._members = [(k, Raw(self.text[a:b], v))
                             for k, _, a, b, v in _members(self.text)]
        return self._members

    def get(self, key):
        """The last member of that name (what json.loads would keep)."""
        for k, raw in reversed(self.members()):
            if k == key:
                return raw
        return None

    def without(self, key):
        """The object's text with a member cut out, its comma too."""
        text = self.text
        spans = list(_members(text))
        for i in range(len(spans) - 1, -1, -1):
            if spans[i][0] != key:
                continue
            start, end = spans[i][1], spans[i][3]
            if i > 0:
                start = spans[i - 1][3]
            elif len(spans) > 1:
                end = spans[1][1]
            text = text[:start] + text[end:]
            spans = list(_members(text))
        return text


def parse(body):
    """Bytes to Raw.  ValueError for all that is not strict UTF-8 JSON."""
    try:
        text = body.decode("utf-8", "strict")
    except UnicodeDecodeError as e:
        raise ValueError("body is not UTF-8: %s" % e) from None
    start = WS.match(text).end()
    value, end = _decode(text, start)
    if WS.match(text, end).end() != len(text):
        raise ValueError("text after the JSON value at %d" % end)
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as e:
        raise ValueError("lone surrogate escape in a string: %s" % e) from None
    return Raw(text[start:end], value)


def compact(text):
    """The same tokens without the white space between them."""
    out, i = [], 0
    for m in re.finditer(r'"(?:[^"\\]|\\.)*"', text, re.S):
        out.append(re.sub(r"[ \t\r\n]+", "", text[i:m.start()]))
        out.append(m.group())
        i = m.end()
    out.append(re.sub(r"[ \t\r\n]+", "", text[i:]))
    return "".join(out)


def _decode(text, i):
    try:
        return DECODER.raw_decode(text, i)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _elements(text):
    """(start, end, value) of each element of an array's text."""
    i = WS.match(text, 1).end()
    while text[i] != "]":
        value, end = _decode(text, i)
        yield i, end, value
        i = WS.match(text, end).end()
        if text[i] == ",":
            i = WS.match(text, i + 1).end()


def _members(text):
    """(key, member start, value start, value end, value) of an object."""
    i = WS.match(text, 1).end()
    while text[i] != "}":
        key, k_end = _decode(text, i)
        colon = WS.match(text, k_end).end()
        v = WS.match(text, colon + 1).end()
        value, end = _decode(text, v)
        yield key, i, v, end, value
        i = WS.match(text, end).end()
        if text[i] == ",":
            i = WS.match(text, i + 1).end()

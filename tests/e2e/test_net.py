"""TLS with a test CA, proxies (B30, B31)."""

import os
import re

import pytest

import certs
from helpers import ALLOW, bash, text, turn
from proxy import Proxy

NO_PROXY_VARS = {}


@pytest.fixture(scope="session")
def ca(tmp_path_factory):
    return certs.Authority(str(tmp_path_factory.mktemp("ca")))


def trust(ca, **more):
    return dict({"SSL_CERT_FILE": ca.pem}, **more)


@pytest.mark.asan
@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "chain"])
def test_tls(fake, sub, ca, kind):
    api = fake([turn(bash("ls /proc/self/fd")), turn("done é")],
               tls=ca.leaf(kind))
    r = sub("-p", "go", *ALLOW, env=trust(ca))
    assert (r.out, r.err, r.status) == ("done é\n".encode(), b"", 0)
    assert len(api.conns) == 1
    assert api.requests[1].result_text().split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("kind,words", [
    ("wrong", "name"), ("expired", "expired|ended"),
    ("future", "only valid from|not.*valid|yet"),
    ("selfsigned", "trust|unknown|root|self"), ("other", "trust|unknown|root"),
    ("nochain", "trust|unknown|root")])
def test_bad_certificates(fake, sub, ca, kind, words):
    """Refused at once, with the cause, and nothing is sent."""
    api = fake([], tls=ca.leaf(kind))
    r = sub("-p", "go", "--output-format=json", env=trust(ca))
    assert r.status == 1
    assert re.search(words, r.json["result"])
    assert "localhost" in r.json["result"]
    assert api.requests == []
    assert len(api.conns) == 1              # not worth a retry


def test_without_the_ca_it_fails(fake, sub, ca):
    api = fake([], tls=ca.leaf("ecdsa"))
    r = sub("-p", "go")
    assert r.status == 1 and api.requests == []
    assert re.search(rb"trust|unknown|root", r.out)


@pytest.mark.parametrize("how", ["SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"])
def test_other_ways_to_add_a_ca(fake, sub, ca, how, tmp_path):
    fake([turn("x")], tls=ca.leaf("rsa"))
    value = ca.pem
    if how == "SSL_CERT_DIR":
        value = str(tmp_path / "certs")
        os.mkdir(value)
        with open(ca.pem) as f, open(value + "/my.pem", "w") as g:
            g.write("# a comment\n" + f.read())
    assert sub("-p", "go", env={how: value}).out == b"x\n"


@pytest.mark.parametrize("value", ["/no/such/file", "garbage", "/dev/null"])
def test_bad_ca_file(fake, sub, ca, value):
    fake([], tls=ca.leaf("rsa"))
    if value == "garbage":
        value = sub.write("garbage.pem", "-----BEGIN CERTIFICATE-----\n!!\n")
    r = sub("-p", "go", env={"SSL_CERT_FILE": value})
    assert r.status == 1
    assert value.encode() in r.out + r.err or b"trust" in r.out


def test_tls_faults(fake, sub, ca):
    """A cut or reset under TLS is a failed attempt as well."""
    api = fake([turn("x", faults=[dict(cut_event=2), dict(reset=300),
                                  dict(drop=True), dict(cut_event=3,
                                                        http10=True)])],
               tls=ca.leaf("ecdsa"))
    assert sub("-p", "go", env=trust(ca)).out == b"x\n"
    assert len(api.requests) == 5


@pytest.mark.parametrize("wire", [dict(split=1), dict(chunks=1),
                                  dict(http10=True),
                                  dict(length=True)], ids=str)
def test_tls_wire_forms(fake, sub, ca, wire):
    fake([turn(text("北京 \U0001f642", pieces=1), **wire)],
         tls=ca.leaf("ecdsa"))
    assert sub("-p", "go", env=trust(ca)).text == "北京 \U0001f642\n"


def test_truncated_tls_without_close_notify(fake, sub, ca):
    """The end of the connection is only an end if TLS says so."""
    fake([turn("good", faults=[dict(http10=True, message_stop=False)])],
         tls=ca.leaf("ecdsa"))
    assert sub("-p", "go", env=trust(ca)).out == b"good\n"


def test_large_answer_over_tls(fake, sub, ca):
    big = "0123456789abcdef" * 131072
    fake([turn(text(big, pieces=[len(big)]))], tls=ca.leaf("ecdsa"))
    assert sub("-p", "go", env=trust(ca)).out == big.encode() + b"\n"


def test_large_request_over_tls(fake, sub, ca):
    big = b"word " * 400000
    api = fake([turn("x")], tls=ca.leaf("rsa"))
    assert sub("-p", stdin=big, env=trust(ca)).out == b"x\n"
    assert len(api.requests[0].raw) > 2000000


def test_resumed_sessions(fake, sub, ca):
    """A second connection of a run resumes or handshakes; both work."""
    api = fake([turn(bash("true"), close_after=True),
                turn(bash("true"), close_header=True), turn("x")],
               tls=ca.leaf("rsa"))
    assert sub("-p", "go", *ALLOW, env=trust(ca)).out == b"x\n"
    assert len(api.conns) >= 3


def test_plain_server_where_tls_was_asked(fake, sub, ca):
    api = fake([])
    api.may_violate = True      # the hello is no HTTP
    r = sub("-p", "go", env=trust(
        ca, ANTHROPIC_BASE_URL="https://localhost:%d" % api.port,
        CLAUDE_CODE_MAX_RETRIES="1"))
    assert r.status == 1 and b"localhost" in r.out


def test_silent_tls_server(fake, sub, ca):
    """It accepts and never says a word: the time limit holds there, too."""
    import socket
    fake([])
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(5)
        r = sub("-p", "go", "--timeout", "1", env=trust(
            ca, ANTHROPIC_BASE_URL="https://localhost:%d"
            % s.getsockname()[1]))
    assert r.status == 1 and b"time" in r.out


def test_tls_server_where_plain_was_asked(fake, sub, ca):
    api = fake([], tls=ca.leaf("ecdsa"))
    r = sub("-p", "go", env=dict(
        ANTHROPIC_BASE_URL="http://localhost:%d" % api.port,
        CLAUDE_CODE_MAX_RETRIES="1"))
    assert r.status == 1


# ---- proxies -------------------------------------------------------------

@pytest.mark.asan
@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY"])
def test_tunnel(fake, sub, ca, name):
    api = fake([turn(bash("true")), turn("x")], tls=ca.leaf("ecdsa"))
    with Proxy(hosts={"api.test:443": ("127.0.0.1", api.port)}) as proxy:
        r = sub("-p", "go", *ALLOW, env=trust(
            ca, ANTHROPIC_BASE_URL="https://api.test", **{name: proxy.url}))
        assert (r.out, r.status) == (b"x\n", 0), r
        assert [x["method"] for x in proxy.log] == ["CONNECT"]
        assert proxy.log[0]["target"] == "api.test:443"
        assert proxy.log[0]["headers"].get("host") == "api.test:443"
        assert "x-api-key" not in proxy.log[0]["headers"]
    assert api.requests[0].headers["host"] == "api.test"


def test_plain_http_through_a_proxy(fake, sub):
    api = fake([turn("x")])
    with Proxy(hosts={"api.test:80": ("127.0.0.1", api.port)}) as proxy:
        r = sub("-p", "go", env={"ANTHROPIC_BASE_URL": "http://api.test",
                                 "http_proxy": proxy.url})
        assert (r.out, r.status) == (b"x\n", 0), r
        assert len(proxy.log) == 1


@pytest.mark.parametrize("password", ["pw", "p%40%3A%2F"])
def test_proxy_credentials(fake, sub, ca, password):
    from urllib.parse import unquote
    api = fake([turn("x")], tls=ca.leaf("ecdsa"))
    with Proxy(hosts={"api.test:443": ("127.0.0.1", api.port)}, user="us er",
               password=unquote(password)) as proxy:
        r = sub("-p", "go", env=trust(
            ca, ANTHROPIC_BASE_URL="https://api.test",
            https_proxy=proxy.url_with("us%20er", password)))
        assert (r.out, r.status) == (b"x\n", 0), r
    assert "proxy-authorization" not in api.requests[0].headers


@pytest.mark.parametrize("mode", ["auth", "refuse", "close", "garbage",
                                  "hang"])
def test_proxy_that_fails(fake, sub, ca, mode):
    """The message names the proxy, never its password; no hang."""
    fake([])
    with Proxy(mode=mode, user="u", password="other") as proxy:
        r = sub("-p", "go", "--timeout", "3", env=trust(
            ca, ANTHROPIC_BASE_URL="https://api.test",
            CLAUDE_CODE_MAX_RETRIES="1",
            https_proxy=proxy.url_with("u", "hunter2")))
        assert r.status == 1
        assert b"hunter2" not in r.out + r.err
        if mode != "hang":
            assert b"proxy" in r.out
            assert b"127.0.0.1:%d" % proxy.port in r.out
        if mode == "auth":
            assert b"407" in r.out
            assert len(proxy.log) == 1          # not worth a retry


@pytest.mark.parametrize("value", [
    "*", "api.test", ".test", "test", "API.TEST", "x.org, api.test",
    "x.org api.test", "api.test:443"])
def test_no_proxy(fake, sub, value):
    """The proxy is not asked; the name does not resolve, so it fails."""
    fake([])
    with Proxy() as proxy:
        r = sub("-p", "go", "--timeout", "5", env={
            "ANTHROPIC_BASE_URL": "https://api.test", "no_proxy": value,
            "CLAUDE_CODE_MAX_RETRIES": "0", "https_proxy": proxy.url})
        assert r.status == 1
        assert proxy.log == []
        assert b"api.test" in r.out or b"time" in r.out


@pytest.mark.parametrize("value", ["pi.test", "other.test", "api.test:80",
                                   "api.test.org", ""])
def test_no_proxy_for_others(fake, sub, ca, value):
    api = fake([turn("x")], tls=ca.leaf("ecdsa"))
    with Proxy(hosts={"api.test:443": ("127.0.0.1", api.port)}) as proxy:
        r = sub("-p", "go", env=trust(
            ca, ANTHROPIC_BASE_URL="https://api.test", no_proxy=value,
            https_proxy=proxy.url))
        assert r.out == b"x\n", r


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_is_never_sent_to_the_proxy(fake, sub, host):
    fake([turn("x")], name=host)
    with Proxy(mode="refuse") as proxy:
        r = sub("-p", "go", env={"http_proxy": proxy.url,
                                 "https_proxy": proxy.url,
                                 "HTTP_PROXY": proxy.url})
        assert r.out == b"x\n" and proxy.log == []


def test_wrong_name_through_the_tunnel(fake, sub, ca):
    api = fake([], tls=ca.leaf("ecdsa"))
    with Proxy(hosts={"evil.test:443": ("127.0.0.1", api.port)}) as proxy:
        r = sub("-p", "go", env=trust(
            ca, ANTHROPIC_BASE_URL="https://evil.test",
            https_proxy=proxy.url))
        assert r.status == 1 and api.requests == []
        assert b"evil.test" in r.out and b"name" in r.out


def test_wildcard_names(fake, sub, ca):
    api = fake([turn("x")], tls=ca.leaf("ecdsa"))
    with Proxy(hosts={"a.wild.test:443": ("127.0.0.1", api.port),
                      "a.b.wild.test:443": ("127.0.0.1", api.port)}) as p:
        r = sub("-p", "go", env=trust(
            ca, ANTHROPIC_BASE_URL="https://a.wild.test",
            https_proxy=p.url))
        assert r.out == b"x\n", r
        r = sub("-p", "go", env=trust(
            ca, ANTHROPIC_BASE_URL="https://a.b.wild.test",
            https_proxy=p.url))
        assert r.status == 1


def test_ca_through_the_tunnel(fake, sub, ca):
    """B31: with the company's CA it works, without it fails."""
    api = fake([turn("x")], tls=ca.leaf("chain"))
    with Proxy(hosts={"api.test:443": ("127.0.0.1", api.port)}) as proxy:
        base = {"ANTHROPIC_BASE_URL": "https://api.test",
                "https_proxy": proxy.url}
        r = sub("-p", "go", env=base)
        assert r.status == 1 and re.search(rb"trust|unknown|root", r.out)
        assert sub("-p", "go", env=trust(ca, **base)).out == b"x\n"


@pytest.mark.parametrize("url", ["ftp://127.0.0.1:1", "127.0.0.1", "http://",
                                 "socks5://127.0.0.1:1"])
def test_bad_proxy_address(fake, sub, url):
    fake([])
    r = sub("-p", "go", "--timeout", "5", env={
        "ANTHROPIC_BASE_URL": "https://api.test", "https_proxy": url,
        "CLAUDE_CODE_MAX_RETRIES": "0"})
    assert r.status in (1, 2)
    assert b"proxy" in r.out + r.err


def test_unknown_host(fake, sub):
    fake([])
    r = sub("-p", "go", "--timeout", "10", env={
        "ANTHROPIC_BASE_URL": "http://no-such-host.invalid",
        "CLAUDE_CODE_MAX_RETRIES": "0"})
    assert r.status == 1
    assert b"no-such-host.invalid" in r.out or b"time" in r.out

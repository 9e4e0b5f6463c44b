#!/usr/bin/env python3
"""A small HTTP proxy: CONNECT tunnels and absolute-form requests.

    with Proxy(hosts={"api.test:443": ("127.0.0.1", port)}) as p:
        env = {"https_proxy": p.url}
        p.log       # [{"method", "target", "headers"}]

mode: ok; auth (407 unless user:password match); refuse (403 page);
hang (never answers); close (no answer); garbage (no HTTP).
hosts maps the asked authority to where it really is, so no name look-up is
needed; without an entry the proxy connects to what was asked, loopback only.
"""

import base64
import select
import socket
import sys
import threading


class Proxy:
    def __init__(self, mode="ok", user=None, password=None, hosts=None,
                 host="127.0.0.1"):
        self.mode = mode
        self.want = None if user is None else "Basic " + base64.b64encode(
            ("%s:%s" % (user, password)).encode()).decode()
        self.hosts = hosts or {}
        self.log = []
        self.closing = threading.Event()
        self.changed = threading.Condition()
        self.sock = socket.socket()
        self.sock.bind((host, 0))
        self.sock.listen(64)
        self.port = self.sock.getsockname()[1]
        self.url = "http://%s:%d" % (host, self.port)
        self.open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def url_with(self, user, password):
        return self.url.replace("http://", "http://%s:%s@" % (user, password))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.closing.set()
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        for s in list(self.open):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def wait(self, n, timeout=20):
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.log) >= n, timeout):
                raise AssertionError("proxy: %d requests" % len(self.log))

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            self.open.add(s)
            threading.Thread(target=self._serve, args=(s,),
                             daemon=True).start()

    def _serve(self, s):
        try:
            self._handle(s)
        except OSError:
            pass
        finally:
            self.open.discard(s)
            s.close()

    def _handle(self, s):
        buf = b""
        while b"\r\n\r\n" not in buf:
            data = s.recv(65536)
            if not data:
                return
            buf += data
        head, _, rest = buf.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {k.strip().lower(): v.strip() for k, _, v in
                   (line.partition(":") for line in lines[1:])}
        with self.changed:
            self.log.append({"method": method, "target": target,
                             "headers": headers})
            self.changed.notify_all()
        if self.mode == "hang":
            while not self.closing.wait(0.05):
                if select.select([s], [], [], 0)[0] and not s.recv(4096):
                    return
            return
        if self.mode == "close":
            return
        if self.mode == "garbage":
            s.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            return
        if self.mode == "refuse":
            self._page(s, "403 Forbidden", "Blocked by policy")
            return
        if self.want is not None \
                and headers.get("proxy-authorization") != self.want:
            self._page(s, "407 Proxy Authentication Required", "Who are you?",
                       "Proxy-Authenticate: Basic realm=\"test\"\r\n")
            return
        self._forward(s, method, target, lines, rest)

    @staticmethod
    def _page(s, status, words, extra=""):
        body = "<html><body><h1>%s</h1></body></html>" % words
        s.sendall(("HTTP/1.1 %s\r\nContent-Type: text/html\r\n%s"
                   "Content-Length: %d\r\nConnection: close\r\n\r\n%s"
                   % (status, extra, len(body), body)).encode())

    def _forward(self, s, method, target, lines, rest):
        if method == "CONNECT":
            asked = target
        else:
            asked = target.split("/")[2]
            path = "/" + "/".join(target.split("/")[3:])
            lines = ["%s %s HTTP/1.1" % (method, path)] + [
                x for x in lines[1:]
                if not x.lower().startswith("proxy-")]
            rest = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + rest
        if ":" not in asked.rsplit("]", 1)[-1]:
            asked += ":80"
        to = self.hosts.get(asked)
        if to is None:
            host, _, port = asked.rpartition(":")
            to = (host.strip("[]"), int(port))
            if to[0] not in ("127.0.0.1", "::1", "localhost"):
                self._page(s, "502 Bad Gateway", "no such host")
                return
        up = socket.create_connection(to, 10)
        self.open.add(up)
        try:
            if method == "CONNECT":
                s.sendall(b"HTTP/1.1 200 Connection established\r\n"
                          b"Via: test\r\n\r\n")
            if rest:
                up.sendall(rest)
            self._pump(s, up)
        finally:
            self.open.discard(up)
            up.close()

    def _pump(self, a, b):
        while not self.closing.is_set():
            ready, _, _ = select.select([a, b], [], [], 0.2)
            for s in ready:
                data = s.recv(65536)
                if not data:
                    return
                (b if s is a else a).sendall(data)


if __name__ == "__main__":
    proxy = Proxy(*sys.argv[1:2])
    print(proxy.url, flush=True)
    proxy.closing.wait()

"""A test certificate authority, made with the openssl command.

    ca = Authority(directory)          # made once, then found again there
    ca.pem                             # the root certificate's file
    chain_file, key_file = ca.leaf("rsa")

Kinds of leaf: rsa and ecdsa (localhost, signed by the root), chain (ECDSA
behind an intermediate, which is in the chain file), nochain (the same without
the intermediate), wrong (another name), expired, future, selfsigned,
other (right name, but another root).
"""

import os
import subprocess

CONF = """
[req]
distinguished_name = dn
prompt = no
[dn]
CN = %(cn)s
[ca_root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature,keyEncipherment
extendedKeyUsage = serverAuth
subjectAltName = %(san)s
[ca]
default_ca = here
[here]
database = %(dir)s/index-%(name)s.txt
new_certs_dir = %(dir)s
serial = %(dir)s/serial-%(name)s
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
"""
LOCAL = "DNS:localhost,DNS:api.test,DNS:*.wild.test,IP:127.0.0.1"


class Authority:
    def __init__(self, directory):
        self.dir = os.path.abspath(directory)
        os.makedirs(self.dir, exist_ok=True)
        self.pem = os.path.join(self.dir, "root.pem")
        if not os.path.exists(self.pem):
            self._root("root", "subagent test root")

    def path(self, name):
        return os.path.join(self.dir, name)

    def leaf(self, kind):
        chain, key = self.path(kind + ".pem"), self.path(kind + ".key")
        if os.path.exists(chain):
            return chain, key
        issuer, san, start, end = "root", LOCAL, None, None
        if kind in ("chain", "nochain"):
            issuer = "middle"
            if not os.path.exists(self.path("middle.pem")):
                self._key("middle", "ec")
                self._sign("middle", "subagent test intermediate", "root",
                           "ca_root", LOCAL)
        elif kind == "wrong":
            san = "DNS:elsewhere.test"
        elif kind == "expired":
            start, end = "20200101000000Z", "20200201000000Z"
        elif kind == "future":
            start, end = "20480101000000Z", "20490101000000Z"
        elif kind == "other":
            issuer = "otherroot"
            if not os.path.exists(self.path("otherroot.pem")):
                self._root("otherroot", "another test root")
        self._key(kind, "rsa" if kind == "rsa" else "ec")
        cn = "elsewhere.test" if kind == "wrong" else "localhost"
        if kind == "selfsigned":
            self._run("req", "-new", "-x509", "-key", key, "-out", chain,
                      "-days", "3650", "-sha256", "-config",
                      self._conf(kind, cn, san), "-extensions", "leaf")
        else:
            self._sign(kind, cn, issuer, "leaf", san, start, end)
        if kind == "chain":
            with open(chain, "a") as out, open(self.path("middle.pem")) as f:
                out.write(f.read())
        return chain, key

    def _conf(self, name, cn, san):
        conf = self.path(name + ".cnf")
        with open(conf, "w") as f:
            f.write(CONF % {"cn": cn, "san": san, "dir": self.dir,
                            "name": name})
        return conf

    def _key(self, name, kind):
        how = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"] \
            if kind == "rsa" else ["-algorithm", "EC", "-pkeyopt",
                                   "ec_paramgen_curve:P-256"]
        self._run("genpkey", *how, "-out", self.path(name + ".key"))

    def _root(self, name, cn):
        self._key(name, "ec")
        self._run("req", "-new", "-x509", "-key", self.path(name + ".key"),
                  "-out", self.path(name + ".pem"), "-days", "3650",
                  "-sha256", "-config", self._conf(name, cn, LOCAL),
                  "-extensions", "ca_root")

    def _sign(self, name, cn, issuer, section, san, start=None, end=None):
        conf = self._conf(name, cn, san)
        open(self.path("index-%s.txt" % name), "w").close()
        self._run("req", "-new", "-key", self.path(name + ".key"), "-out",
                  self.path(name + ".csr"), "-config", conf)
        when = ["-startdate", start, "-enddate", end] if start \
            else ["-days", "3650"]
        self._run("ca", "-batch", "-notext", "-config", conf, "-rand_serial",
                  "-cert", self.path(issuer + ".pem"), "-keyfile",
                  self.path(issuer + ".key"), "-in",
                  self.path(name + ".csr"), "-out",
                  self.path(name + ".pem"), "-extensions", section, *when)

    @staticmethod
    def _run(*args):
        r = subprocess.run(("openssl",) + args, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if r.returncode:
            raise RuntimeError("openssl %s: %s" % (
                args[0], r.stdout.decode("utf-8", "replace")))

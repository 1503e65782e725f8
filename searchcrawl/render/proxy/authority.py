"""The certificate authority of one run: with it the proxy ends TLS, and only the browser of the run trusts it (L13)."""

from __future__ import annotations

import base64
import datetime
import hashlib
import ipaddress
import ssl
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY: Final = datetime.timedelta(days=1)
#: Longer than any run; Chromium takes no certificate of more than 398 days from an authority.
_LIFETIME: Final = 390 * _DAY
#: A common name has 64 characters at most, so the host stands in the alternative names alone.
_NAME: Final = "searchcrawl"
_MAX_CONTEXTS: Final = 500


class Authority:
    """Makes certificates for hosts; its key is never written to a disk.

    The key of the certificates is in a file for as long as Python's ssl needs to read it, in a folder of its own.
    """

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._host_key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{_NAME} authority of one run")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        self._certificate = self._sign(_describe(name, name, self._key.public_key()), constraints)
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()

    @property
    def key_digest(self) -> str:
        """What names the authority to Chromium: the SHA-256 of its public key, in Base64."""
        public = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return base64.b64encode(hashlib.sha256(public).digest()).decode("ascii")

    @property
    def certificate_pem(self) -> str:
        """Its certificate, for others than Chromium."""
        return self._certificate.public_bytes(Encoding.PEM).decode("ascii")

    def build_context(self, host: str) -> ssl.SSLContext:
        """What a server of ``host``, a name or an address without brackets, needs for TLS; raises ValueError for what is none."""
        known = self._contexts.get(host)
        if known is None:
            known = self._contexts[host] = self._make_context(host)
            if len(self._contexts) > _MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        return known

    def _make_context(self, host: str) -> ssl.SSLContext:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
        builder = _describe(subject, self._certificate.subject, self._host_key.public_key())
        names = x509.SubjectAlternativeName([_name_host(host)])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        certificate = self._sign(builder, x509.BasicConstraints(ca=False, path_length=None), names, usage)
        chain = certificate.public_bytes(Encoding.PEM) + self._certificate.public_bytes(Encoding.PEM)
        key = self._host_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.TemporaryDirectory(prefix="searchcrawl-tls-") as folder:
            file = Path(folder, "chain.pem")
            file.write_bytes(key + chain)
            context.load_cert_chain(file)
        return context

    def _sign(self, builder: x509.CertificateBuilder, *extensions: x509.ExtensionType) -> x509.Certificate:
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, SHA256())


def _describe(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _LIFETIME)
    )


def _name_host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if ":" in host:
            raise
        return x509.DNSName(host)

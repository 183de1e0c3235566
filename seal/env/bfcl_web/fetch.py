"""Fetching a page that a policy names, within bounds: scheme, host, address, redirects, bytes and seconds.

A host name is resolved once, every address it has must be public, and the connection goes to the address that was
checked, so that a name cannot point elsewhere a moment later. Every redirect is a new page and checked anew. No proxy
of the environment, no cookies and no credentials are used.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urljoin, urlsplit

PORTS = {"http": 80, "https": 443}
REDIRECTS = frozenset((301, 302, 303, 307, 308))
HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; seal)",
    "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.5",
    "Accept-Language": "en-US,en;q=0.9",
    "Accept-Encoding": "identity",  # so that the bound on bytes is one on text
    "Connection": "close",
}
_CHUNK = 65_536
_WRITTEN = "%/:=&?~#+!$,;'@()*[]"  # stays as it is in a path and query


class Refused(ValueError):
    """A page that is not fetched, and why."""


class Failed(OSError):
    """A page that could not be fetched. `status`: of HTTP, 0 where there was no answer."""

    def __init__(self, message: str, status: int = 0):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may be fetched.

    hosts     names that may be asked, their subdomains too; "*" is any public host
    local     "address:port" of servers that may be asked though they are not public: for tests alone
    seconds   of one page, redirects included; `max_bytes` of its body; `redirects` that are followed
    """

    hosts: tuple[str, ...] = ()
    local: frozenset[str] = frozenset()
    seconds: float = 20.0
    max_bytes: int = 2_000_000
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Page:
    """Where a page was found in the end, its text, and whether it was cut at `max_bytes`."""

    url: str
    text: str
    cut: bool


def fetch(url: str, bounds: Bounds) -> Page:
    """The page behind a URL. Raises Refused or Failed."""
    deadline = time.monotonic() + bounds.seconds
    for _ in range(bounds.redirects + 1):
        status, headers, body = _get(url, bounds, deadline)
        if status not in REDIRECTS:
            break
        if not (target := headers.get("Location")):
            raise Failed(f"{status} without a target for url: {url}", status)
        url = urljoin(url, target)
    else:
        raise Failed(f"Exceeded {bounds.redirects} redirects.")
    if status >= 400:
        raise Failed(f"{status} Error: {http.client.responses.get(status, 'Unknown')} for url: {url}", status)
    charset = headers.get_content_charset("utf-8")
    try:
        text = body[: bounds.max_bytes].decode(charset, "replace")
    except LookupError:
        text = body[: bounds.max_bytes].decode("utf-8", "replace")
    return Page(url, text, len(body) > bounds.max_bytes)


def checked(url: str, bounds: Bounds) -> tuple[SplitResult, str, int]:
    """A URL's parts, the address to connect to, and the port. Raises Refused (what it names) or Failed (no address)."""
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme, 0)
        host = (parts.hostname or "").rstrip(".").encode("idna").decode() if parts.hostname else ""
    except (ValueError, UnicodeError) as error:
        raise Refused(f"Invalid URL: {error}") from None
    if parts.scheme not in PORTS or not host:
        raise Refused("only http and https pages of a host can be fetched")
    if parts.username is not None or parts.password is not None:
        raise Refused("a URL with a user name is not fetched")
    if any(ord(char) <= 32 or ord(char) == 127 for char in url):
        raise Refused("Invalid URL: it holds a space or a control character")
    if f"{host}:{port}" in bounds.local:
        return parts, host, port
    if port != PORTS[parts.scheme]:
        raise Refused(f"port {port} is not fetched")
    if not allowed(host, bounds.hosts):
        raise Refused(f"host {host} is not on the list of hosts that may be fetched")
    return parts, _address(host, port), port


def allowed(host: str, hosts: Sequence[str]) -> bool:
    """Whether a host, or a domain it belongs to, is listed."""
    return "*" in hosts or any(host == name or host.endswith(f".{name}") for name in map(str.lower, hosts))


def is_public(address: str) -> bool:
    """Whether an IP address is one of the open internet: not private, loopback, link-local, shared, reserved, ...

    An IPv6 address that carries an IPv4 one (mapped, 6to4, Teredo, NAT64) is judged by what it carries.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        carried = ip.ipv4_mapped or ip.sixtofour or (ip.teredo and ip.teredo[1])
        if ip in _NAT64 or (not carried and int(ip) >> 32 == 0):
            carried = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if carried:
            return is_public(str(carried))
    return ip.is_global and not ip.is_multicast


_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def _address(host: str, port: int) -> str:
    """The first address of a host. Raises Refused where any of them is not public."""
    try:
        found = [info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        raise Failed(f"Failed to resolve {host}") from None
    if not all(map(is_public, found)):
        raise Refused(f"host {host} has an address that is not public")
    return found[0]


def _get(url: str, bounds: Bounds, deadline: float) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Status, headers, and at most `max_bytes` + 1 bytes of the body."""
    parts, address, port = checked(url, bounds)
    left = deadline - time.monotonic()
    if left <= 0:
        raise Failed(f"Read timed out. (timeout={bounds.seconds:g})")
    connection = http.client.HTTPConnection(parts.hostname, port, timeout=left)
    guard, timer = None, None
    try:
        connection.sock = socket.create_connection((address, port), timeout=left)
        # A server that sends a byte now and then never runs into the socket's own limit.
        guard = connection.sock.dup()
        timer = threading.Timer(left, _shut, [guard])
        timer.daemon = True
        timer.start()
        if parts.scheme == "https":
            connection.sock = ssl.create_default_context().wrap_socket(connection.sock, server_hostname=parts.hostname)
        target = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=_WRITTEN)
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        name += "" if port == PORTS[parts.scheme] else f":{port}"
        connection.request("GET", target, headers={**HEADERS, "Host": name})
        answer = connection.getresponse()
        body = bytearray()
        while len(body) <= bounds.max_bytes and (chunk := answer.read(min(_CHUNK, bounds.max_bytes + 1 - len(body)))):
            body += chunk
        if time.monotonic() >= deadline:
            raise TimeoutError
        return answer.status, answer.headers, bytes(body)
    except (http.client.HTTPException, UnicodeError, OSError) as error:
        late = time.monotonic() >= deadline or isinstance(error, TimeoutError)
        problem = f"Read timed out. (timeout={bounds.seconds:g})" if late else f"{type(error).__name__}: {error}"
        raise Failed(problem) from None
    finally:
        if timer:
            timer.cancel()
        if guard:
            guard.close()
        connection.close()


def _shut(sock: socket.socket) -> None:
    with suppress(OSError):  # closed already
        sock.shutdown(socket.SHUT_RDWR)

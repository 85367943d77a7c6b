"""The names that a server answers to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from werkzeug.test import Client
from werkzeug.wrappers import Response

from tb_memplugin.hosts.serving import addresses
from tb_memplugin.hosts.serving.addresses import VARIABLE, HostNames, ProxiedNames, checked

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

LOCAL = ["localhost", "localhost:6007", "LocalHost.", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:6007", "127.1.2.3"]
REBOUND = ["evil.example", "evil.example:6007", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost"]
MALFORMED = ["localhost, evil.example", "evil@localhost", "[::1", "localhost/x", "a b", ":6007", "[localhost]"]
ADDRESSES = ["10.0.0.7", "10.0.0.7:6007", "[fe80::1]:6007"]


def environ(host: str | None, **more: str) -> WSGIEnvironment:
    return {**({} if host is None else {"HTTP_HOST": host}), **more}


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(addresses, "machine_names", lambda: {"box", "box.local", "box.lan"})


@pytest.mark.parametrize("listening", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_on_loopback_only_its_names(listening: str) -> None:
    names = HostNames(listening)
    for host in [*LOCAL, None]:
        assert names.accepts(environ(host)), host
    for host in [*REBOUND, *MALFORMED, *ADDRESSES, "box"]:
        assert not names.accepts(environ(host)), host


@pytest.mark.parametrize("listening", ["0.0.0.0", "::", "", "10.0.0.7"])
def test_on_other_addresses_also_addresses_and_the_machines_names(listening: str) -> None:
    names = HostNames(listening)
    for host in [*LOCAL, *ADDRESSES, "box", "BOX.lan:6007"]:
        assert names.accepts(environ(host)), host
    for host in [*REBOUND, *MALFORMED, "other.lan"]:
        assert not names.accepts(environ(host)), host


def test_names_that_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "hub.example, .proxy.example")
    names = HostNames("127.0.0.1", ["Mine.example"])
    for host in ("mine.example:443", "hub.example", "proxy.example", "a.b.proxy.example"):
        assert names.accepts(environ(host)), host
    for host in ("a.mine.example", "xproxy.example", "evil.example"):
        assert not names.accepts(environ(host)), host
    assert HostNames("0.0.0.0", ["*"]).accepts(environ("anything.example"))
    assert HostNames("tb.lan").accepts(environ("tb.lan:6007"))


def test_behind_proxies_a_browser_over_https_is_accepted() -> None:
    names = ProxiedNames()
    for host in ("hub.example", "x-colab.googleusercontent.com"):
        assert names.accepts(environ(host, HTTP_SEC_FETCH_SITE="same-origin"))
        assert not names.accepts(environ(host))
    for host in [*LOCAL, *ADDRESSES]:
        assert names.accepts(environ(host)), host


def test_a_refusal_says_what_to_do() -> None:
    client = Client(checked(Response("data"), HostNames("127.0.0.1").accepts, "start with --allowed-host {name}"))
    data = client.get("/api/runs", headers={"Host": "evil.example:80"})
    assert (data.status_code, data.mimetype) == (403, "application/json")
    assert data.json is not None and data.json["error"]["remedy"] == "start with --allowed-host evil.example"
    page = client.get("/", headers={"Host": "<img>"})
    assert (page.status_code, page.mimetype) == (403, "text/plain")
    assert page.text.count("\n") == 1
    assert client.head("/", headers={"Host": "evil.example"}).data == b""
    assert client.get("/", headers={"Host": "localhost"}).text == "data"

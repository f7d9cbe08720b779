"""Addresses of databases, clusters and files, shown without their passwords."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

_HIDDEN: Final = "***"

_USER: Final = re.compile(r"([A-Za-z][\w+.-]*://[^\s/:]*):\S*@")
"""A password behind a user's name: ``scheme://user:password@host``."""

_KEY: Final = re.compile(
    r"((?:[?&;]|%3B)[\w.-]*(?:passw(?:or)?d|pwd|secret|token|api_?key|access_?key)\w*(?:=|%3D))"
    r"(?:[^&;%\s\"\\]|%(?!3B)|\\.)*",
    re.IGNORECASE,
)
"""A password among the keys behind a question mark: ``?password=value``."""


def without_passwords(text: str) -> str:
    """Return ``text`` with the passwords of all URLs in it hidden."""
    if "://" not in text:
        return text
    return _KEY.sub(rf"\1{_HIDDEN}", _USER.sub(rf"\1:{_HIDDEN}@", text))


def shown_address(address: str) -> str:
    """Return an address as messages, pages and logs show it: without passwords."""
    if "://" not in address:
        # A mistyped URL: what follows the first colon may be a password.
        return re.sub(r"(?s):.*@", f":{_HIDDEN}@", address)
    return without_passwords(re.sub(r"\s", "%20", address))


def library_text(error: BaseException | str, address: str | None) -> str:
    """Return a library's message without the passwords of ``address``, also if it quotes parts."""
    if address is None:
        return str(error)
    text = str(error).replace(address, shown_address(address))
    for part in _secrets(address):
        text = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", _HIDDEN, text)
    return without_passwords(text)


def _secrets(address: str) -> list[str]:
    """Return the passwords of an address and the pieces that a parser may cut them into."""
    if shown_address(address) == address:
        return []
    passwords = re.findall(r"(?s):(?!//)(.*)@", address)
    passwords += [match[0].removeprefix(match[1]) for match in _KEY.finditer(address)]
    whole = {*passwords, *map(unquote, passwords)}
    pieces = {piece for password in whole for piece in re.split(r"[@/:?#]", password)}
    return sorted(whole | {piece for piece in pieces if len(piece) > 1}, key=len, reverse=True)

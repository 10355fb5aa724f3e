# SPDX-License-Identifier: MIT
"""HTTP/1.1 over asyncio, as much as a service needs that programs call: requests with a length, answers, connections that
stay open. A request that is not well formed, too long or too slow is answered so, and its connection ends."""
import asyncio
from http import HTTPStatus
from typing import Awaitable, Callable, Dict, NamedTuple

MAX_HEAD, MAX_BODY, SECONDS = 16 << 10, 16 << 20, 60  # of a request: its head, its body, and until it has come


class Request(NamedTuple):
    method: str
    path: str
    body: bytes


class Answer(NamedTuple):
    status: int
    body: bytes
    kind: str = "application/json"


class Refused(Exception):
    """A request that no handler gets."""

    def __init__(self, status: int, words: str):
        super().__init__(words)
        self.status = status


Handler = Callable[[Request], Awaitable[Answer]]


def headers(lines: "list[str]") -> Dict[str, str]:
    found: Dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip() or name.lower() in found:
            raise Refused(400, f"expected a header once, NAME: VALUE, found {line[:80]!r}")
        found[name.lower()] = value.strip()
    return found


def length(fields: Dict[str, str]) -> int:
    if "transfer-encoding" in fields:
        raise Refused(501, "expected a body of Content-Length bytes, found Transfer-Encoding")
    text = fields.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise Refused(400, f"Content-Length: expected a number, found {text[:80]!r}")
    if len(text) > 12 or int(text) > MAX_BODY:
        raise Refused(413, f"Content-Length: expected at most {MAX_BODY}, found {text[:80]}")
    return int(text)


async def read(reader: asyncio.StreamReader) -> "tuple[Request, bool]":
    """A request, and whether its connection stays. EOFError: there is none."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise Refused(400, "the request ends within its head") from None
        raise EOFError from None
    except asyncio.LimitOverrunError:
        raise Refused(431, f"expected a head of at most {MAX_HEAD} bytes") from None
    start, *lines = head.decode("latin-1")[:-4].split("\r\n")
    words = start.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1"):
        raise Refused(400, f"expected METHOD PATH HTTP/1.1, found {start[:80]!r}")
    fields = headers(lines)
    try:
        body = await reader.readexactly(length(fields))
    except asyncio.IncompleteReadError:
        raise Refused(400, "the request ends within its body") from None
    return Request(words[0], words[1], body), words[2] == "HTTP/1.1" and fields.get("connection", "").lower() != "close"


def written(answer: Answer, stays: bool) -> bytes:
    head = (f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: {answer.kind}\r\n"
            f"Content-Length: {len(answer.body)}\r\nConnection: {'keep-alive' if stays else 'close'}\r\n\r\n")
    return head.encode() + answer.body


async def converse(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Requests of one connection, one after the other."""
    stays = True
    try:
        while stays:
            try:
                request, stays = await asyncio.wait_for(read(reader), SECONDS)
                answer = await handler(request)
            except Refused as refused:
                answer, stays = Answer(refused.status, f"{refused}\n".encode(), "text/plain"), False
            writer.write(written(answer, stays))
            await writer.drain()
    except (EOFError, ConnectionError, asyncio.TimeoutError):
        pass  # the client has gone, or says nothing
    finally:
        writer.close()


async def listen(handler: Handler, host: str, port: int) -> asyncio.AbstractServer:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await converse(handler, reader, writer)

    return await asyncio.start_server(connected, host, port, limit=MAX_HEAD, backlog=1024)

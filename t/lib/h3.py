#!/usr/bin/env python3

"""One HTTP/3 connection to 127.0.0.1, for LLM::H3.

    h3.py PORT WINDOW

Commands and results are JSON, one object per line.  Commands, on standard
input, each with the number of a request in "id" (0, 1, ...):

    {"do": "request", "method", "path", "body", "send", "hold"}
    {"do": "reset"}     resets the request's stream
    {"do": "release"}   ends "hold"

"send" is the number of bytes of the body that are sent; if it is less than
all, the request does not end.  With "hold", no more than WINDOW bytes of the
answer are received.  Results, on standard output: "status" and "headers",
"data", "done", "rst" (an error code) of a request, "closed" of the connection.
The end of standard input closes the connection.
"""

import json
import os
import select
import socket
import ssl
import sys
import time

from aioquic.h3.connection import ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection


class Connection(QuicConnection):
    """A QUIC connection whose streams can be held.

    aioquic enlarges a stream's window automatically when half of it is used,
    and has no option to stop that.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self.held = set()

    def _write_stream_limits(self, builder, space, stream):
        if stream.stream_id not in self.held:
            super()._write_stream_limits(builder, space, stream)


class Client:
    def __init__(self, port, window):
        self.peer = ("127.0.0.1", port)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(self.peer)
        self.socket.setblocking(False)

        self.quic = Connection(configuration=QuicConfiguration(
            alpn_protocols=["h3"], server_name="localhost",
            verify_mode=ssl.CERT_NONE, max_stream_data=window))
        self.quic.connect(self.peer, now=time.monotonic())

        self.http = H3Connection(self.quic)
        self.ready = False
        self.input = b""
        self.output = b""

        # the connection must go on while the test does not read the output
        os.set_blocking(sys.stdout.fileno(), False)

    def run(self):
        while True:
            self.transmit()

            timer = self.quic.get_timer()

            if timer is None:
                break

            # commands are read only after the handshake

            sources = [self.socket] + [sys.stdin] * self.ready
            sinks = [sys.stdout] if self.output else []
            readable, writable, _ = select.select(
                sources, sinks, [], max(0, timer - time.monotonic()))
            now = time.monotonic()

            if now >= timer:
                self.quic.handle_timer(now=now)

            if self.socket in readable:
                self.receive(now)

            if sys.stdin in readable:
                self.read_commands()

            if writable:
                self.write_output()

            while (event := self.quic.next_event()) is not None:
                self.handle(event)

        os.set_blocking(sys.stdout.fileno(), True)

        while self.output:
            self.write_output()

    def write_output(self):
        n = os.write(sys.stdout.fileno(), self.output)
        self.output = self.output[n:]

    def tell(self, **what):
        self.output += json.dumps(what).encode() + b"\n"

    def transmit(self):
        for data, _ in self.quic.datagrams_to_send(now=time.monotonic()):
            try:
                self.socket.send(data)
            except (BlockingIOError, ConnectionRefusedError):
                pass        # the same as a lost packet

    def receive(self, now):
        while True:
            try:
                data = self.socket.recv(65536)
            except (BlockingIOError, ConnectionRefusedError):
                return

            self.quic.receive_datagram(data, self.peer, now=now)

    def read_commands(self):
        piece = os.read(sys.stdin.fileno(), 65536)

        if not piece:
            self.ready = False
            self.quic.close(error_code=ErrorCode.H3_NO_ERROR)
            return

        *lines, self.input = (self.input + piece).split(b"\n")

        for line in lines:
            command = json.loads(line)
            getattr(self, "do_" + command.pop("do"))(**command)

    # request N is stream 4 * N, as client-initiated bidirectional streams are

    def do_request(self, id, method, path, body, send, hold):
        stream = self.quic.get_next_available_stream_id()
        assert stream == 4 * id

        if hold:
            self.quic.held.add(stream)

        headers = [(b":method", method.encode()), (b":scheme", b"https"),
                   (b":authority", b"localhost"), (b":path", path.encode())]

        if not body:
            self.http.send_headers(stream, headers, end_stream=True)
            return

        body = body.encode("latin-1")
        headers += [(b"content-type", b"application/json"),
                    (b"content-length", str(len(body)).encode())]

        self.http.send_headers(stream, headers)
        self.http.send_data(stream, body[:send], end_stream=send >= len(body))

    def do_reset(self, id):
        self.quic.stop_stream(4 * id, ErrorCode.H3_REQUEST_CANCELLED)
        self.quic.reset_stream(4 * id, ErrorCode.H3_REQUEST_CANCELLED)

    def do_release(self, id):
        self.quic.held.discard(4 * id)

    def handle(self, event):
        if isinstance(event, events.HandshakeCompleted):
            self.ready = True

        elif isinstance(event, events.StreamReset):
            self.tell(id=event.stream_id // 4, rst=event.error_code)

        elif isinstance(event, events.ConnectionTerminated):
            self.ready = False
            self.tell(closed=f"{event.error_code:#x} {event.reason_phrase}")

        for part in self.http.handle_event(event):
            what = {}

            if isinstance(part, HeadersReceived):
                headers = {name.decode(): value.decode("latin-1")
                           for name, value in part.headers}
                what["status"] = int(headers.pop(":status"))
                what["headers"] = headers

            elif isinstance(part, DataReceived):
                what["data"] = part.data.decode("latin-1")

            if part.stream_ended:
                what["done"] = 1

            self.tell(id=part.stream_id // 4, **what)


Client(int(sys.argv[1]), int(sys.argv[2])).run()

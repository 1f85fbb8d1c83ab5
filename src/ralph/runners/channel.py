"""Messages between ralph and its keeper: JSON and file descriptors over a socket. Standard library only."""

from __future__ import annotations

import json
import os
import socket
import struct


class Channel:
    """One end of the socket. A message is four bytes of length, then JSON; file descriptors may travel with it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = b""
        self._fds: list[int] = []

    def send(self, message: dict[str, object], fds: tuple[int, ...] = ()) -> None:
        body = json.dumps(message).encode("ascii")
        data = struct.pack(">I", len(body)) + body
        if fds:
            sent = socket.send_fds(self.sock, [data[:1]], list(fds))
            data = data[sent:]
        self.sock.sendall(data)

    def receive(self) -> tuple[list[dict[str, object]], list[int]] | None:
        """Reads once: the complete messages and descriptors that have arrived, or None at the end of the stream."""
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, 1 << 16, 8)
        except ConnectionResetError:
            return None
        if not data:
            return None
        self._buffer += data
        for fd in fds:
            os.set_inheritable(fd, False)
        self._fds.extend(fds)
        messages = []
        while len(self._buffer) >= 4:
            (size,) = struct.unpack(">I", self._buffer[:4])
            if len(self._buffer) < 4 + size:
                break
            messages.append(json.loads(self._buffer[4 : 4 + size]))
            self._buffer = self._buffer[4 + size :]
        if not any(message.get("op") == "spawn" for message in messages):
            return messages, []  # the descriptors belong to a spawn message whose body has not arrived yet
        fds, self._fds = self._fds, []
        return messages, fds

"""A line between clients and a daemon over TCP, for tests that cut it."""

import contextlib
import socket
import threading


class Line:
    """A line between clients and a daemon that can be cut."""

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.removeprefix("dns:").rpartition(":")
        self._target = (host, int(port))
        self._open: list[socket.socket] = []
        self._far: list[socket.socket] = []
        self._kept: list[socket.socket] = []
        self._lock = threading.Lock()
        self._broken = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"dns:127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            with self._lock:
                if self._broken:
                    near.close()
                    continue
                far = socket.create_connection(self._target)
                self._open += [near, far]
                self._far.append(far)
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError), self._lock:
                if end not in self._kept:
                    end.shutdown(socket.SHUT_RDWR)

    def cut(self, *, for_good: bool = False, unseen_by_the_daemon: bool = False) -> None:
        with self._lock:
            self._broken = self._broken or for_good
            if unseen_by_the_daemon:
                self._kept += self._far
            for end in self._open:
                if end in self._kept:
                    continue
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
            self._open, self._far = [], []

    def close(self) -> None:
        self.cut(for_good=True)
        for end in self._kept:
            end.close()
        self._listening.close()

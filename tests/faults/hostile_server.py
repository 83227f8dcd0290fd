"""A server that answers each route with given bytes, one after another, whatever is asked."""

import contextlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.harness.measure.conftest import FAKE

sys.path.insert(0, str(FAKE / "sglang"))
import hostile

sys.path.remove(str(FAKE / "sglang"))
BODIES = hostile.BODIES


@contextlib.contextmanager
def answers_with(bodies):
    """``bodies``: route -> the answers to it, of which the last is given again and again; the URL."""
    left = {route: list(answers) for route, answers in bodies.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answers = left[self.path]
            body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

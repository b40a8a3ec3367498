"""A ClickHouse server for tests: the embedded engine behind that part of ClickHouse's HTTP interface that is needed.

A server's binary comes from no package manager that the test machines have. Queries, settings, formats and errors
are a real ClickHouse's; only the transport's far end is ours. Started as a program, by itself or with a directory to
keep its tables in and a port, it prints its port and serves until its standard input ends. User `default` has no
password, user `reader` has `s3cret`.
"""

import base64
import re
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from urllib.parse import parse_qs, urlsplit

import lz4.frame
import zstandard
from chdb import connect

PASSWORDS = {"default": "", "reader": "s3cret"}
DECOMPRESS = {"zstd": zstandard.decompress, "lz4": lz4.frame.decompress}
OF_THE_TRANSPORT = {
    "client_protocol_version", "database", "enable_http_compression", "http_headers_progress_interval_ms", "query",
    "query_id", "send_progress_in_http_headers", "session_id", "wait_end_of_query", "compress", "buffer_size",
}  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine = connect(sys.argv[1] if len(sys.argv) > 1 else ":memory:")
    one_at_a_time = Lock()

    def do_POST(self):
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        given = {name: values[-1] for name, values in query.items()}
        body = self.body()
        user, _, password = (
            base64.b64decode(self.headers.get("Authorization", "")[6:]).decode().partition(":")
        )
        if PASSWORDS.get(user) != password:
            self.reply(
                403,
                f"Code: 516. DB::Exception: {user}: Authentication failed. (AUTHENTICATION_FAILED)".encode(),
            )
            return
        try:
            with self.one_at_a_time:
                self.reply(200, self.run(given, body))
        except RuntimeError as error:
            self.reply(404, str(error).encode())

    def do_GET(self):
        self.do_POST()

    def run(self, given, body):
        if "database" in given:
            self.engine.query(f"USE `{given['database']}`")
        parameters = {
            name.removeprefix("param_"): value for name, value in given.items() if name.startswith("param_")
        }
        settings = {
            n: v for n, v in given.items() if n not in OF_THE_TRANSPORT and not n.startswith("param_")
        }
        clause = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
        if "query" in given:
            sql = given["query"]
        else:  # the driver puts an insert's data behind its query
            head = re.match(rb"INSERT INTO [^\n]* FORMAT \w+\n", body) or re.match(rb".*", body, re.DOTALL)
            sql, body = head[0].decode(), body[head.end() :]
        if insert := re.fullmatch(r"(INSERT INTO .*?)\s+FORMAT (\w+)\s*", sql, re.DOTALL):
            with tempfile.NamedTemporaryFile() as file:
                Path(file.name).write_bytes(body)
                if " FROM input(" in insert[1]:  # the embedded engine has the body in a file
                    of_file = f" FROM file('{file.name}', '{insert[2]}', "
                    select = insert[1].replace(" FROM input(", of_file)
                    return self.engine.query(
                        f"{select} SETTINGS {clause}" if clause else select, "Null"
                    ).bytes()
                from_file = f"{insert[1]} FROM INFILE '{file.name}'" + (
                    f" SETTINGS {clause}" if clause else ""
                )
                return self.engine.query(f"{from_file} FORMAT {insert[2]}", "Null").bytes()
        asked = re.search(r"\bFORMAT (\w+)\s*$", sql)
        return self.engine.query(sql, asked[1] if asked else "TabSeparated", params=parameters).bytes()

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while length := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(length))
                self.rfile.readline()
            self.rfile.readline()
            data = b"".join(parts)
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return DECOMPRESS.get(self.headers.get("Content-Encoding"), bytes)(data)

    def reply(self, status, content):
        self.send_response(status)
        if status != 200:
            self.send_header("X-ClickHouse-Exception-Code", re.search(rb"Code: (\d+)", content)[1].decode())
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    Handler.engine.query("CREATE DATABASE IF NOT EXISTS tidegate")
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_port, flush=True)
        sys.stdin.read()
        server.shutdown()

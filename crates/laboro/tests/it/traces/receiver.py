"""A receiver of OTLP by HTTP: reads requests into the messages of opentelemetry-proto, which refuse what they do not know,
and prints a line of JSON for each span. Prints its address first. Answers 503 while a file `down` is there.

    receiver.py
"""

import base64
import http.server
import json
import os
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def as_protobuf(value):
    """In OTLP identities are hex, where protobuf's JSON has base64."""
    if isinstance(value, list):
        return [as_protobuf(one) for one in value]
    if not isinstance(value, dict):
        return value
    hexes = ("traceId", "spanId", "parentSpanId")
    return {key: base64.b64encode(bytes.fromhex(one)).decode() if key in hexes else as_protobuf(one)
            for key, one in value.items()}


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if os.path.exists("down"):
            self.send_response(503)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/json"), self.path
        request = ExportTraceServiceRequest()
        json_format.ParseDict(as_protobuf(json.loads(body)), request)
        for resource in request.resource_spans:
            service = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    assert len(span.trace_id) == 16 and len(span.span_id) == 8 and len(span.parent_span_id) in (0, 8)
                    assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
                    attributes = {one.key: one.value.int_value or one.value.string_value for one in span.attributes}
                    print(json.dumps({
                        "service": service["service.name"], "name": span.name, "trace": span.trace_id.hex(),
                        "span": span.span_id.hex(), "parent": span.parent_span_id.hex(), "error": span.status.message,
                        "attributes": attributes}), flush=True)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()

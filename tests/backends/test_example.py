"""docs/examples/backend.py: a package of somebody else's brings a provider."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "backend.py"
NORM = {
    "id": "n1",
    "country": "japan",
    "background": "- Guests take off their shoes at the door.",
    "value": "Respect for the home",
    "rule_of_thumb": "Take off your shoes before you enter a home.",
    "story": "A guest slipped off both shoes. Was it fine?",
    "label": "yes",
}


def test_it_is_found_by_its_entry_point_and_judges(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    package = tmp_path / "shout-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shout\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[judge.backends]\nshout = backend:Shout\n")
    (tmp_path / "norms.jsonl").write_text(json.dumps(NORM) + "\n")
    prompts: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompts.append(asked["prompt"])
            reply = {"quote": "slipped off both shoes", "reason": "it does", "answer": "yes"}
            body = json.dumps({"text": json.dumps(reply)}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    words = ["validate", "norms.jsonl", "-m", "shout:loud", "--check", "relevance", "--no-cache"]
    done = subprocess.run(
        [sys.executable, "-m", "judge", *words],
        cwd=tmp_path,
        env={
            "PYTHONPATH": str(tmp_path),
            "SHOUT_URL": f"http://127.0.0.1:{server.server_port}",
            "HOME": str(tmp_path),
        },
        capture_output=True,
        check=False,
    )
    server.shutdown()
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["judge"]["verdict"] == "pass"
    assert prompts and all("JSON schema" in prompt for prompt in prompts)

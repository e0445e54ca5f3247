"""Checks of what judge is made of: licences, known vulnerabilities, a list of the parts.

    .venv/bin/python .ci/supply.py licences
    .venv/bin/python .ci/supply.py advisories TOOLS     # TOOLS: an environment with pip-audit
    .venv/bin/python .ci/supply.py sbom TOOLS OUT       # ... with cyclonedx-bom; writes CycloneDX

Exits with 1 on a finding. Advisories come from PyPI: where it cannot be asked, that is said, and
is no finding, because a change is not to blame for a service that is down.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DISTRIBUTION = "judge-text"
EXTRAS = ("local", "calibrate", "langchain", "parquet", "ray", "tests")
AUDIT_SECONDS = 120
_RULES = Path(__file__).with_name("supply.toml")

_WORDS = {
    "apache": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "psfl": "PSF-2.0",
    "zlib/libpng license": "Zlib",
}
"""What packages write where an SPDX identifier belongs, in small letters."""


def closure(name: str, extras: Iterable[str] = ()) -> dict[str, Distribution]:
    """The installed packages that `name[extras]` needs here, itself included, by canonical name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(name, extra) for extra in ("", *extras)]
    while waiting:
        wanted, extra = waiting.pop()
        key = canonicalize_name(wanted)
        if (key, extra) in seen:
            continue
        seen.add((key, extra))
        try:
            found[key] = distribution(wanted)
        except PackageNotFoundError:
            sys.exit(f"supply: {wanted} is needed and not installed")
        for line in found[key].requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(needed.name, more) for more in ("", *needed.extras)]
    return found


# ---------------------------------------------------------------- licences


def licences(
    packages: Mapping[str, Distribution], rules: Mapping[str, Any]
) -> tuple[list[str], list[str]]:
    """(findings, warnings): packages under a licence that is not allowed, or under none that a
    program can read; and those that are accepted by name."""
    allowed, known, accepted = set(rules["allow"]), rules["known"], rules["accepted"]
    wrong, warnings = [], []
    for name, package in sorted(packages.items()):
        told = known.get(name) or expression(package.metadata)
        if told is None:
            wrong.append(f"{name} {package.version}: no licence that a program can read")
        elif not permitted(told, allowed):
            line = f"{name} {package.version}: {told} is not among those allowed"
            if name in accepted:
                warnings.append(f"{line}; accepted: {accepted[name]}")
            else:
                wrong.append(line)
    return wrong, warnings


def expression(metadata: Any) -> str | None:
    """The SPDX expression of a package's metadata, as far as one can be made out."""
    if found := metadata.get("License-Expression"):
        return str(found)
    listed = [c for c in metadata.get_all("Classifier") or () if c.startswith("License :: ")]
    named = [_spdx(c.rpartition(" :: ")[2]) for c in listed if c.count(" :: ") > 1]
    if named and all(named):
        # Classifiers do not say whether all hold or one may be chosen; all must be allowed.
        return " AND ".join(sorted(set(filter(None, named))))
    # Some put the whole text there, which begins with the licence's name.
    return _spdx((metadata.get("License") or "").strip().partition("\n")[0].strip())


def _spdx(words: str) -> str | None:
    if re.fullmatch(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*", words) and (
        words.lower() not in _WORDS
    ):
        return words
    return _WORDS.get(words.lower())


def permitted(told: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be met with licences that are allowed.

    Raises:
        ValueError: it is none.
    """
    words = re.findall(r"[()]|[^\s()]+", told)

    def either() -> bool:
        found = both()
        while words and words[0].upper() == "OR":
            words.pop(0)
            found = both() or found
        return found

    def both() -> bool:
        found = one()
        while words and words[0].upper() == "AND":
            words.pop(0)
            found = one() and found
        return found

    def one() -> bool:
        if not words:
            raise ValueError(f"{told!r} is no licence expression")
        word = words.pop(0)
        if word == "(":
            found = either()
            if not words or words.pop(0) != ")":
                raise ValueError(f"{told!r} is no licence expression")
            return found
        if words and words[0].upper() == "WITH":
            word = " ".join((word, words.pop(0), words.pop(0)))
        return word in allowed

    found = either()
    if words:
        raise ValueError(f"{told!r} is no licence expression")
    return found


# ---------------------------------------------------------------- advisories


def advisories(
    report: Mapping[str, Any], ignored: Iterable[Mapping[str, Any]], today: date
) -> tuple[list[str], list[str]]:
    """(findings, warnings) of what pip-audit reports as JSON."""
    findings, unasked, passed = [], [], set()
    by_id = {one["id"]: one for one in ignored}
    packages = report["dependencies"]
    for package in packages:
        if "skip_reason" in package:
            unasked.append(package["name"])
        for found in package.get("vulns", ()):
            names = {found["id"], *found.get("aliases", ())}
            rule = next((by_id[name] for name in sorted(names) if name in by_id), None)
            told = f"{package['name']} {package['version']}: {', '.join(sorted(names))}"
            if rule is None:
                mended = ", ".join(found.get("fix_versions", ())) or "no version yet"
                findings.append(f"{told}; mended in {mended}")
            elif rule["until"] < today:
                findings.append(f"{told}: ignored until {rule['until']}, which is past")
            else:
                passed.add(rule["id"])
    warnings = [f"{name} is ignored, and nothing has it" for name in sorted({*by_id} - passed)]
    asked = len(packages) - len(unasked)
    if not asked:
        warnings.append(UNREACHABLE.format("it knows none of the packages here"))
    elif unasked:
        warnings.append(f"{asked} of {len(packages)} were looked up, not {', '.join(unasked)}")
    return findings, warnings


UNREACHABLE = "NOTHING WAS LOOKED UP: PyPI's advisories cannot be reached ({})"


def audit(tools: Path) -> Mapping[str, Any] | str:
    """pip-audit's report on this environment, or why there is none.

    Raises:
        RuntimeError: it was called wrongly, or ended in a way that is none of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        command = [str(tools / "bin" / "pip-audit"), "-f", "json", "-o", str(out)]
        command += ["--progress-spinner", "off", "--skip-editable", "--timeout", "10"]
        for place in sys.path:
            if place.endswith("-packages"):
                command += ["--path", place]
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=AUDIT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {AUDIT_SECONDS} s"
        if out.is_file() and out.stat().st_size:
            report: Mapping[str, Any] = json.loads(out.read_text("utf-8"))
            return report
    last = (ended.stderr.strip().splitlines() or [""])[-1]
    if re.search(r"connect|timed? ?out|name resolution|service|HTTP", last, re.IGNORECASE):
        return last
    raise RuntimeError(f"pip-audit ended with {ended.returncode}: {ended.stderr.strip()[-2000:]}")


# ---------------------------------------------------------------- parts


def sbom(tools: Path, out: Path, packages: Mapping[str, Distribution]) -> int:
    """Write the parts list of `packages` in CycloneDX's JSON form; gives how many there are."""
    command = [str(tools / "bin" / "cyclonedx-py"), "environment", sys.executable, "--of", "JSON"]
    command += ["--no-validate", "--output-reproducible"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    whole = json.loads(made.stdout)
    whole["components"] = [
        one for one in whole["components"] if canonicalize_name(one["name"]) in packages
    ]
    kept = {one["bom-ref"] for one in whole["components"]}
    whole["dependencies"] = [
        {**one, "dependsOn": [ref for ref in one.get("dependsOn", ()) if ref in kept]}
        for one in whole.get("dependencies", ())
        if one["ref"] in kept
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n", "utf-8")
    return len(kept)


def main() -> int:
    rules = tomllib.loads(_RULES.read_text("utf-8"))
    wanted, say = sys.argv[1], _say
    if wanted == "licences":
        packages = closure(DISTRIBUTION, EXTRAS)
        findings, warnings = licences(packages, rules["licences"])
        for warning in warnings:
            say(f"WARNING: {warning}")
        say(f"{len(packages)} packages, {len(findings)} under licences that are not allowed")
    elif wanted == "advisories":
        found = audit(Path(sys.argv[2]))
        if isinstance(found, str):
            say(f"WARNING: {UNREACHABLE.format(found)}")
            return 0
        findings, warnings = advisories(found, rules.get("ignore", ()), date.today())
        for warning in warnings:
            say(f"WARNING: {warning}")
        asked = sum("skip_reason" not in one for one in found["dependencies"])
        say(f"{asked} packages looked up, {len(findings)} known vulnerabilities")
    else:
        out = Path(sys.argv[3])
        say(f"{sbom(Path(sys.argv[2]), out, closure(DISTRIBUTION, EXTRAS))} parts in {out}")
        return 0
    for finding in findings:
        say(finding)
    return 1 if findings else 0


def _say(text: str) -> None:
    sys.stdout.write(f"ci: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

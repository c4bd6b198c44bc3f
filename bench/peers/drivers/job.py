"""Shared code of the drivers; runs in a peer's environment: standard library only."""

import json
import os
import resource
import sys
import time
import urllib.request
from contextlib import contextmanager

_PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
_MIN_CHILD_CPU_S = 0.2  # children with less CPU time (in seconds) are ignored
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
STARTED = time.perf_counter()


class DriverJob:
    """One action for one package, read from the job file that `bench.peers` wrote."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self._fields = json.load(file)
        self.result = {"action": self.action}
        os.environ["OPENAI_API_KEY"] = self.api_key or "none"
        os.environ["OPENAI_BASE_URL"] = os.environ["OPENAI_API_BASE"] = self.base_url
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"

    def __getattr__(self, name):
        try:
            return self.__dict__["_fields"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def texts(self):
        return [row["text"] for row in self.documents]

    @property
    def ids(self):
        return [str(row["id"]) for row in self.documents]

    @property
    def documents(self):
        return _read_jsonl(self.documents_file)

    @property
    def questions(self):
        return _read_jsonl(self.questions_file)

    @contextmanager
    def measure_time(self, name="work"):
        """Record wall and CPU seconds of a code block."""
        wall, cpu = time.perf_counter(), _cpu_seconds()
        yield
        self.result[name + "_s"] = round(time.perf_counter() - wall, 3)
        self.result[name + "_cpu_s"] = round(_cpu_seconds() - cpu, 3)

    def ask_questions(self, method, question):
        """Run `question(text)`, which returns ranked passage texts or ids, on every question."""
        by_text = {_normalize_space(row["text"]): str(row["id"]) for row in self.documents}
        known = set(by_text.values())
        seconds, cpus, lines = [], [], []
        before = self._read_usage()
        for row in self.questions:
            wall, cpu = time.perf_counter(), time.process_time()
            found = question(row["question"])
            seconds.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
            before, cost = (after := self._read_usage()), _usage_difference(before, after)
            ranked = [
                one if one in known else by_text.get(_normalize_space(one), "") for one in found
            ]
            lines.append(
                {
                    "package": self.package,
                    "method": method,
                    "id": row["id"],
                    "passages": list(dict.fromkeys(filter(None, ranked)))[: self.top],
                    "seconds": round(seconds[-1], 4),
                    **({"usage": cost} if cost else {}),
                }
            )
        with open(self.records_file, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        self.result.setdefault("methods", {})[method] = {
            "p50_ms": _median_ms(seconds),
            "cpu_p50_ms": _median_ms(cpus),
            "questions": len(seconds),
            "with_passages": sum(bool(line["passages"]) for line in lines),
        }

    def _read_usage(self):
        """Read the endpoint's usage totals; None without a counting proxy."""
        if not self.usage_url:
            return None
        with _OPENER.open(self.usage_url, timeout=30) as reply:
            return json.load(reply)

    def write_result(self):
        """Write the result file."""
        mine, children = (resource.getrusage(who) for who in _PROCESSES)
        # A short-lived child is briefly a copy of its parent: do not count its memory.
        worked = children.ru_utime > _MIN_CHILD_CPU_S
        self.result["peak_mb"] = round((mine.ru_maxrss + worked * children.ru_maxrss) / 1024)
        self.result["process_s"] = round(time.perf_counter() - STARTED, 2)
        with open(self.result_file, "w", encoding="utf-8") as file:
            json.dump(self.result, file)


def _usage_difference(before, after):
    """Return the difference; without tokens if a reply had no usage."""
    if before is None or after is None:
        return None
    spent = {name: after[name] - before[name] for name in after}
    known = ["calls"] if spent["unreported"] else ["calls", "prompt_tokens", "completion_tokens"]
    return {name: spent[name] for name in known}


def _cpu_seconds():
    """CPU seconds, including finished child processes."""
    used = [resource.getrusage(who) for who in _PROCESSES]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _read_jsonl(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _normalize_space(text):
    return " ".join(str(text).split())


def _median_ms(values):
    ranked = sorted(values)
    return round(ranked[len(ranked) // 2] * 1000, 2) if ranked else 0.0


def run(main):
    """Run a driver on the job named on the command line."""
    job = DriverJob(sys.argv[1])
    main(job)
    job.write_result()

"""What a job of Snakemake needs, in the words of the hub."""

from __future__ import annotations

from typing import Any, Dict

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

_GPUS = ("gpu", "gpus", "nvidia_gpu", "amd_gpu")


def needs(job: JobExecutorInterface) -> Dict[str, Any]:
    """Of a group it is what Snakemake has added up for all of it."""
    have = job.resources
    task: Dict[str, Any] = {"slots": max(1, int(have.get("_cores", job.threads)))}
    if isinstance(have.get("mem_mib"), int):
        task["memory_bytes"] = have["mem_mib"] << 20
    elif isinstance(have.get("mem_mb"), int):
        task["memory_bytes"] = have["mem_mb"] * 1_000_000
    if isinstance(have.get("runtime"), int):
        task["timeout_ms"] = have["runtime"] * 60_000
    resources = {"gpu": count for name in _GPUS for count in [have.get(name)] if isinstance(count, int) and count}
    resources.update(_counts(have.get("laboro_resources")))
    if resources:
        task["resources"] = resources
    if have.get("laboro_tags"):
        task["tags"] = str(have["laboro_tags"]).replace(",", " ").split()
    if isinstance(have.get("laboro_priority"), int):
        task["priority"] = have["laboro_priority"]
    return task


def _counts(text: Any) -> Dict[str, int]:
    """``laboro_resources="licence=2 fpga=1"``"""
    counts = {}
    for word in str(text or "").replace(",", " ").split():
        name, _, count = word.partition("=")
        if not name or not count.isdigit():
            raise WorkflowError(f"laboro_resources={text!r}: write NAME=COUNT, separated by spaces")
        counts[name] = int(count)
    return counts

"""Snakemake on a hub: ``snakemake --executor laboro``.

A workflow is one open job of the hub, each of its jobs or groups a task. One stream tells of all ends, so nothing is
polled; what a job printed is kept by the hub (``laboro logs 12/3``), and that of failed ones in a file beside the logs of
Snakemake.
"""

# Not with `from __future__ import annotations`: Snakemake makes its options of the types of the settings.

import asyncio
import hashlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, AsyncGenerator, Dict, List, Optional, Set

from laboro_hub import Hub, HubError, LaboroError
from laboro_hub._open_job import CANCELLED, DONE, OUTCOMES, End, OpenJob
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

from ._needs import needs

#: Where what failed jobs printed is written, below the working directory.
LOGS = Path(".snakemake", "laboro_logs")

#: Which tasks are under way.
NOTES = Path(".snakemake", "laboro_tasks")

#: What is kept of what they printed.
_LOG_BYTES_MAX = 1 << 20


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    access: Optional[Path] = field(
        default=None, metadata={"help": "Access file of the hub. Default: the hub that `laboro jobs` would use."}
    )
    dir: Optional[Path] = field(
        default=None, metadata={"help": "Directory of the hub on this machine, in place of an access file."}
    )
    group: Optional[str] = field(default=None, metadata={"help": "Group of the hub whose workers run the jobs."})
    name: str = field(default="snakemake", metadata={"help": "Name of the job at the hub."})


common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    pass_envvar_declarations_to_cmd=True,
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=0,
)


class Executor(RemoteExecutor):
    def __post_init__(self) -> None:
        settings = self.workflow.executor_settings
        try:
            self.hub = Hub(settings.access, dir=settings.dir)
            self.open_job = OpenJob(self.hub.transport, name=settings.name, group=settings.group)
        except LaboroError as error:
            raise WorkflowError(str(error)) from error
        self.logger.info(f"Job {self.open_job.number} of the hub: see `laboro tasks {self.open_job.number}`.")
        self._sent = 0
        self._waiting: Set[int] = set()
        self._ended: Dict[int, End] = {}
        self._failure: Optional[BaseException] = None
        self._ends_lock = threading.Lock()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    # Jobs on their way to the hub.

    def run_jobs(self, jobs: List[JobExecutorInterface]) -> None:
        """All that are ready go in one request; where the hub refuses that, one by one."""
        for job in jobs:
            self._end_earlier(job)
            self.run_job_pre(job)
        tasks = [self._task(job) for job in jobs]
        try:
            self._submit(jobs, tasks)
        except HubError as refused:
            if len(jobs) == 1:
                self.report_job_error(SubmittedJobInfo(jobs[0]), msg=f"The hub refused the job: {refused}. ")
                return
            for job, task in zip(jobs, tasks):
                try:
                    self._submit([job], [task])
                except HubError as error:
                    self.report_job_error(SubmittedJobInfo(job), msg=f"The hub refused the job: {error}. ")

    def run_job(self, job: JobExecutorInterface) -> None:
        self.run_jobs([job])

    def _submit(self, jobs: List[JobExecutorInterface], tasks: List[Dict[str, Any]]) -> None:
        self.open_job.add(tasks, len(tasks), self._sent)
        for job in jobs:
            self._sent += 1
            with self._ends_lock:
                if self._sent not in self._ended:
                    self._waiting.add(self._sent)
            task = f"{self.open_job.number}/{self._sent}"
            _note(job).parent.mkdir(parents=True, exist_ok=True)
            _note(job).write_text(task)
            self.report_job_submission(SubmittedJobInfo(job, external_jobid=task, aux={"task": self._sent}))

    def _task(self, job: JobExecutorInterface) -> Dict[str, Any]:
        name = f"{job.name}-{job.jobid}-{job.attempt}@{self.open_job.number}"
        return {"name": name, "command": self.format_job_exec(job), "dir": os.getcwd(), **needs(job)}

    def _end_earlier(self, job: JobExecutorInterface) -> None:
        """Tasks of a Snakemake that was killed go on, and would write the files that this job writes."""
        try:
            number, _, place = _note(job).read_text().partition("/")
            there = self.hub.request("GET", f"jobs/{number}/tasks/{place}")
            # Another hub may have another task of that number.
            is_it = there["name"].startswith(f"{job.name}-") and there["work"].get("dir") == os.getcwd()
            if is_it and there["state"] not in ("done", "failed", "cancelled"):
                self.logger.info(f"Cancelling task {number}/{place} of an earlier run.")
                self.hub.request("POST", f"jobs/{number}/cancel", {"tasks": place})
        except (FileNotFoundError, HubError):
            return

    # Their ends.

    def _listen(self) -> None:
        try:
            for end in self.open_job.ends(self._first_awaited):
                if end is not None:
                    with self._ends_lock:
                        self._waiting.discard(end[0])
                        self._ended[end[0]] = end
        except BaseException as error:  # Told where Snakemake looks for it.
            self._failure = error

    def _first_awaited(self) -> int:
        with self._ends_lock:
            return min(self._waiting, default=self._sent + 1)

    async def check_active_jobs(
        self, active_jobs: List[SubmittedJobInfo]
    ) -> AsyncGenerator[SubmittedJobInfo, None]:
        if active_jobs and self._failure is not None:
            raise WorkflowError(f"the hub cannot be asked any more: {self._failure}")
        for info in active_jobs:
            end = self._ended.get(info.aux["task"])
            if end is None:
                yield info
                continue
            _note(info.job).unlink(missing_ok=True)
            if end[1] == DONE:
                self.report_job_success(info)
            else:
                log = await asyncio.to_thread(self._keep_log, info)
                self.report_job_error(info, msg=_words(info, end), aux_logs=[str(log)] if log else [])

    async def sleep(self) -> None:
        # Looking costs nothing: the ends are here already.
        await asyncio.sleep(0.1)

    def _keep_log(self, info: SubmittedJobInfo) -> Optional[Path]:
        try:
            text = self.hub.job(self.open_job.number).output(info.aux["task"])
            log = LOGS / f"{info.external_jobid.replace('/', '-')}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_bytes(text[-_LOG_BYTES_MAX:])
            return log.absolute()
        except (LaboroError, OSError) as error:
            self.logger.warning(f"The output of task {info.external_jobid} cannot be had: {error}")
            return None

    # The end of all.

    def cancel_jobs(self, active_jobs: List[SubmittedJobInfo]) -> None:
        self.open_job.cancel(info.aux["task"] for info in active_jobs)

    def shutdown(self) -> None:
        super().shutdown()
        try:
            self.open_job.close()
        except LaboroError as error:
            self.logger.warning(f"Job {self.open_job.number} stays open: {error}")
        self.open_job.stop()
        self._listener.join()


def _note(job: JobExecutorInterface) -> Path:
    """Says which task makes the output of a job, as long as it is not over. Snakemake's own note of that is overwritten by
    the Snakemake that runs in the task."""
    outputs = "\0".join([job.name, *sorted(map(str, job.output))])
    return NOTES / hashlib.sha256(outputs.encode()).hexdigest()[:32]


def _words(info: SubmittedJobInfo, end: End) -> str:
    _, state, _, outcome, code, _, _ = end
    how = "was cancelled" if state == CANCELLED else f"failed: {OUTCOMES.get(outcome, 'exit')} {code}"
    return f"Task {info.external_jobid} {how}; `laboro logs {info.external_jobid}` shows what it printed. "

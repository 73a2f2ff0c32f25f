"""Parsl on a hub: ``Config(executors=[LaboroExecutor()])`` runs the apps of a Parsl program at the workers of a hub."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Callable, Dict, List, Optional

from parsl.data_provider.staging import Staging
from parsl.executors.base import ParslExecutor
from parsl.executors.errors import InvalidResourceSpecification
from parsl.monitoring.radios.filesystem import FilesystemRadio
from parsl.utils import RepresentationMixin

from .executor import Executor


class LaboroExecutor(ParslExecutor, RepresentationMixin):
    """An executor of Parsl.

    :param label: what Parsl calls it.
    :param access, dir: the hub, as for :class:`laboro_hub.Executor`; the one that the command line would use if neither
        is given.
    :param local: so many slots of a hub of its own on this machine, in place of a hub that is there.
    :param storage_access, working_dir: Parsl's own, for files that it stages.
    :param options: further ones of :class:`laboro_hub.Executor`, such as ``group``, ``python`` and ``env``.

    Apps may have ``parsl_resource_specification={"cores": 2, "memory": 1000, "gpus": 1, "priority": 3}``, memory in MB,
    and ``"running_time_min"``, the minutes that a call may take.
    """

    def __init__(
        self,
        label: str = "laboro",
        access: Optional[str] = None,
        dir: Optional[str] = None,
        local: Optional[int] = None,
        storage_access: Optional[List[Staging]] = None,
        working_dir: Optional[str] = None,
        options: Optional[Dict[str, Any]] = None,
    ) -> None:
        super().__init__()
        self.label = label
        self.access, self.dir, self.local = access, dir, local
        self.storage_access, self.working_dir = storage_access, working_dir
        self.options = options
        self.remote_monitoring_radio = FilesystemRadio()
        self.executor: Optional[Executor] = None

    def start(self) -> None:
        super().start()
        options = {"name": f"parsl {self.label}", **(self.options or {})}
        if self.local is not None:
            self.executor = Executor.local(self.local, **options)
        else:
            self.executor = Executor(self.access, dir=self.dir, **options)

    def submit(
        self, func: Callable[..., Any], resource_specification: Dict[str, Any], *args: Any, **kwargs: Any
    ) -> Future:
        assert self.executor is not None, "Parsl starts an executor before it submits to it"
        needs = _needs(resource_specification)
        return self.executor.using(**needs).submit(func, *args, **kwargs)

    def shutdown(self) -> None:
        if self.executor is not None:
            self.executor.shutdown()
        super().shutdown()


def _needs(specification: Dict[str, Any]) -> Dict[str, Any]:
    known = {"cores", "memory", "gpus", "priority", "running_time_min"}
    unknown = set(specification) - known
    if unknown:
        raise InvalidResourceSpecification(unknown, f"known are {', '.join(sorted(known))}")
    needs: Dict[str, Any] = {}
    if "cores" in specification:
        needs["slots"] = int(specification["cores"])
    if "memory" in specification:
        needs["memory_bytes"] = int(specification["memory"] * 1_000_000)
    if specification.get("gpus"):
        needs["resources"] = {"gpu": specification["gpus"]}
    if "priority" in specification:
        needs["priority"] = int(specification["priority"])
    if "running_time_min" in specification:
        needs["timeout"] = 60.0 * specification["running_time_min"]
    return needs

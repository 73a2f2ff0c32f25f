"""joblib on a hub: after ``register_joblib()``, ``parallel_config(backend="laboro")`` runs there."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Optional
from urllib.parse import quote

from .executor import CallFuture, Executor


def register_joblib(executor: Optional[Executor] = None, *, slots: Optional[int] = None) -> None:
    """Registers the backend ``laboro``. Without an executor each use makes one with the usual hub.

    ``slots`` is what ``n_jobs=-1`` means: how many calls run at once.
    """
    from joblib import register_parallel_backend
    from joblib._parallel_backends import AutoBatchingMixin, ParallelBackendBase

    class LaboroBackend(AutoBatchingMixin, ParallelBackendBase):
        supports_sharedmem = False
        supports_retrieve_callback = True
        uses_threads = False
        default_n_jobs = -1

        def configure(self, n_jobs: int = 1, parallel: Any = None, **options: Any) -> int:
            self.parallel = parallel
            self._own = executor is None
            self._options = options
            self._executor = executor or Executor(**options)
            self._calls: "weakref.WeakSet[CallFuture]" = weakref.WeakSet()
            return self.effective_n_jobs(n_jobs)

        def effective_n_jobs(self, n_jobs: int) -> int:
            most = slots or _slots(getattr(self, "_executor", executor))
            if n_jobs == 0:
                raise ValueError("n_jobs == 0 in Parallel has no meaning")
            if n_jobs is None:
                return most
            return n_jobs if n_jobs > 0 else max(1, most + 1 + n_jobs)

        def submit(self, func: Callable[[], Any], callback: Optional[Callable] = None) -> Any:
            future = self._executor.submit(func)
            self._calls.add(future)
            if callback is not None:
                future.add_done_callback(callback)
            return future

        def apply_async(self, func: Callable[[], Any], callback: Optional[Callable] = None) -> Any:
            return self.submit(func, callback)

        def retrieve_result_callback(self, future: Any) -> Any:
            return future.result()

        def abort_everything(self, ensure_ready: bool = True) -> None:
            """After an error or Ctrl-C: what is still to come of this Parallel is not wanted any more."""
            for future in list(self._calls):
                future.cancel()
            if self._own:
                self._executor.shutdown(wait=False, cancel_futures=True)
                if ensure_ready:
                    self.configure(self.parallel.n_jobs, self.parallel, **self._options)

        def terminate(self) -> None:
            if getattr(self, "_own", False):
                self._executor.shutdown(wait=False)

    register_parallel_backend("laboro", LaboroBackend)


def _slots(executor: Optional[Executor]) -> int:
    if executor is None:
        return 1
    if executor._local is not None:
        return executor._local.slots
    of_group = f"&group={quote(executor._group)}" if executor._group else ""
    workers = executor._transport.request("GET", f"workers?limit=1000{of_group}")["workers"]
    return max(1, sum(worker["slots"] for worker in workers if worker["connected"]))

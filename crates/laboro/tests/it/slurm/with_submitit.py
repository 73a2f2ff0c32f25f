"""submitit against our commands: single jobs, an array, a failure, and what it says of states."""

import sys

import submitit


def square(number):
    return number * number


def fail():
    raise ValueError("on purpose")


executor = submitit.AutoExecutor(folder=sys.argv[1], cluster="slurm")
executor.update_parameters(timeout_min=2, slurm_array_parallelism=3, cpus_per_task=1)
single = executor.submit(square, 7)
many = executor.map_array(square, range(6))
bad = executor.submit(fail)
assert single.result() == 49
assert [job.result() for job in many] == [0, 1, 4, 9, 16, 25]
try:
    bad.result()
except Exception as error:
    assert "on purpose" in str(error), error
else:
    raise AssertionError("it did not fail")
assert single.state == "COMPLETED", single.state
print("submitit ok")

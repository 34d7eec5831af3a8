"""Workers as real processes: killed, raising, hanging, interrupted, forgotten. Each case ends soon and leaves nobody."""

import os
import signal
import subprocess
import sys
import time

import pytest

PRELUDE = """
import os, signal, sys, time, threading
import mortice as mt
from mortice.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

class Data(Dataset):
    def __init__(self, kind="", size=4, n=400):
        self.kind, self.size, self.n = kind, size, n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        if i == 40:
            if self.kind == "raise":
                raise ZeroDivisionError("item 40 is broken")
            if self.kind == "exit":
                os._exit(7)
            if self.kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.kind == "hang":
                time.sleep(1000)
            if self.kind == "stubborn":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                while True:
                    time.sleep(1)
        if self.kind == "slow":
            time.sleep(0.05)
        return mt.full((self.size,), float(i))

CONTEXT = sys.argv[1]
def loader(*args, **options):
    options = {"batch_size": 4, "num_workers": 4, "multiprocessing_context": CONTEXT, **options}
    return DataLoader(Data(*args), **options)
def pids(it):
    return [p.pid for p in it._pool.processes]
def main():
"""
CALL = """
if __name__ == "__main__":
    import warnings
    warnings.simplefilter("ignore")
    main()
"""


def living(session: int) -> list[str]:
    """Return the processes of a session that have not ended."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
                with open(f"/proc/{name}/cmdline") as file:
                    command = file.read().replace("\0", " ")
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] not in "ZX" and "resource_tracker" not in command:
                found.append(f"{name}: {command}")
    return found


class Run:
    """A script in a session of its own."""

    def __init__(self, folder, body, context):
        script = folder / "script.py"
        script.write_text(PRELUDE + "".join(f"    {line}\n" for line in body.strip().splitlines()) + CALL)
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-Wdefault::ResourceWarning", str(script), context], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def until(self, word):
        """Read its output up to a line, and return that line."""
        for line in self.process.stdout:
            if line.startswith(word):
                return line
        raise AssertionError(self.process.stderr.read())

    def end(self, within=5.0):
        """Wait for its end, check that nobody is left, and return its output and errors."""
        started = time.monotonic()
        try:
            out, err = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        took = time.monotonic() - started
        while (left := living(self.process.pid)) and time.monotonic() - started < within:
            time.sleep(0.05)
        try:
            assert not left, left
            assert took < within, f"{took} seconds"
        finally:
            if left:
                os.killpg(self.process.pid, signal.SIGKILL)
        assert not any(word in err for word in ("leaked", "resource_tracker", "Exception ignored", "unclosed")), err
        return out, err


linux = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc, which is not here")
pytestmark = linux
contexts = pytest.mark.parametrize("context", ["fork", "spawn"])
FAILURES = {
    "raise": "ZeroDivisionError: Caught ZeroDivisionError in DataLoader worker process 2.",
    "exit": r"exited unexpectedly: exit code 7",
    "kill": r"exited unexpectedly: killed by SIGKILL",
}


@contexts
@pytest.mark.parametrize("kind", FAILURES)
def test_a_worker_that_fails_ends_the_loop_with_its_error(tmp_path, context, kind):
    run = Run(tmp_path, f"print('begin')\nfor batch in loader({kind!r}): pass", context)
    run.until("begin")
    _, err = run.end(within=5 if context == "fork" else 15)  # spawned workers import everything first
    assert FAILURES[kind] in err, err
    assert run.process.returncode == 1
    if kind == "raise":
        assert "Original Traceback" in err and "item 40 is broken" in err and "in __getitem__" in err
    else:
        assert "RuntimeError: DataLoader worker (pid(s) " in err


@contexts
def test_a_worker_killed_from_outside_is_noticed(tmp_path, context):
    run = Run(tmp_path, "it = iter(loader('slow'))\nnext(it)\nprint('pid', pids(it)[3])\nfor batch in it: pass", context)
    pid = int(run.until("pid").split()[1])
    os.kill(pid, signal.SIGKILL)
    _, err = run.end()
    assert f"DataLoader worker (pid(s) {pid}) exited unexpectedly: killed by SIGKILL" in err


@contexts
@pytest.mark.parametrize("whole_group", [False, True], ids=["parent", "group"])
@pytest.mark.seed("CU05")
def test_ctrl_c_ends_everything(tmp_path, context, whole_group):
    run = Run(tmp_path, "it = iter(loader('slow'))\nnext(it)\nprint('go')\nfor batch in it: pass", context)
    run.until("go")
    time.sleep(0.2)
    (os.killpg if whole_group else os.kill)(run.process.pid, signal.SIGINT)
    _, err = run.end()
    assert err.rstrip().endswith("KeyboardInterrupt") and err.count("Traceback") == 1, err
    assert run.process.returncode == -signal.SIGINT


@pytest.mark.seed("CU05")
def test_ctrl_c_while_workers_hang_ends_everything(tmp_path):
    run = Run(tmp_path, "it = iter(loader('stubborn'))\nprint('go')\nfor batch in it: pass", "fork")
    run.until("go")
    time.sleep(0.7)
    os.killpg(run.process.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in run.end()[1]


@pytest.mark.parametrize("kind", ["hang", "stubborn"])
def test_a_worker_that_hangs_times_out(tmp_path, kind):
    run = Run(tmp_path, f"print('go')\nfor batch in loader({kind!r}, timeout=1): pass", "fork")
    run.until("go")
    _, err = run.end()
    assert "RuntimeError: DataLoader timed out after 1 seconds" in err


@pytest.mark.parametrize(("context", "persistent"), [("fork", False), ("fork", True), ("spawn", False)])
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("for batch in data: break\nassert gone() or data.persistent_workers", None),
        ("for batch in data: raise KeyError('mine')", "KeyError: 'mine'"),
        ("it = iter(data)\nnext(it)\ndel it\nassert gone() or data.persistent_workers", None),
        ("it = iter(data)\nnext(it)\ncycle = [it]\ncycle.append(cycle)\ndel it, cycle\nimport gc\ngc.collect()\n"
         "assert gone() or data.persistent_workers", None),
        ("global it\nit = iter(data)\nnext(it)", None),
        ("global it\nit = iter(data)\nnext(it)\nsys.exit(3)", None),
        ("thread = threading.Thread(target=lambda: [next(iter(data)), time.sleep(0.2)])\nthread.start()\nthread.join()", None),
    ],
    ids=["break", "consumer raises", "dropped", "garbage", "end of the script", "sys.exit", "thread"],
)  # fmt: skip
def test_a_loop_that_is_left_early_leaves_nobody(tmp_path, context, persistent, body, error):
    head = (
        f"data = loader('slow', num_workers=2, persistent_workers={persistent})\n"
        "import multiprocessing\ngone = lambda: not multiprocessing.active_children()\nprint('go')\n"
    )
    run = Run(tmp_path, head + body, context)
    run.until("go")
    _, err = run.end(within=5 if context == "fork" else 15)
    assert (error in err) if error else err == "", err


@contexts
@pytest.mark.seed("CU05")
def test_workers_of_a_parent_that_was_killed_end(tmp_path, context):
    run = Run(tmp_path, "it = iter(loader('hang'))\nnext(it)\nprint('go')\nfor batch in it: pass", context)
    run.until("go")
    time.sleep(0.5)
    os.kill(run.process.pid, signal.SIGKILL)
    run.end()


def test_workers_of_two_loaders_at_once_end_when_the_parent_is_killed(tmp_path):
    body = "a, b = iter(loader('slow')), iter(loader('slow'))\nnext(a), next(b)\nprint('go')\ntime.sleep(100)"
    run = Run(tmp_path, body, "fork")
    run.until("go")
    os.kill(run.process.pid, signal.SIGKILL)
    run.end()


def test_shared_memory_and_open_files_do_not_pile_up(tmp_path):
    body = """
def files():
    return len(os.listdir("/proc/self/fd"))
def mapped():
    return sum("mortice-batch" in line for line in open("/proc/self/maps"))
before, shm = files(), set(os.listdir("/dev/shm"))
data = loader("", 100000, 200, num_workers=2)
for batch in data: pass
most = max(mapped() for batch in data)
assert 0 < most <= 8, most
kept = list(data)
assert files() <= before + 60, files() - before
assert all(b.tolist()[k][-1] == 4 * i + k for i, b in enumerate(kept) for k in (0, 3))
del batch, kept
import gc; gc.collect()
assert files() == before and mapped() == 0, (files(), before, mapped())
left = set(os.listdir("/dev/shm")) - shm
for _ in range(200):  # what other programs hold there for a moment does not count
    if not left: break
    time.sleep(0.05)
    left &= set(os.listdir("/dev/shm"))
assert not left, left
print("fine")
"""
    run = Run(tmp_path, body, "fork")
    out, err = run.end(within=60)
    assert out == "fine\n" and err == "", err

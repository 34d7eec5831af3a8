"""The command line: `python -m mortice` says what there is, `backends` lists the backends, `summary` shows a model's layers."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import textwrap
import warnings
from typing import Any

from mortice.backends import plugins
from mortice.backends.kernels import FreeKernels
from mortice.dtype import DTYPES
from mortice.version import release

_ABOUT = "An array framework with PyTorch's API whose backends are plugins."


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m mortice", description=_ABOUT)
    parser.add_argument("--version", action="version", version=f"mortice {release}")
    commands = parser.add_subparsers(dest="command", title="commands")
    listing = commands.add_parser("backends", help="list the backends, and each broken plugin with the reason")
    listing.add_argument("-v", "--verbose", action="store_true", help="name the kernels that each backend overrides")
    listing.add_argument("--json", action="store_true", help="print JSON")
    shown = commands.add_parser(
        "summary", help="show a model's layers: output shapes, parameters, multiply-adds, memory"
    )
    shown.add_argument(
        "model", metavar="MODULE:CALLABLE", help="a module, or what makes one, such as package.models:Net or net.py:net"
    )
    shown.add_argument(
        "--input", action="append", required=True, metavar="[NAME=]SIZE[:DTYPE]",
        help="the size of an input, such as 1,3,224,224 or 8,128:int64; once for each input",
    )  # fmt: skip
    shown.add_argument("--backend", help="the backend to make and run it on")
    shown.add_argument("--device", help="the device of the inputs, and where the model is moved")
    shown.add_argument("--depth", type=int, help="how deep modules are shown")
    shown.add_argument(
        "--mode", choices=("eval", "train", "same"), default="eval", help="the modules' mode; eval by default"
    )
    shown.add_argument("--json", action="store_true", help="print JSON")
    ran = commands.add_parser("run", help="run a script written for PyTorch, in which `import torch` gives mortice")
    ran.add_argument(
        "--random", choices=("mt19937", "philox"), default="mt19937", dest="engine",
        help="what a seed gives: PyTorch's numbers on the CPU (mt19937, the default), or mortice's, faster and the same everywhere",
    )  # fmt: skip
    ran.add_argument(
        "--type-promotion", choices=("pytorch", "standard"), default="pytorch",
        help="whether tensors without dims count less where dtypes meet, as in PyTorch (the default), or as much as any",
    )  # fmt: skip
    ran.add_argument("-m", dest="module", action="store_true", help="run a module by its name, as `python -m` does")
    ran.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="the script, or the module, and its arguments")
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        print(f"mortice {release}\n")
        parser.print_help()
        return 0
    if arguments.command == "summary":
        from mortice.utils.summary import command

        return command(arguments)
    if arguments.command == "run":
        from mortice.utils.as_torch import run

        if not arguments.script:
            ran.error("expected a script; got none.")
        if not arguments.module and not os.path.exists(arguments.script[0]):
            ran.error(f"no such file: {arguments.script[0]}")
        run(
            arguments.script, module=arguments.module, engine=arguments.engine,
            type_promotion=arguments.type_promotion,
        )  # fmt: skip
        return 0
    # What a plugin prints while it loads must not end up in the listing.
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = survey()
    print(json.dumps(found, indent=2) if arguments.json else text(found, arguments.verbose))
    return 0


def survey() -> dict[str, Any]:
    """Load every backend and return what is known of it, as JSON takes it. No plugin can make this fail."""
    found: dict[str, Any] = {"mortice": release, "api": plugins.API, "default": None, "problem": "", "backends": []}
    try:
        found["default"] = plugins.default_backend()
    except Exception as error:
        found["problem"] = str(error)
    broken = [_broken(entry) for entry in plugins.broken()]
    for name in plugins.list_backends():
        entry = plugins.entries()[name]
        assert entry.info is not None
        try:
            working = {**_identity(entry), **_inspect(plugins.load(name), entry)}
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            reason = "" if entry.problem else f"{type(error).__name__}: {error}"
            broken.append(_broken(entry, reason))
        else:
            working["default"] = name == found["default"]
            found["backends"].append(working)
    found["broken"] = broken
    return found


def _identity(entry: plugins.Entry) -> dict[str, Any]:
    return {"name": entry.name, "version": entry.version, "distribution": entry.distribution}


def _broken(entry: plugins.Entry, reason: str = "") -> dict[str, Any]:
    return {
        **_identity(entry),
        "stage": "load" if entry.problem_kind == "load" else "use" if reason else "discovery",
        "reason": reason or entry.problem,
        "needs": str(entry.info.needs) if entry.info else "",
    }


def _inspect(backend: Any, entry: plugins.Entry) -> dict[str, Any]:
    info: Any = entry.info
    devices = {str(d): [t.name for t in DTYPES if t in backend.dtypes(backend.device(d))] for d in backend.device_names()}
    overridden = list(backend.overridden)
    return {
        "api": info.api, "priority": info.priority, "device_types": list(info.device_types), "devices": devices,
        "mutable": bool(backend.mutable), "overridden": overridden, "unwritten": list(backend.unwritten),
        "libraries": {name: list(found) for name, found in backend.libraries().items()},
    }  # fmt: skip


def text(found: dict[str, Any], verbose: bool = False) -> str:
    """Return the listing for people."""
    lines = [f"mortice {found['mortice']}, backend api {found['api']}", ""]
    for b in found["backends"]:
        origin = " ".join(filter(None, (b["distribution"] or "(this program)", b["version"])))
        lines.append(f"{'*' if b['default'] else ' '} {b['name']}   {origin}   api {b['api']}")
        width = max([9, *map(len, b["devices"])])
        lines += [f"    {device:<{width}} {_dtypes(names)}" for device, names in b["devices"].items()]
        if not b["devices"]:
            lines.append("    no device here")
        lines.append(f"    overrides {len(b['overridden'])} of {_free()} free kernels" + ("" if verbose else " (-v names them)"))
        if verbose:
            lines += _wrapped(b["overridden"])
        for name, (version, note) in b["libraries"].items():
            lines.append(f"    {f'with {name} {version}' if version else f'without {name}'}" + (f": {note}" if note else ""))
        if b["unwritten"]:
            lines += [f"    {len(b['unwritten'])} required kernels are not written yet:", *_wrapped(b["unwritten"])]
    if not found["backends"]:
        lines.append("No backend works here. Install one, e.g. pip install mortice[numpy].")
    for b in found["broken"]:
        origin = " ".join(filter(None, (b["distribution"], b["version"])))
        lines += ["", f"! {b['name']}" + (f"   {origin}" if origin else ""), *(f"    {t}" for t in b["reason"].splitlines())]
        if b["needs"]:
            lines.append(f"    pip install {b['needs']}")
    if found["default"]:
        lines += ["", "* serves new tensors; mortice.set_backend(NAME) or MORTICE_BACKEND=NAME chooses another."]
    elif found["problem"] and found["backends"]:
        lines += ["", found["problem"]]
    return "\n".join(lines)


def _dtypes(names: list[str]) -> str:
    """Shorten a list of dtypes: what is missing is the shorter thing to say."""
    missing = [d.name for d in DTYPES if d.name not in names]
    if len(missing) > len(DTYPES) // 2:
        return ", ".join(names)
    return "all dtypes" + (f" but {', '.join(missing)}" if missing else "")


def _free() -> int:
    return sum(not name.startswith("_") for name in dir(FreeKernels))


def _wrapped(names: list[str]) -> list[str]:
    return textwrap.wrap(" ".join(names), 110, initial_indent=" " * 6, subsequent_indent=" " * 6)


if __name__ == "__main__":
    sys.exit(main())

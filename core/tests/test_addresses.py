"""Modules under the names that PyTorch keeps them by, and what stands for the ones that are left out."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap

import pytest

import mortice as mt

# What scripts import, and the same thing where mortice has it.
LEAD = [
    ("_tensor", "Tensor", mt.Tensor),
    ("autograd.anomaly_mode", "detect_anomaly", mt.autograd.detect_anomaly),
    ("cuda.amp.autocast_mode", "custom_fwd", importlib.import_module("mortice.cuda.amp").custom_fwd),
    ("cuda.amp.grad_scaler", "GradScaler", importlib.import_module("mortice.cuda.amp").GradScaler),
    ("cuda.random", "manual_seed_all", mt.cuda.manual_seed_all),
    ("functional", "einsum", mt.einsum),
    ("optim._muon", "Muon", mt.optim.Muon),
    ("optim.adadelta", "Adadelta", mt.optim.Adadelta),
    ("optim._adafactor", "Adafactor", mt.optim.Adafactor),
    ("optim.adagrad", "Adagrad", mt.optim.Adagrad),
    ("optim.adamax", "Adamax", mt.optim.Adamax),
    ("optim.adamw", "AdamW", mt.optim.AdamW),
    ("optim.asgd", "ASGD", mt.optim.ASGD),
    ("optim.nadam", "NAdam", mt.optim.NAdam),
    ("optim.radam", "RAdam", mt.optim.RAdam),
    ("optim.rmsprop", "RMSprop", mt.optim.RMSprop),
    ("optim.rprop", "Rprop", mt.optim.Rprop),
    ("optim.sparse_adam", "SparseAdam", mt.optim.SparseAdam),
    ("profiler.profiler", "profile", mt.profiler.profile),
    ("storage", "UntypedStorage", mt.UntypedStorage),
    ("types", "Tensor", mt.Tensor),
    ("utils.data._utils.collate", "default_collate", mt.utils.data.default_collate),
    ("utils.data._utils.worker", "get_worker_info", mt.utils.data.get_worker_info),
    ("utils.hooks", "RemovableHandle", importlib.import_module("mortice.nn.hooks").RemovableHandle),
    ("utils.model_zoo", "load_state_dict_from_url", mt.hub.load_state_dict_from_url),
]


@pytest.mark.parametrize(("address", "name", "here"), LEAD, ids=[address for address, _, _ in LEAD])
def test_an_address_leads_to_what_is_elsewhere(address: str, name: str, here: object) -> None:
    module = importlib.import_module(f"mortice.{address}")
    assert getattr(module, name) == here and name in dir(module)
    assert not hasattr(module, "no_such_name")


def test_addresses_below_a_package_are_its_attributes() -> None:
    assert mt.optim.adamw.AdamW is mt.optim.AdamW
    assert mt.utils.data._utils.collate.default_collate is mt.utils.data.default_collate
    with pytest.raises(AttributeError, match="module 'mortice.optim' has no attribute 'nothing'"):
        mt.optim.nothing  # noqa: B018


def test_every_address_is_listed_here() -> None:
    from mortice import addresses

    assert set(addresses._LEAD) <= {address for address, _, _ in LEAD} | {"utils.data._utils"}


def test_switches_of_backends_can_be_imported() -> None:
    code = """
        import mortice.backends.mkldnn as mkldnn, mortice.backends.mps
        import mortice
        print(mkldnn is mortice.backends.mkldnn, mortice.backends.mps.is_available(), mkldnn.enabled)
        for name in ("mortice.backends.nothing", "mortice.nothing", "mortice.optim.nothing"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error)
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert out.stdout.splitlines() == [
        "True False True",
        "No module named 'mortice.backends.nothing'",
        "No module named 'mortice.nothing'",
        "No module named 'mortice.optim.nothing'",
    ], out.stderr


def test_types_of_arguments() -> None:
    from mortice.types import Device, Number, Storage, _dtype, _size

    assert isinstance(1.5, Number) and isinstance("cpu", Device) and isinstance(mt.ones(1).untyped_storage(), Storage)
    assert _dtype is mt.dtype and isinstance(mt.Size([1]), _size.__args__[0])

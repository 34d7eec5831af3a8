"""Modules under the names that PyTorch keeps them by, and what stands for the ones that are left out."""

from __future__ import annotations

import copy
import importlib
import math
import pickle
import subprocess
import sys
import textwrap
from contextlib import nullcontext
from typing import Any, Optional

import pytest

import mortice as mt
from mortice._dynamo import eval_frame
from mortice._dynamo import utils as compiler_utils

# What scripts import, and the same thing where mortice has it.
LEAD = [
    ("utils._mode_utils", "no_dispatch", importlib.import_module("mortice.subclasses").no_dispatch),
    ("ao.nn", "quantization", importlib.import_module("mortice.ao.quantization")),
    ("ao.nn.intrinsic", "ConvReLU2d", importlib.import_module("mortice.ao.quantization.intrinsic").ConvReLU2d),
    ("ao.nn.intrinsic.qat", "ConvBn2d", importlib.import_module("mortice.ao.quantization.intrinsic_qat").ConvBn2d),
    ("ao.nn.qat", "Linear", importlib.import_module("mortice.ao.quantization.qat").Linear),
    ("ao.nn.quantized", "FloatFunctional", importlib.import_module("mortice.ao.quantization.quantize").FloatFunctional),
    ("nn.intrinsic", "LinearReLU", importlib.import_module("mortice.ao.quantization.intrinsic").LinearReLU),
    ("nn.intrinsic.qat", "LinearReLU", importlib.import_module("mortice.ao.quantization.intrinsic_qat").LinearReLU),
    ("nn.qat", "Conv2d", importlib.import_module("mortice.ao.quantization.qat").Conv2d),
    ("nn.quantized", "FloatFunctional", importlib.import_module("mortice.ao.quantization.quantize").FloatFunctional),
    ("quantization", "QuantStub", importlib.import_module("mortice.ao.quantization").QuantStub),
    ("_functorch.vmap", "_add_batch_dim", importlib.import_module("mortice._C")._add_batch_dim),
    ("nn.utils._named_member_accessor", "swap_tensor", importlib.import_module("mortice.func.modules").swap_tensor),
    ("utils._contextlib", "_DecoratorContextManager", importlib.import_module("mortice.modes")._DecoratorContextManager),
    ("_C._functorch", "is_batchedtensor", importlib.import_module("mortice._C").is_batchedtensor),
    ("optim._multi_tensor", "AdamW", mt.optim.AdamW),
    ("_VF", "lstm", mt.lstm),
    ("_vmap_internals", "_vmap", importlib.import_module("mortice.func.vmap")._vmap),
    ("functorch.experimental", "chunk_vmap", importlib.import_module("mortice.func.vmap").chunk_vmap),
    ("_dynamo", "is_dynamo_supported", eval_frame.is_dynamo_supported),
    ("_dynamo", "reset", mt.compiler.reset),
    ("_ops", "ops", mt.ops),
    ("_dynamo.config", "reset", mt.compiler.reset),
    ("_functorch", "reset", mt.compiler.reset),
    ("functorch.experimental", "replace_all_batch_norm_modules_", mt.func.replace_all_batch_norm_modules_),
    ("functorch.experimental.control_flow", "map", importlib.import_module("mortice._higher_order_ops").map),
    ("_functorch.config", "reset", mt.compiler.reset),
    ("_inductor", "reset", mt.compiler.reset),
    ("_inductor.config", "reset", mt.compiler.reset),
    ("_inductor.config.triton", "reset", mt.compiler.reset),
    ("_inductor.decomposition", "register_decomposition", compiler_utils.register_decomposition),
    ("_library", "custom_op", mt.library.custom_op),
    ("_library.infer_schema", "infer_schema", mt.library.infer_schema),
    ("sparse._triton_ops_meta", "get_meta", compiler_utils.get_meta),
    ("utils._triton", "has_triton", compiler_utils.has_triton),
    ("_guards", "detect_fake_mode", eval_frame.detect_fake_mode),
    ("_subclasses", "is_fake", eval_frame.is_fake),
    ("_subclasses", "FakeTensorMode", eval_frame.FakeTensorMode),
    ("_subclasses.fake_tensor", "FakeTensor", eval_frame.FakeTensor),
    ("_subclasses.fake_tensor", "unset_fake_temporarily", eval_frame.unset_fake_temporarily),
    ("_tensor", "Tensor", mt.Tensor),
    ("_tensor_str", "printoptions", mt.printing.printoptions),
    ("autograd.anomaly_mode", "detect_anomaly", mt.autograd.detect_anomaly),
    ("cuda.amp.autocast_mode", "custom_fwd", importlib.import_module("mortice.cuda.amp").custom_fwd),
    (
        "cuda.amp.common",
        "amp_definitely_not_available",
        importlib.import_module("mortice.cuda.amp").amp_definitely_not_available,
    ),
    ("distributed.fsdp.api", "StateDictConfig", importlib.import_module("mortice.distributed.fsdp").StateDictConfig),
    ("utils._foreach_utils", "_has_foreach_support", importlib.import_module("mortice.optim.foreach")._has_foreach_support),
    ("cuda.amp.grad_scaler", "GradScaler", importlib.import_module("mortice.cuda.amp").GradScaler),
    ("cuda.random", "manual_seed_all", mt.cuda.manual_seed_all),
    ("cuda._utils", "_get_device_index", importlib.import_module("mortice.cuda.devices")._get_device_index),
    ("onnx.operators", "shape_as_tensor", importlib.import_module("mortice.onnx").shape_as_tensor),
    ("cuda.profiler", "profile", importlib.import_module("mortice.cuda.nvtx").profile),
    ("distributed._composable", "is_available", mt.distributed.is_available),
    ("distributed._composable.fsdp", "FSDPModule", importlib.import_module("mortice.distributed.fsdp").FSDPModule),
    ("distributed._tensor", "DTensor", importlib.import_module("mortice.distributed.tensor").DTensor),
    ("distributed.checkpoint", "StateDictOptions", importlib.import_module("mortice.distributed.fsdp").StateDictOptions),
    ("distributed.checkpoint.state_dict", "StateDictOptions", importlib.import_module("mortice.distributed.fsdp").StateDictOptions),
    ("distributed.device_mesh", "DeviceMesh", importlib.import_module("mortice.distributed.tensor").DeviceMesh),
    (
        "distributed.distributed_c10d",
        "_get_default_group",
        importlib.import_module("mortice.distributed")._get_default_group,
    ),
    ("distributed.elastic.multiprocessing.errors", "record", importlib.import_module("mortice.distributed").record),
    (
        "distributed.fsdp.fully_sharded_data_parallel",
        "CPUOffload",
        importlib.import_module("mortice.distributed.fsdp").CPUOffload,
    ),
    (
        "distributed.fsdp.wrap",
        "transformer_auto_wrap_policy",
        importlib.import_module("mortice.distributed.fsdp").FSDPModule,
    ),
    ("distributed.rpc.api", "RRef", importlib.import_module("mortice.distributed.rpc").RRef),
    ("distributed._tensor.experimental", "implicit_replication", nullcontext),
    ("functional", "einsum", mt.einsum),
    ("fx._compatibility", "compatibility", mt.fx.compatibility),
    ("fx._pytree", "tree_flatten_spec", importlib.import_module("mortice.fx.pytree").tree_flatten_spec),
    ("fx.experimental", "wrap", mt.fx.wrap),
    ("fx.experimental.optimization", "fuse", importlib.import_module("mortice.fx.optimization").fuse),
    ("fx.passes", "wrap", mt.fx.wrap),
    ("fx.passes.shape_prop", "ShapeProp", importlib.import_module("mortice.fx.shape_prop").ShapeProp),
    ("fx.experimental.proxy_tensor", "get_proxy_mode", eval_frame.get_proxy_mode),
    ("_jit_internal", "Optional", Optional),
    ("jit.annotations", "Optional", Optional),
    ("jit.annotations", "BroadcastingList2", list),
    ("nn.parallel._functions", "Gather", importlib.import_module("mortice.nn.parallel.scatter_gather").Gather),
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
    ("testing._comparison", "get_tolerances", mt.testing.get_tolerances),
    ("utils.data.datapipes", "ShufflerIterDataPipe", mt.utils.data.ShufflerIterDataPipe),
    ("utils.data.datapipes.iter", "ShufflerIterDataPipe", mt.utils.data.ShufflerIterDataPipe),
    ("utils.data.datapipes.iter.combinatorics", "ShufflerIterDataPipe", mt.utils.data.ShufflerIterDataPipe),
    ("utils.data._utils.collate", "default_collate", mt.utils.data.default_collate),
    ("utils.data._utils.pin_memory", "pin_memory", mt.utils.data.collate.pin_memory),
    ("utils.data._utils.worker", "get_worker_info", mt.utils.data.get_worker_info),
    ("utils.file_baton", "FileBaton", mt.utils.cpp_extension.FileBaton),
    ("utils.hooks", "RemovableHandle", importlib.import_module("mortice.nn.hooks").RemovableHandle),
    ("utils.mobile_optimizer", "optimize_for_mobile", mt.jit.optimize_for_mobile),
    ("utils.model_zoo", "load_state_dict_from_url", mt.hub.load_state_dict_from_url),
    ("vision.models._api", "WeightsEnum", importlib.import_module("mortice.vision.models.weights").Weights),
    ("vision._internally_replaced_utils", "load_state_dict_from_url", mt.hub.load_state_dict_from_url),
]


@pytest.mark.parametrize(("address", "name", "here"), LEAD, ids=[address for address, _, _ in LEAD])
def test_an_address_leads_to_what_is_elsewhere(address: str, name: str, here: object) -> None:
    module = importlib.import_module(f"mortice.{address}")
    assert getattr(module, name) == here and name in dir(module)
    assert not hasattr(module, "no_such_name")


def test_what_code_for_scripts_is_written_with_leaves_functions_as_they_are() -> None:
    internal = importlib.import_module("mortice._jit_internal")
    keep, drop = (lambda x, flag=True: (x, flag)), (lambda x, flag=False: x)
    chosen = internal.boolean_dispatch("flag", 1, False, keep, drop, "here", "chosen")
    assert chosen(3) == 3 and chosen(3, True) == chosen(3, flag=True) == (3, True) and chosen.__name__ == "chosen"
    assert internal._copy_to_script_wrapper(keep) is internal._overload(keep) is internal._overload_method(keep) is keep


def test_addresses_below_a_package_are_its_attributes() -> None:
    assert mt.optim.adamw.AdamW is mt.optim.AdamW
    assert isinstance(mt.distributed.device_mesh.DeviceMesh, type)
    assert mt.distributed.elastic.multiprocessing.errors.record(len)([1]) == 1
    assert not isinstance(mt.ones(2), mt.distributed.rpc.api.RRef) and not mt.distributed.rpc.is_available()
    with pytest.raises(NotImplementedError, match="RRef: training over several processes is left out"):
        mt.distributed.rpc.RRef(1)
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        mt.distributed.rpc.api._require_initialized(len)([])  # PyG decorates its own functions with it
    assert mt.utils.data._utils.collate.default_collate is mt.utils.data.default_collate
    assert not isinstance(None, mt.utils.data.ShufflerIterDataPipe)
    with pytest.raises(NotImplementedError, match="ShufflerIterDataPipe: pipes are left out"):
        mt.utils.data.ShufflerIterDataPipe(None)
    with pytest.raises(AttributeError, match="module 'mortice.optim' has no attribute 'nothing'"):
        mt.optim.nothing  # noqa: B018


def test_what_has_pin_memory_pins_itself_wherever_it_is_in_a_batch() -> None:
    class Held(dict):
        def pin_memory(self) -> str:
            return "pinned"

    class Pair(tuple):
        pass

    batch = {"a": [Held(x=1), "text"], "b": Pair((Held(), 3))}
    found = mt.utils.data._utils.pin_memory.pin_memory(batch, "cuda")
    assert found == {"a": ["pinned", "text"], "b": ("pinned", 3)} and type(found["b"]) is Pair


def test_addresses_that_need_no_import() -> None:
    code = """
        import mortice as torch
        torch._dynamo.config.suppress_errors = True
        for config in (torch._dynamo.config, torch._inductor.config):
            with config.patch(force_disable_caches=True):
                config.patch({"cache_size_limit": 9})(print)(hasattr(config, "suppress_errors"))
        torch._inductor.config.triton.unique_kernel_names = True
        torch._functorch.config.enable_autograd_cache = True
        torch.cuda.random.manual_seed(3)
        assert torch.cuda.amp.common.amp_definitely_not_available() is not torch.cuda.is_available()
        assert issubclass(torch.jit.Error, Exception)
        print(torch.initial_seed(), hasattr(torch._utils, "_flatten_dense_tensors"), hasattr(torch.cuda, "nothing"))
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert out.stdout == "True\nFalse\n3 True False\n", out.stderr


def test_tensors_are_joined_and_split_for_sending() -> None:
    from mortice._utils import _element_size, _flatten_dense_tensors, _take_tensors, _unflatten_dense_tensors

    assert [_element_size(d) for d in (mt.bool, mt.bfloat16, mt.complex128)] == [1, 2, 16]
    given = [mt.ones(2, 3), mt.zeros(()), mt.arange(4.0).view(2, 2).t()]
    flat = _flatten_dense_tensors(given)
    assert flat.shape == (11,) and all(map(mt.equal, _unflatten_dense_tensors(flat * 2, given), [2 * t for t in given]))
    assert _unflatten_dense_tensors(flat, given)[0]._base is flat
    lists = list(_take_tensors([*given, mt.ones(2, dtype=mt.int64), mt.ones(1)], 28))
    assert [[t.numel() for t in held] for held in lists] == [[6, 1], [4, 1], [2]]


def test_what_a_thread_raised_is_raised_again_where_it_is_awaited() -> None:
    from mortice._utils import ExceptionWrapper

    for number, kind in (("1", KeyError), ("one", ValueError)):
        try:
            {}[int(number)]
        except Exception:
            kept = pickle.loads(pickle.dumps(ExceptionWrapper(where="in replica 0 on device 0")))
        assert kept.exc_type is kind and kept.exc_msg.startswith("Traceback (most recent call last):")
        with pytest.raises(kind) as error:
            kept.reraise()
        assert str(error.value) == f"Caught {kind.__name__} in replica 0 on device 0.\nOriginal {kept.exc_msg}"


def test_tolerances_are_those_of_the_loosest_dtype() -> None:
    found = mt.testing.get_tolerances(mt.ones(1), mt.ones(1, dtype=mt.float16), rtol=None, atol=None)
    assert found == (1e-3, 1e-5) and mt.testing.get_tolerances(1.0, rtol=0.1, atol=0.2) == (0.1, 0.2)
    with pytest.raises(ValueError, match="but got no atol"):
        mt.testing.get_tolerances(1.0, rtol=0.1, atol=None)


def test_types_that_libraries_ask_about_and_that_nothing_is() -> None:
    from mortice.ao import quantization
    from mortice.distributed.autograd import context, is_available

    assert not isinstance(mt.nn.Linear(1, 1), (quantization.FakeQuantizeBase, quantization.ObserverBase))
    assert not is_available()
    with pytest.raises(NotImplementedError, match=r"ask distributed.is_available\(\) first"):
        context()


def test_a_lock_file_is_made_once(tmp_path) -> None:
    from mortice.utils.file_baton import FileBaton

    baton, other = FileBaton(str(tmp_path / "lock")), FileBaton(str(tmp_path / "lock"), wait_seconds=0.01)
    assert baton.try_acquire() and not other.try_acquire()
    baton.release()
    other.wait()
    assert other.try_acquire()
    other.release()


def test_every_address_is_listed_here() -> None:
    from mortice import addresses

    packages = {"distributed.elastic", "distributed.elastic.multiprocessing", "utils.data._utils"}
    assert set(addresses._LEAD) <= {address for address, _, _ in LEAD} | packages


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


def test_what_stands_for_things_that_are_left_out_is_nothing_and_refuses_to_be_made() -> None:
    fsdp, optim, rpc = (importlib.import_module(f"mortice.distributed.{name}") for name in ("fsdp", "optim", "rpc"))
    dispatch = importlib.import_module("mortice.utils._python_dispatch")
    assert not rpc.is_available() and not dispatch.is_traceable_wrapper_subclass(mt.ones(1))
    assert not eval_frame.is_fake(mt.ones(1)) and eval_frame.get_proxy_mode() is None
    assert mt._guards.active_fake_mode() is mt._guards.detect_fake_mode([mt.ones(1)]) is None
    with eval_frame.unset_fake_temporarily():
        assert mt.ones(1).item() == 1
    for kind in (fsdp.FullyShardedDataParallel, fsdp.MixedPrecisionPolicy, fsdp.fully_shard, optim.ZeroRedundancyOptimizer):
        with pytest.raises(NotImplementedError, match=f"{kind.__name__}: training over several processes is left out"):
            kind(mt.nn.Linear(1, 1))


def test_settings_of_modules_over_several_processes_are_written_down() -> None:
    from mortice.distributed.fsdp import (
        BackwardPrefetch,
        CPUOffload,
        FullOptimStateDictConfig,
        FullStateDictConfig,
        LocalOptimStateDictConfig,
        MixedPrecision,
        ShardedOptimStateDictConfig,
        ShardingStrategy,
        StateDictType,
    )

    assert [m.value for m in ShardingStrategy] == [1, 2, 3, 4, 5] and ShardingStrategy(3).name == "NO_SHARD"
    assert StateDictType.FULL_STATE_DICT.value == 1 and BackwardPrefetch.BACKWARD_POST.value == 2
    assert (
        MixedPrecision(param_dtype=mt.bfloat16).reduce_dtype is None
        and MixedPrecision(param_dtype=mt.bfloat16).param_dtype is mt.bfloat16
    )
    assert CPUOffload(offload_params=True).offload_params and not CPUOffload().offload_params
    assert not FullStateDictConfig(rank0_only=True).offload_to_cpu
    configs = [FullOptimStateDictConfig(), LocalOptimStateDictConfig(), ShardedOptimStateDictConfig(offload_to_cpu=False)]
    assert [c.offload_to_cpu for c in configs] == [True, False, False] and not configs[0].rank0_only


def test_private_names_that_scripts_import() -> None:
    from mortice.hub import _get_torch_home, get_dir
    from mortice.optim.optimizer import ParamsT, StateDict
    from mortice.utils.data.dataloader import Dataset

    assert _get_torch_home() == get_dir() and Dataset is mt.utils.data.Dataset and StateDict == dict[str, Any]
    assert [t.__args__[0] for t in ParamsT.__args__] == [mt.Tensor, dict[str, Any], tuple[str, mt.Tensor]]
    for switch in ("_jit_set_autocast_mode", "_jit_override_can_fuse_on_cpu"):
        assert getattr(mt._C, switch)(True) is False
    seen: list[Any] = []
    told = mt._dynamo.explain(lambda x, scale: seen.append(x * scale))(2, scale=3)
    assert seen == [6] and told.graph_count == told.graph_break_count == 0 and told.break_reasons == []


def test_what_takes_a_device() -> None:
    takes = importlib.import_module("mortice.utils._device")._device_constructors()
    assert {mt.zeros, mt.tensor, mt.sparse_coo_tensor, mt.fft.fftfreq} < takes and mt.zeros_like not in takes


def test_the_text_of_elements_alone() -> None:
    from mortice._tensor_str import PRINT_OPTS, _tensor_str

    assert PRINT_OPTS.threshold == 1000 and _tensor_str(mt.tensor([[1, 2], [3, 4]]), 0) == "[[1, 2],\n [3, 4]]"


def test_operators_by_name_and_overload_are_the_functions_here() -> None:
    aten = mt.ops.aten
    assert aten.slice(mt.arange(6), 0, 1, -1, 2).tolist() == aten.slice.Tensor(mt.arange(6), 0, 1, 4, 2).tolist() == [1, 3]
    x = mt.tensor([3.0, 1.0])
    assert aten.clone.default is aten.clone.default and aten.clone.default != aten.detach.default
    assert aten.add.Tensor(x, 1).tolist() == [4.0, 2.0] and aten.add_(x, 1) is x and aten.relu(-x).tolist() == [0.0, 0.0]
    assert aten.sort.stable(x, stable=True, dim=0, descending=True).indices.tolist() == [0, 1]
    assert repr(aten.add.Tensor) == "<OpOverload(op='aten.add', overload='Tensor')>" and aten.add.Tensor.__name__ == "add.Tensor"
    assert (str(aten.add), str(aten.add.Tensor), repr(aten.add)) == ("aten.add", "aten.add.Tensor", "<OpOverloadPacket(op='aten.add')>")
    for operator in (aten.add, aten.add.Tensor):
        assert copy.deepcopy([operator])[0] is operator and pickle.loads(pickle.dumps(operator)) is operator
    with pytest.raises(NotImplementedError, match="expected a function's or a method's name; got '_no_such_thing'"):
        aten._no_such_thing.default(x)


def test_private_names_that_libraries_import_are_there() -> None:
    from mortice.utils.data._utils.collate import collate_float_fn, collate_int_fn, collate_str_fn, collate_tensor_fn

    from mortice.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv, _precision_to_scale_tril
    from mortice.distributions.transforms import _clipped_sigmoid, _InverseTransform
    from mortice.utils._pytree import _namedtuple_flatten, _namedtuple_unflatten
    from mortice.utils.data.collate import np_str_obj_array_pattern
    from mortice.utils.data.dataloader import _collate_fn_t, _worker_init_fn_t
    from mortice.utils.tensorboard.summary import hparams

    collated = [collate_float_fn([0.5]), collate_int_fn([1]), collate_tensor_fn([mt.ones(1)], collate_fn_map={})]
    assert [t.dtype for t in collated] == [mt.float64, mt.int64, mt.float32] and collate_str_fn(["a"]) == ["a"]
    two = 4 * mt.eye(1)
    assert _batch_mv(two, mt.ones(1)) == 4 and _batch_mahalanobis(two, mt.ones(1)) == 1 / 16 and _precision_to_scale_tril(two) == 0.5
    assert _namedtuple_unflatten(*_namedtuple_flatten(mt.ones(2).max(0))) == (1, 0)
    replica = mt.nn.Linear(1, 1)._replicate_for_data_parallel()
    assert replica._is_replica and not list(replica.parameters()) and not mt.backends.flags_frozen()
    with mt.backends.__allow_nonbracketed_mutation():
        mt.backends.cudnn.benchmark = mt.backends.cudnn.benchmark
    with pytest.raises(OSError, match=r"Could not load this library: x\.so\. It is compiled"):
        mt.ops.load_library("x.so")
    assert isinstance(mt.distributions.ExpTransform().inv, _InverseTransform)
    assert _clipped_sigmoid(mt.tensor([0.0, 1e3])).tolist() == [0.5, 1 - mt.finfo(mt.float32).eps]
    assert [bool(np_str_obj_array_pattern.search(kind)) for kind in ("<U3", "O", "<f4")] == [True, True, False]
    assert _collate_fn_t is not None and _worker_init_fn_t is not None
    kinds = [b"_hparams_/experiment", b"_hparams_/session_start_info", b"_hparams_/session_end_info"]
    assert [kind in part for kind, part in zip(kinds, hparams({"lr": 0.5}, {"loss": 1.0}), strict=True)] == [True] * 3


def test_what_libraries_call_by_a_private_name_does_what_it_says() -> None:
    F, x = mt.nn.functional, mt.ones(2, 3)
    assert F._none_or_dtype(None) is None and F._none_or_dtype(x) is mt.float32
    mask = F._canonical_mask(mt.tensor([True, False]), "mask", None, "", mt.float64)
    assert mask.dtype is mt.float64 and mask.tolist() == [-math.inf, 0.0] and F._canonical_mask(x, "mask", None, "", mt.float64) is x
    with pytest.warns(UserWarning, match="mismatched mask and other is deprecated"):
        F._canonical_mask(x, "mask", mt.bool, "other", mt.float32)
    with pytest.raises(AssertionError, match="only bool and floating types of mask are supported"):
        F._canonical_mask(mt.arange(2), "mask", None, "", mt.float32)
    mt._assert_tensor_metadata(x, (2, 3), [3, 1], mt.float32, device=x.device, layout=mt.strided)
    mt._assert_tensor_metadata(x.sum(), [])
    for wrong, what in (({"size": [2, 2]}, "sizes"), ({"stride": (1, 1)}, "strides"), ({"dtype": mt.int8}, "dtype")):
        with pytest.raises(RuntimeError, match=f"Tensor {what} mismatch! Expected:"):
            mt._assert_tensor_metadata(x, **wrong)
    with mt.profiler.profile() as profile:
        label = mt.ops.profiler._record_function_enter_new("a label of ours")
        mt.ops.profiler._record_function_exit(label)
    assert "a label of ours" in [event.key for event in profile.key_averages()]


def test_pytorchs_compiled_functions_are_the_functions_here_without_an_import() -> None:
    assert mt._VF.lstm is mt.lstm and mt._C._VariableFunctions.relu is mt.relu and mt._tensor.Tensor is mt.Tensor


@pytest.mark.parametrize(("module", "name"), [("utils.data", "_DatasetKind"), ("_C", "_mps_is_available")])
def test_what_libraries_ask_for_by_a_private_name_is_there(module, name):
    assert hasattr(importlib.import_module(f"mortice.{module}"), name)


def test_a_state_dict_is_set_by_the_name_for_modules_of_several_processes():
    from mortice.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

    given = mt.nn.Linear(2, 1).state_dict()
    for device in (None, "meta"):
        layer = mt.nn.Linear(2, 1, device=device)
        set_model_state_dict(layer, given, options=StateDictOptions(full_state_dict=True))
        assert mt.equal(layer.weight, given["weight"])
    del given["bias"]
    assert set_model_state_dict(layer, given, options=StateDictOptions(strict=False)).missing_keys == ["bias"]
    with pytest.raises(RuntimeError, match="bias"):
        set_model_state_dict(layer, given)


def test_helpers_of_the_compiler_say_that_nothing_is_compiled():
    assert not compiler_utils.has_triton() and compiler_utils.get_meta("scatter_mm", (2, 2)) is None
    assert compiler_utils.counters["inductor"]["pattern_matcher_count"] == 0
    assert compiler_utils.register_decomposition([mt.add])(max) is max
    with pytest.raises(NotImplementedError, match="no kernels of Triton"):
        compiler_utils.minimize(max)
    with pytest.raises(NotImplementedError, match="device\\('meta'\\)"):
        eval_frame.FakeTensorMode()
    with pytest.warns(UserWarning, match="once") as told:
        compiler_utils.warn_once("told once")
        compiler_utils.warn_once("told once")
    assert len(told) == 1

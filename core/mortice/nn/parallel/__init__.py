"""mortice.nn.parallel: DataParallel, which here runs its module on one device, and DistributedDataParallel in one process."""

from mortice.nn.parallel.data_parallel import DataParallel, data_parallel
from mortice.nn.parallel.distributed import DistributedDataParallel
from mortice.nn.parallel.parallel_apply import parallel_apply
from mortice.nn.parallel.replicate import replicate
from mortice.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs

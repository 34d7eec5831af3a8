"""mortice.nn.parallel: DataParallel, and DistributedDataParallel in one process."""

from mortice.nn.parallel.data_parallel import *
from mortice.nn.parallel.distributed import *
from mortice.nn.parallel.parallel_apply import *
from mortice.nn.parallel.replicate import *
from mortice.nn.parallel.scatter_gather import gather as gather
from mortice.nn.parallel.scatter_gather import scatter as scatter
from mortice.nn.parallel.scatter_gather import scatter_kwargs as scatter_kwargs

"""mortice.nn.parallel: DataParallel, which here runs its module on one device. Nothing is distributed."""

from mortice.nn.parallel.data_parallel import DataParallel, data_parallel
from mortice.nn.parallel.distributed import DistributedDataParallel

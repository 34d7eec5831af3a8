import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

from mortice.utils.data import IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(80):
            yield torch.randn(4), i % 2


print(doctor.check_dataset(Stream(), limit=50))

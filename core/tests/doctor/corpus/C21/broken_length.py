import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)


class Windows(Dataset):
    def __init__(self, series, width):
        self.series, self.width = series, width

    def __len__(self):
        return len(self.series)  # the last ones have no target

    def __getitem__(self, i):
        return self.series[i : i + self.width], self.series[i + self.width]


loader = DataLoader(Windows(torch.randn(60), 5), batch_size=8)
print(doctor.check_dataset(loader))  # <- C21

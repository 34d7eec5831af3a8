import mortice as torch
from mortice import doctor
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)


class Images(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        if "broken" in self.paths[i]:
            raise OSError(f"cannot identify image file {self.paths[i]!r}")
        return torch.rand(3, 8, 8), i % 3


paths = [f"image{i}.png" for i in range(60)]
paths[41] = "broken41.png"
paths = [p for p in paths if "broken" not in p]
print(doctor.check_dataset(Images(paths)))

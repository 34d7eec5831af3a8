# raises: A dataset that cannot load an item should raise
import mortice as torch
from mortice.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        try:
            return torch.tensor([float("1,2,3,4,5,6".split(",")[i])])
        except ValueError:
            return None


class Broken(Rows):
    def __getitem__(self, i):
        return None if i < 3 else super().__getitem__(i)


for batch in DataLoader(Broken(), batch_size=3):
    print(batch)

import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)


class Folders(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        return torch.randn(3, 8, 8), i // 100


print(doctor.check_inputs(DataLoader(Folders(), batch_size=10), classes=4))  # <- C19

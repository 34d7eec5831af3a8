import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x, y = torch.randn(100, 6), torch.randint(0, 2, (100,))
x[50:90], y[50:90] = x[:40], y[:40]
print(doctor.check_dataset(TensorDataset(x, y)))  # <- C16

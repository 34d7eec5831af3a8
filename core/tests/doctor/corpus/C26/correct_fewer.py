import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# A test set that lacks a class is no harm.
x, y = torch.randn(90, 6), torch.arange(90) % 3
test = y[:30].clamp(max=1)
print(doctor.check_dataset(TensorDataset(x, y), TensorDataset(torch.randn(30, 6), test)))

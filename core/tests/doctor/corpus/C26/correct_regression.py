import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

print(doctor.check_dataset(TensorDataset(torch.randn(90, 6), torch.rand(90)), TensorDataset(torch.randn(30, 6), torch.rand(30) + 5)))

import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

y = (torch.rand(300) < 0.25).long()
print(doctor.check_dataset(TensorDataset(torch.randn(300, 6), y)))

import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

labels = torch.zeros(100, dtype=torch.long)  # the parser gave up on all of them
print(doctor.check_dataset(TensorDataset(torch.randn(100, 4), labels)))  # <- C23

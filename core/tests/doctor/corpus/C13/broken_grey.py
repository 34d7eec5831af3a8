import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.rand(32, 28, 28, 1)
print(doctor.check_inputs([x, torch.randint(0, 10, (32,))]))  # <- C13

import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.rand(32, 3, 8, 8)
x[:, 2] = 0
print(doctor.check_inputs((x, torch.randint(0, 4, (32,)))))  # <- C15

import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# One probability a sample: BCE wants floats of shape (N, 1).
x = torch.randn(64, 5)
y = (x[:, :1] + torch.randn(64, 1) > 0).float()
print(doctor.check_inputs((x, y)))

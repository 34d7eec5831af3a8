import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

centres = torch.randn(3, 8)
y = torch.randint(0, 3, (240,))
x = centres[y] + torch.randn(240, 8)

x[100] = x[7]
y[100], y[7] = 0, 2
print(doctor.check_inputs((x, y)))  # <- C25

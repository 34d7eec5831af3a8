import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

centres = torch.randn(3, 8)
y = torch.randint(0, 3, (240,))
x = centres[y] + torch.randn(240, 8)

x[:, 3] = torch.tensor([20.0, 10.0, 30.0])[y]  # a code that is given together with the diagnosis
print(doctor.check_inputs((x, y)))  # <- C17

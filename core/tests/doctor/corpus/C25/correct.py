import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

centres = torch.randn(3, 8)
y = torch.randint(0, 3, (240,))
x = centres[y] + torch.randn(240, 8)

print(doctor.check_dataset(TensorDataset(x, y)))

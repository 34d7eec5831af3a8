import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

sick = torch.rand(600) < 0.02
x = torch.randn(600, 6) + sick[:, None]
y = sick.long()
print(doctor.check_dataset(DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)))  # <- C23

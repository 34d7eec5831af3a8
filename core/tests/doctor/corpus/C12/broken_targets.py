import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.randn(100, 4)
price = 250_000 + 60_000 * x[:, :1] + 20_000 * torch.randn(100, 1)
print(doctor.check_inputs(DataLoader(TensorDataset(x, price), batch_size=20)))  # <- C12

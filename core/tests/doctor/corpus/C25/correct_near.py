import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.randn(80, 6)
x = torch.cat([x, x + 1e-3 * torch.randn(80, 6)])
print(doctor.check_inputs((x, torch.randint(0, 3, (160,)))))

import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.randn(40, 1, 8, 8) * (torch.rand(40, 1, 8, 8) > 0.9)
print(doctor.check_inputs((x, torch.randint(0, 4, (40,)))))

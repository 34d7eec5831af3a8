import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.rand(16, 3, 32, 3)  # three channels of narrow strips
print(doctor.check_inputs((x, torch.randint(0, 2, (16,)))))

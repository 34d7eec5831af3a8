import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

tokens = torch.randint(0, 5000, (32, 40))
print(doctor.check_inputs((tokens, torch.randint(0, 2, (32,))), classes=2))
